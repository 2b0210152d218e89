"""Each fault does what it says, and the job bears it or says clearly why it cannot."""

from __future__ import annotations

import pytest

from rayflink.actors.messages.states import JobStatus
from rayflink.testing import (
    CrashBeforeNotify,
    DelayCommands,
    Fault,
    FreezeTask,
    FullStorage,
    KillCoordinator,
    KillSlot,
    KillTask,
    LoseCommand,
    LoseFile,
    LyingStorage,
    SlowStorage,
    Story,
    TakeSavepoint,
    UnheardStorage,
    simulate,
)
from tests.simulation.test_checkpoints import EXPECTED, counting

IN_FILES = {"execution__checkpointing__dir": "/checkpoints", "rayflink__batch__max_rows": "3"}
LARGE = {**IN_FILES, "execution__checkpointing__data_inline_threshold": "0 b"}


def happened(story: Story, what: str, who: str = "") -> bool:
    return any(each.what == what and who in f"{each.who} {each.detail}" for each in story.happenings)


@pytest.mark.parametrize(
    ("fault", "what", "who"),
    [
        (KillSlot(1, move=100), "kill", "(2/2)"),
        (KillCoordinator(move=150), "take over", "coordinator 1"),
        (KillCoordinator(move=150, zombie_ms=30), "end", "coordinator 0"),
        (CrashBeforeNotify(0), "take over", "coordinator 1"),
        (CrashBeforeNotify(0, "Sink"), "kill", "Sink"),
        (LoseCommand(0, "CheckpointComplete"), "lose", "CheckpointComplete never arrives"),
        (LoseCommand(1, "TriggerCheckpoint", obeyed=True), "lose", "arrives, and the answer is lost"),
        (FullStorage(0, 3), "lose", "refused"),
        (UnheardStorage(0, 3), "lose", "done, but the answer was lost"),
        (SlowStorage(1.0, 50), "publish", ""),
        (DelayCommands(1.0, 20), "command", ""),
        (FreezeTask("Map", move=200, for_ms=60_000), "thaw", "Map"),
        (TakeSavepoint(move=100), "publish", "CheckpointPublished"),
    ],
    ids=lambda value: repr(value) if isinstance(value, Fault) else "",
)
@pytest.mark.slow
def test_a_job_bears_it(fault, what, who):
    story = simulate(counting(**IN_FILES), 4, [fault])
    assert happened(story, what, who), story.describe("the fault did not strike")
    assert sorted(story.collected()) == EXPECTED


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", [LoseFile(move=150), LyingStorage(0, 1, "write", "/chk-1/")], ids=["lost", "pretended"]
)
def test_a_file_that_is_not_there_is_named_or_an_older_checkpoint_is_used(fault):
    for seed in range(6):
        story = simulate(counting(**LARGE), seed, [fault, KillTask("Sink", move=250)])
        if story.status is JobStatus.FINISHED:
            assert sorted(story.collected()) == EXPECTED
        else:
            assert "there is no such file" in story.failure and "/checkpoints/" in story.failure
