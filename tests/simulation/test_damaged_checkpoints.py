"""What a job starts from when files of its newest checkpoint are damaged or gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from rayflink.actors.messages.states import JobStatus
from rayflink.state.storage.storage import Storage
from rayflink.testing import KillTask
from rayflink.testing.faults import ClusterFault
from rayflink.testing.simulation import SimulatedCluster
from tests.simulation.test_checkpoints import EXPECTED, counting

Damage = Callable[[Storage, str], None]


def flip(storage: Storage, path: str) -> None:
    data = storage.read(path)
    storage.delete(path)
    storage.put_if_absent(path, data[:-1] + bytes([data[-1] ^ 1]))


def cut(storage: Storage, path: str) -> None:
    data = storage.read(path)
    storage.delete(path)
    storage.put_if_absent(path, data[: len(data) // 2])


def lose(storage: Storage, path: str) -> None:
    storage.delete(path)


@dataclass(frozen=True)
class DamageNewest(ClusterFault):
    """The state files of the newest checkpoint are damaged as soon as so many are kept; then a task dies."""

    damage: Damage
    kept: int

    def inject(self, cluster: Any, move: int) -> bool:
        kept = cluster.job.checkpoints.completed
        if len(kept) < self.kept:
            return False
        newest = kept[-1]
        for path in sorted(newest.manifest.files()):
            self.damage(cluster.disk.storage(newest.base), path)
        assert newest.manifest.files(), "the checkpoint has no files"
        return bool(cluster.kill_named("Sink"))


OPTIONS = {
    "execution__checkpointing__dir": "/checkpoints",
    "execution__checkpointing__data_inline_threshold": "0 b",
    "rayflink__batch__max_rows": "3",
}


@pytest.mark.parametrize("damage", [flip, cut, lose])
def test_an_older_checkpoint_is_used_where_there_is_one(damage: Damage) -> None:
    often = {"execution__checkpointing__num_retained": "3", "execution__checkpointing__interval": "2 ms"}
    graph = counting(**OPTIONS, **often)
    cluster = SimulatedCluster(graph, 1, [DamageNewest(damage, 2), KillTask("Map", move=900)])
    cluster.run()
    assert sorted(cluster.story.collected()) == EXPECTED
    told = [entry.failure.kind for entry in cluster.job.exceptions]
    assert told.count("MissingFileError") + told.count("DamagedFileError") >= 1


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (flip, "is damaged.*hold checksum .*, wanted checksum"),
        (cut, "is damaged"),
        (lose, "there is no such file.*start from an older checkpoint or from a savepoint"),
    ],
)
def test_where_there_is_none_the_job_fails_and_names_the_file(damage: Damage, said: str) -> None:
    cluster = SimulatedCluster(counting(**OPTIONS), 5, [DamageNewest(damage, 1)])
    result = cluster.run()
    assert result.status is JobStatus.FAILED and result.failure is not None
    assert pytest.raises(AssertionError, cluster.story.collected).match(said)
