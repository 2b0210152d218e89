"""A hypothesis state machine: a job with a keyed multiset against a dict; hypothesis must be installed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from typing import ClassVar, Protocol

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from rayflink.operators.base import OperatorContext, OperatorSnapshot
from rayflink.state.clock import ManualClock
from rayflink.table.runtime.keyed_state.frame_snapshots import key_groups_of_rows
from rayflink.table.runtime.keyed_state.key_rows import take_rows
from rayflink.table.runtime.keyed_state.keyed_multiset import KeyedMultiset, MultisetSpec, RowForm
from rayflink.table.runtime.keyed_state.stored_table import StoredTable

from ..backend_laws.subject import same
from .model import TTL_MS, StoredHistory
from .subject import MAX_PARALLELISM, Row, context_of

COLUMNS = (pa.int64(), pa.string(), pa.int32(), pa.string())
WIDTH, UNIQUE_WIDTH = 2, 3
"""Columns of the key, and those of the unique key."""
columns_of_rows = st.tuples(
    st.one_of(st.none(), st.integers(0, 3)),
    st.sampled_from(["", "a"]),
    st.one_of(st.none(), st.integers(0, 4)),
    st.sampled_from([None, "x", "y"]),
)


class MakeMultiset(Protocol):
    """A factory of new, empty multisets, open and with the memory of their operator's context."""

    def __call__(self, spec: MultisetSpec, ctx: OperatorContext) -> tuple[KeyedMultiset, StoredTable]: ...


