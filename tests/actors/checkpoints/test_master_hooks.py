"""What a program does in the coordinator at checkpoints."""

from __future__ import annotations

from typing import Any

import pytest

from rayflink.actors.checkpoints.master_hooks import HookError, MasterHooks
from rayflink.actors.messages.messages import TriggerCheckpoint
from rayflink.actors.messages.states import JobStatus
from rayflink.common.functions.master_hook import MasterTriggerRestoreHook
from rayflink.common.records.batches import CheckpointBarrier
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.graph.job_graph import JobGraph
from tests.actors.checkpoints.checkpointed_job import Checkpoints, S, sent


class Noted(MasterTriggerRestoreHook):
    """Notes its calls; `gives` is what a trigger gives or raises."""

    def __init__(self, name: str = "topics", gives: Any = b"\x00t") -> None:
        self.name, self.gives, self.calls = name, gives, list[Any]()

    def get_identifier(self) -> str:
        return self.name

    def trigger_checkpoint(self, checkpoint_id: int, timestamp: int) -> bytes | None:
        self.calls.append(("trigger", checkpoint_id, timestamp))
        if isinstance(self.gives, BaseException):
            raise self.gives
        given: bytes | None = self.gives
        return given

    def restore_checkpoint(self, checkpoint_id: int, checkpoint_data: bytes | None) -> None:
        self.calls.append(("restore", checkpoint_id, checkpoint_data))

    def reset(self) -> None:
        self.calls.append("reset")

    def close(self) -> None:
        self.calls.append("close")


@pytest.mark.spec("H30")
def test_hooks_are_called_at_each_trigger_and_get_back_what_they_gave() -> None:
    topics, silent = Noted(), Noted("silent", None)
    job = Checkpoints(topics, silent).run()
    assert job.it.restore(0) == (None, [])
    job.at(100)
    job.complete(1)
    job.it.suspend(150)
    job.it.restore(160)
    job.it.job_ended(JobStatus.FAILED, 170)
    assert topics.calls == ["reset", ("trigger", 1, 100), ("restore", 1, b"\x00t"), "close"]
    assert silent.calls == ["reset", ("trigger", 1, 100), ("restore", 1, None), "close"]


@pytest.mark.spec("H30")
@pytest.mark.parametrize("gives", [ValueError("no broker"), "text", SystemExit(1)])
def test_a_hook_that_raises_or_gives_no_bytes_fails_the_checkpoint(gives: Any) -> None:
    hook = Noted(gives=gives)
    job = Checkpoints(hook).run()
    assert job.at(100) == []
    assert "master hook 'topics'" in job.it.history.overview()["latest"]["failed"]["failure_message"]
    hook.gives = b""
    assert job.at(200) == sent(TriggerCheckpoint(CheckpointBarrier(2, 200)), S)


def test_two_hooks_of_one_name_are_refused() -> None:
    with pytest.raises(HookError, match="'a' is registered twice"):
        MasterHooks([Noted("a"), Noted("a")])


def test_data_of_a_hook_that_is_gone_is_refused_unless_it_may_be_left_out() -> None:
    given = MasterHooks([Noted("old")]).trigger(4, 0)
    with pytest.raises(HookError, match=r"'old' is in checkpoint 4, but not in the program; .*ignore-unclaimed-state"):
        MasterHooks([]).restore(4, given, allow_unclaimed=False)
    new = Noted("new")
    MasterHooks([new]).restore(4, given, allow_unclaimed=True)
    assert new.calls == [("restore", 4, None)]


def test_a_hook_that_fails_to_close_keeps_no_other_from_it() -> None:
    class Broken(Noted):
        def close(self) -> None:
            raise OSError("gone")

    last = Noted("z")
    MasterHooks([Broken(), last]).close()
    assert last.calls == ["close"]


def test_a_hook_that_fails_to_restore_or_reset_is_named() -> None:
    class Broken(Noted):
        def restore_checkpoint(self, checkpoint_id: int, checkpoint_data: bytes | None) -> None:
            raise OSError("gone")

        def reset(self) -> None:
            raise OSError("gone")

    hooks = MasterHooks([Broken()])
    with pytest.raises(HookError, match="'topics' failed to restore checkpoint 3: OSError: gone"):
        hooks.restore(3, {}, allow_unclaimed=False)
    with pytest.raises(HookError, match="'topics' failed to reset: OSError: gone"):
        hooks.reset()


def test_a_program_registers_its_hooks_and_they_are_part_of_its_job() -> None:
    env = StreamExecutionEnvironment.get_execution_environment({})
    env.add_master_hook(Noted())
    with pytest.raises(ValueError, match="'topics' is registered already"):
        env.add_master_hook(Noted())
    with pytest.raises(TypeError, match="found a str; derive from that class"):
        env.add_master_hook("topics")  # type: ignore[arg-type]
    env.from_collection([1]).sink_to(CollectSink("out"))
    graph = JobGraph.from_bytes(env.get_job_graph("hooked").to_bytes())
    assert [hook.get_identifier() for hook in graph.master_hooks] == ["topics"]
