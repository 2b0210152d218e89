"""`rayflink list`, `status` and `cancel` on a job that runs on Ray."""

from __future__ import annotations

import time

import pytest

from rayflink.cli.main import main
from rayflink.common.errors import JobCancelled
from rayflink.datastream import StreamExecutionEnvironment
from tests.cluster import watching

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]


def slowly(value: int) -> int:
    time.sleep(0.001)
    return value


def test_a_job_is_listed_shown_and_cancelled(capsys):
    env = StreamExecutionEnvironment({"parallelism.default": 1})
    env.from_sequence(0, 10**12).map(slowly).key_by(lambda n: n % 3).map(lambda n: n).add_sink(lambda n: None)
    client = env.execute_async("endless")
    job = str(client.get_job_id())

    def has_counted() -> bool:
        return any(vertex["numRecordsIn"] > 0 for vertex in client.status()["vertices"])

    assert watching.eventually(has_counted, within_s=40)

    assert main(["list"]) == 0
    assert f"{job}  endless  RUNNING" in capsys.readouterr().out

    assert main(["status", "endless"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == f"endless  {job}  RUNNING"
    source, mapped = shown[4:6]
    assert source.startswith("Source: Sequence Source -> Map")
    assert int(mapped.split("Unnamed")[1].split()[1].replace(",", "")) > 0

    assert main(["cancel", job[:8]]) == 0
    assert capsys.readouterr().out == f"endless  {job}  CANCELED\n"
    with pytest.raises(JobCancelled):
        client.get_job_execution_result()
    assert main(["cancel", job]) == 1
    assert f"no job {job!r} on the cluster" in capsys.readouterr().err