class MultisetJob:
    """Subtasks with a multiset each, which has the rows of their key groups.

    Args:
        make_multiset: makes the multisets under test.
        spec: of the rows, whose columns are `COLUMNS`.
        parallelism: how many subtasks there are.
        clock: of the job.
        snapshots: of each subtask, to restore.
    """

    def __init__(
        self, make_multiset: MakeMultiset, spec: MultisetSpec, parallelism: int, clock: ManualClock,
        snapshots: Sequence[Sequence[OperatorSnapshot]] = (),
    ) -> None:  # fmt: skip
        self.clock, self._spec = clock, spec
        self.multisets: list[KeyedMultiset] = []
        self.subtasks: list[StoredTable] = []
        for subtask in range(parallelism):
            multiset, stored = make_multiset(spec, context_of(clock, subtask, parallelism))
            self.multisets.append(multiset)
            self.subtasks.append(stored)
            if snapshots:
                stored.restore(snapshots[subtask])

    def change(self, rows: Sequence[Row], signs: Sequence[int], matches: Sequence[int]) -> None:
        """Add and take back rows."""
        columns = _columns(rows, len(COLUMNS))
        for multiset, chosen in self._hash_partitioned(columns):
            numbers = np.array(matches)[chosen] if self._spec.has_matches else None
            multiset.change(take_rows(columns, chosen), np.array(signs)[chosen], numbers, self.clock.now_ms())

    def put_matches(self, keys: Sequence[Row], matches: int) -> None:
        """Replace the number of matches of all rows of some keys, no two of them equal."""
        columns = _columns(keys, WIDTH)
        for multiset, chosen in self._hash_partitioned(columns):
            rows = self._rows(multiset, take_rows(columns, chosen))
            if len(rows):
                multiset.put_matches(rows, np.full(len(rows), matches), self.clock.now_ms())

    def rows(self, keys: Sequence[Row]) -> Counter[tuple[Row, int, int]]:
        """Return (row, number of equal ones, matches) of keys, no two of them equal."""
        counted: Counter[tuple[Row, int, int]] = Counter()
        columns = _columns(keys, WIDTH)
        for multiset, chosen in self._hash_partitioned(columns):
            rows = self._rows(multiset, take_rows(columns, chosen))
            if not len(rows):
                continue
            stored = zip(*(column.to_pylist() for column in multiset.take(rows)), strict=True)
            equal = multiset.counts(rows)
            equal = np.ones(len(rows), dtype=np.int64) if equal is None else equal
            matches = multiset.matches(rows) if self._spec.has_matches else np.zeros(len(rows), dtype=np.int64)
            counted.update(zip(stored, equal.tolist(), matches.tolist(), strict=True))
        return counted

    def _rows(self, multiset: KeyedMultiset, keys: Sequence[pa.Array]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        stored = multiset.find(list(keys))
        spans = zip(stored.first.tolist(), stored.count.tolist(), strict=True)
        rows = np.concatenate([stored.order[first : first + length] for first, length in spans]).astype(np.int64)
        return rows[~multiset.is_over(rows, self.clock.now_ms())]

    def count(self) -> int:
        """Return the number of rows that are stored."""
        return sum(len(multiset.table) for multiset in self.multisets)

    def sweep(self) -> None:
        """Sweep the slices that are due."""
        for multiset in self.multisets:
            while (due := multiset.table.sweep_at) is not None and due <= self.clock.now_ms():
                multiset.table.sweep(self.clock.now_ms())

    def _hash_partitioned(
        self, columns: Sequence[pa.Array]
    ) -> Iterator[tuple[KeyedMultiset, np.ndarray[tuple[int], np.dtype[np.int64]]]]:
        rows = len(columns[0])
        groups = key_groups_of_rows(columns[:WIDTH], rows, MAX_PARALLELISM) if rows else np.zeros(0, np.int16)
        owners = groups.astype(np.int64) * len(self.multisets) // MAX_PARALLELISM
        for number, multiset in enumerate(self.multisets):
            chosen = np.flatnonzero(owners == number)
            if len(chosen):
                yield multiset, chosen


class MultisetHistory(StoredHistory):
    """Rows of a multiset: which row a change is of, its values, how many equal ones there are, and their matches."""

    make_multiset: ClassVar[MakeMultiset]

    @initialize(
        parallelism=st.integers(1, 3), form=st.sampled_from(RowForm), has_matches=st.booleans(), expires=st.booleans(),
        keeps_matches=st.booleans(),
    )  # fmt: skip
    def begin(
        self, parallelism: int, form: RowForm, has_matches: bool, expires: bool, keeps_matches: bool
    ) -> None:  # fmt: skip
        ttl_ms = TTL_MS if expires else 0
        self.spec = MultisetSpec(COLUMNS, WIDTH, form, UNIQUE_WIDTH, has_matches, ttl_ms, keeps_matches)
        self.clock, self.numbers, self.known = ManualClock(0), count(), set[Row]()
        self.start(self.new_job(parallelism, ()))

    def new_job(self, parallelism: int, snapshots: Sequence[Sequence[OperatorSnapshot]]) -> MultisetJob:
        self.job = MultisetJob(self.make_multiset, self.spec, parallelism, self.clock, snapshots)
        return self.job

    @rule(changes=st.lists(st.tuples(columns_of_rows, st.sampled_from([1, 1, -1]), st.integers(0, 3)), max_size=40))
    def change(self, changes: list[tuple[Row, int, int]]) -> None:
        if self.spec.form is RowForm.APPENDED:
            changes = [change for change in changes if change[1] > 0]
        if not changes:
            return
        rows, signs, matches = map(list, zip(*changes, strict=True))
        self.job.change(rows, signs, matches)
        for row, sign, number in changes:
            self.known.add(row[:WIDTH])
            self._apply(row, sign, number if self.spec.has_matches else 0)

    def _apply(self, row: Row, sign: int, matches: int) -> None:
        identity = self._identity(row)
        equal, known = 0, self.model.get(identity)
        if known is not None and self._is_alive(known[0]) and self.spec.form is RowForm.COUNTED:
            equal = known[2]
            matches = known[3] if sign < 0 or self.spec.keeps_matches else matches
        equal += sign
        if equal > 0:
            self.model[identity] = self.clock.now_ms(), row, equal, matches
        else:
            self.model.pop(identity, None)

    def _identity(self, row: Row) -> Row:
        match self.spec.form:
            case RowForm.SINGLE:
                return row[:WIDTH]
            case RowForm.UNIQUE:
                return row[:UNIQUE_WIDTH]
            case RowForm.COUNTED:
                return row
            case RowForm.APPENDED:
                return (next(self.numbers),)

    def _is_alive(self, time: int) -> bool:
        return not self.spec.ttl_ms or time + self.spec.ttl_ms > self.clock.now_ms()

    @rule(
        keys=st.lists(columns_of_rows.map(lambda row: row[:WIDTH]), max_size=4, unique=True), matches=st.integers(0, 3)
    )
    def put_matches(self, keys: list[Row], matches: int) -> None:
        if self.spec.has_matches:
            self.job.put_matches(keys, matches)
            for identity, (time, row, equal, _) in list(self.model.items()):
                if row[:WIDTH] in keys and self._is_alive(time):
                    self.model[identity] = self.clock.now_ms(), row, equal, matches

    @rule()
    def compare_all(self) -> None:
        alive = Counter(
            (row, equal, matches) for time, row, equal, matches in self.model.values() if self._is_alive(time)
        )  # fmt: skip
        same("all rows", self.job.rows(sorted(self.known, key=repr)), alive)
        if not self.spec.ttl_ms:
            same("the number of rows", self.job.count(), alive.total())


def _columns(rows: Sequence[Row], width: int) -> list[pa.Array]:
    return [pa.array([row[number] for row in rows], COLUMNS[number]) for number in range(width)]


__all__ = ["MakeMultiset", "MultisetHistory", "MultisetJob"]
