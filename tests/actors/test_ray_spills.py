"""What the coordinator remembers of tasks that may leave files behind."""

from __future__ import annotations

from dataclasses import replace

from rayflink.actors.commands import DeployTask, SlotsGranted
from rayflink.actors.ray_spills import bare, may_spill
from rayflink.actors.wiring import spill_folder
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.state.snapshots import StoredSnapshot
from tests.actors.job_events import Job


def test_neither_the_program_nor_the_state_of_a_task_is_remembered_over_its_restarts() -> None:
    env = StreamExecutionEnvironment.get_execution_environment({})
    env.from_collection([("a", 1)]).key_by(lambda pair: pair[0]).sum(1).sink_to(CollectSink())
    job = Job(env.get_job_graph())
    job.start()
    deployed = [command.deployment for command in job.on(SlotsGranted()) if isinstance(command, DeployTask)]
    keyed = next(filter(may_spill, deployed))
    restored = replace(keyed, restore={"operator": (StoredSnapshot(),)})
    remembered = bare(restored)
    assert (remembered.operators, remembered.inputs, remembered.restore) == ((), (), {})
    assert spill_folder(remembered) == spill_folder(restored)
