"""Partial matches in RocksDB: a checkpoint stores those that have changed since the one before."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import pytest

from rayflink.cep.pattern import Pattern
from rayflink.cep.runtime.cep_operator import CepOperator, MatchOptions
from rayflink.common.records.batches import RowBatch
from rayflink.state.snapshots import StoredSnapshot, loaded, stored
from rayflink.state.storage.memory_storage import MemoryStorage
from rayflink.state.storage.snapshot_files import SnapshotFileReader, SnapshotFileWriter, SnapshotPlace
from rayflink.testing import OperatorHarness
from rayflink.testing.harness import Place

A_B_C = (
    Pattern[tuple[int, str]]
    .begin("a").where(lambda event: event[1] == "a")
    .followed_by("b").where(lambda event: event[1] == "b")
    .followed_by("c").where(lambda event: event[1] == "c").within(100_000)
)  # fmt: skip
KEYS = 5_000


def harness_of(*restore: Any) -> OperatorHarness:
    """The operator, which emits the key of each match, with so little memory that its state is in a database."""
    place = Place(config={"state.backend.rocksdb.memory.fixed-per-slot": "100 kb"})
    return OperatorHarness(
        lambda: CepOperator(itemgetter(0), A_B_C, lambda match, _: [match["a"][0][0]], MatchOptions()),
        place=place, restore=restore,
    )  # fmt: skip


def feed(harness: OperatorHarness, keys: range, kind: str) -> None:
    """Match an event of each key."""
    now = max(harness.operators[0].watermark, 0) + 1
    harness.process_batch(RowBatch([(key, kind) for key in keys], [now] * len(keys)))
    harness.advance_watermark(now)


def checkpoint(harness: OperatorHarness, storage: MemoryStorage, number: int) -> tuple[StoredSnapshot, int]:
    """Complete a checkpoint in a storage, and return it with the bytes that it has stored."""
    (operator,) = harness.operators
    snapshot = operator.snapshot_state(number)
    assert snapshot is not None and snapshot.capture is not None
    writer = SnapshotFileWriter(storage, SnapshotPlace.of_checkpoint(number, 0), uploads=0)
    written = stored(snapshot, writer)
    writer.finish()
    snapshot.capture.release()
    harness.notify_checkpoint_complete(number)
    return written, writer.bytes_written


@pytest.mark.slow
@pytest.mark.parametrize("changes", [50, 500])
def test_a_checkpoint_stores_bytes_in_proportion_to_the_partial_matches_that_changed(changes: int) -> None:
    storage = MemoryStorage()
    with harness_of() as harness:
        feed(harness, range(KEYS), "a")
        _, everything = checkpoint(harness, storage, 1)
        _, nothing = checkpoint(harness, storage, 2)
        feed(harness, range(changes), "b")
        written, part = checkpoint(harness, storage, 3)
        name = harness.operators[0].ctx.operator_id
    assert part < everything < written.size_bytes, "what is in the storage is not stored again"
    share = (part - nothing) / (everything - nothing)
    assert 0.5 < share / (changes / KEYS) < 2, f"{everything}, {nothing} and {part} bytes"
    with harness_of({name: (loaded(written, SnapshotFileReader(storage)),)}) as harness:
        feed(harness, range(KEYS), "c")
        assert sorted(harness.output_values()) == list(range(changes))
