"""The processes of a job on Ray as a dispatcher sees them: logs, threads, figures, and checkpoints on request."""

from __future__ import annotations

import contextlib

import pytest

from rayflink.cluster.jobs.cluster_process import UnknownProcess
from rayflink.cluster.runners.ray_runner import RayRunner
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment
from tests.cluster import watching

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]


def test_a_dispatcher_sees_into_the_processes_of_a_job(tmp_path):
    env = StreamExecutionEnvironment({"parallelism.default": 1, "execution.checkpointing.dir": str(tmp_path)})
    numbers = env.from_source(DataGeneratorSource(records_per_second=50), None, "Numbers")
    numbers.map(lambda number: print("number", number, flush=True)).name("Prints").add_sink(lambda n: None).name("Out")
    client = env.execute_async("prints numbers")
    job_id, runner = client.get_job_id(), RayRunner("rayflink")
    processes = runner.processes

    def reported():
        return [process for process in processes.list() if process.job_id == str(job_id) and process.memory_bytes]

    (process,) = watching.eventually(reported, within_s=40)
    assert process.process_id.startswith(f"{process.host}:{process.pid}-") and process.node_id
    assert process.memory_bytes > process.managed_bytes > 0
    printed = watching.eventually(lambda: processes.log(process.process_id, "taskmanager.out", 1 << 20), within_s=20)
    assert b"number 0" in printed
    names = [file.name for file in processes.log_files(process.process_id)]
    assert names[:2] == ["taskmanager.log", "taskmanager.out"] and len(names) == 3
    with pytest.raises(FileNotFoundError):
        processes.log(process.process_id, "../job.json", 1)
    threads = {thread.name: thread.stack for thread in processes.threads(process.process_id)}
    assert any(name.startswith("Source: Numbers") and "step" in stack for name, stack in threads.items()), list(threads)
    assert processes.figures(process.process_id)["residentBytes"] > 1 << 20
    stacks = processes.profile(process.process_id, 1, with_idle=True)
    assert any(stack.startswith("Source: Numbers") for stack, _ in stacks), stacks
    job = runner.find(str(job_id))
    assert job is not None and job.checkpoint("c" * 32, 20.0) == (1, "")
    client.cancel()
    assert watching.eventually(lambda: process.process_id not in {p.process_id for p in processes.list()}, within_s=30)
    with contextlib.closing(runner), pytest.raises(UnknownProcess):
        processes.threads(process.process_id)
