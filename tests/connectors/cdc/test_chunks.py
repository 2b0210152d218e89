"""Chunks of a snapshot and the log together are the table, whatever the transactions did in between."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from rayflink.common.types import RowKind
from rayflink.connectors.cdc.chunks import ChunkMarks, FinishedChunk, SnapshotMark, chunks_between, surviving


@dataclass(frozen=True)
class Mark(SnapshotMark):
    """A snapshot that shows some transactions."""

    shown: frozenset[int]
    position: int

    @property
    def high(self) -> int:
        return self.position

    def contains(self, transaction: int) -> bool:
        return transaction in self.shown


def chunk_of(key: int, bounds: list[int]) -> int:
    return sum(bound <= key for bound in bounds)


def _transactions(rng: random.Random, count: int) -> list[list[tuple[RowKind, int | None, tuple[int, int] | None]]]:
    """Transactions of changes (kind, key before, row after), in the order of their commits."""
    table: dict[int, int] = {}
    transactions = []
    for number in range(count):
        changes: list[tuple[RowKind, int | None, tuple[int, int] | None]] = []
        for _ in range(rng.randint(1, 4)):
            key, value = rng.randrange(30), number * 10 + len(changes)
            if key not in table:
                table[key] = value
                changes.append((RowKind.INSERT, None, (key, value)))
            elif rng.random() < 0.3:
                del table[key]
                changes.append((RowKind.DELETE, key, None))
            else:
                free = [new for new in range(30) if new not in table]
                new = rng.choice(free) if free and rng.random() < 0.4 else key
                del table[key]
                table[new] = value
                changes.append((RowKind.UPDATE_AFTER, key, (new, value)))
        transactions.append(changes)
    return transactions


def _applied(transactions: list, numbers: set[int]) -> dict[int, int]:
    table: dict[int, int] = {}
    for number, changes in enumerate(transactions):
        for _, before, after in changes if number in numbers else ():
            if before is not None:
                del table[before]
            if after is not None:
                table[after[0]] = after[1]
    return table


@pytest.mark.parametrize("seed", range(40))
def test_chunks_and_the_rest_of_the_log_are_the_table_and_no_change_comes_twice(seed):
    rng = random.Random(seed)
    transactions = _transactions(rng, 40)
    bounds = sorted(rng.sample(range(1, 30), rng.randint(0, 4)))
    chunks = chunks_between("t", map(str, bounds))
    finished, derived = [], {}
    for chunk in chunks:
        # A snapshot shows all transactions before a point; those after it may be in the log before its position.
        shown = rng.randint(0, len(transactions))
        high = rng.randint(shown, len(transactions))
        finished.append(FinishedChunk(chunk, Mark(frozenset(range(shown)), high)))
        rows = _applied(transactions, set(range(shown)))
        derived.update({key: value for key, value in rows.items() if chunk_of(key, bounds) == chunk.number})
    rng.shuffle(finished)
    marks = ChunkMarks(finished)
    for number, changes in enumerate(transactions):
        for kind, before, after in changes:
            old = chunk_of(before if before is not None else after[0], bounds)
            new = chunk_of(after[0] if after is not None else before, bounds)
            contained = marks.contains(old, number), marks.contains(new, number)
            rest = (False, False) == contained if number >= marks.high else True
            assert rest, "a transaction behind the last position is in no snapshot"
            kept = surviving(kind, *contained)
            if kept in (RowKind.DELETE, RowKind.UPDATE_AFTER):
                del derived[before]  # it must be there
            if kept in (RowKind.INSERT, RowKind.UPDATE_AFTER):
                assert after[0] not in derived
                derived[after[0]] = after[1]
    assert derived == _applied(transactions, set(range(len(transactions))))


def test_the_marks_of_a_table_need_all_its_chunks():
    chunks = chunks_between("t", ["5", "9"])
    mark = Mark(frozenset(), 3)
    with pytest.raises(ValueError, match=r"chunks are missing, found \[0, 2\]"):
        ChunkMarks([FinishedChunk(chunks[0], mark), FinishedChunk(chunks[2], mark)])
