"""What a slot sharing group says of its slots, on Ray."""

from __future__ import annotations

import pytest

from rayflink.datastream import SlotSharingGroup, StreamExecutionEnvironment

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]


def test_a_slot_gets_the_cores_and_the_memory_its_group_says():
    env = StreamExecutionEnvironment({"execution.target": "ray"})
    group = SlotSharingGroup.builder("half").set_cpu_cores(0.5).set_task_heap_memory_mb(64).build()

    def assigned(_):
        import ray

        return ray.get_runtime_context().get_assigned_resources()

    (found,) = env.from_collection([1]).map(assigned).slot_sharing_group(group).execute_and_collect()
    assert found["CPU"] == 0.5 and found["memory"] == 64 << 20
