"""What a slot sharing group says of its slots, on Ray."""

from __future__ import annotations

import re

import pytest

from rayflink.cli.main import main
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import SlotSharingGroup, StreamExecutionEnvironment
from tests.cluster import watching

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]


def test_a_slot_gets_the_cores_and_the_memory_its_group_says():
    env = StreamExecutionEnvironment({"execution.target": "ray"})
    group = SlotSharingGroup.builder("half").set_cpu_cores(0.5).set_task_heap_memory_mb(64).build()

    def assigned(_):
        import ray

        return ray.get_runtime_context().get_assigned_resources()

    (found,) = env.from_collection([1]).map(assigned).slot_sharing_group(group).execute_and_collect()
    assert found["CPU"] == 0.5 and found["memory"] == 64 << 20


@pytest.mark.soak
def test_a_job_runs_on_while_a_rescale_waits_for_slots_that_do_not_come(capsys):
    env = StreamExecutionEnvironment({"execution.target": "ray", "slot.request.timeout": "5 s"})
    numbers = env.from_source(DataGeneratorSource(records_per_second=1_000), None, "Numbers").uid("numbers")
    numbers.key_by(lambda n: n % 3).map(lambda n: n).add_sink(lambda n: None)
    client = env.execute_async("endless")

    def counted() -> int:
        return int(client.status()["vertices"][1]["numRecordsIn"])

    def counts_on_after(seen: int) -> bool:
        return bool(watching.eventually(lambda: counted() > seen, within_s=40))

    assert counts_on_after(0)
    process = watching.pid_of(f"{client.get_job_id()}/default/0")
    future = client.rescale({"numbers": 5})
    assert watching.eventually(lambda: "waiting for 4 slots of 1 CPU more" in client.status().get("note", ""), 20)
    assert counts_on_after(counted()) and not future.done()
    other = client.rescale({"numbers": 6})
    assert "being changed already" in str(other.exception() or watching.eventually(other.exception, 20))

    assert "there was no room for 4 slots of 1 CPU more within 5 s: the cluster has 2 CPUs" in str(
        watching.eventually(future.exception, 40)
    )
    assert client.status().get("note", "") == ""
    assert main(["rescale", "endless", "numbers=40"]) == 1
    told = capsys.readouterr().err
    assert re.match(
        r"rayflink: waiting for \d+ slots of 1 CPU more, and runs on as it is until then; the cluster", told
    )
    assert process == watching.pid_of(f"{client.get_job_id()}/default/0"), "it has not been stopped for that"
    client.cancel().result()
