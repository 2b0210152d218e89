"""A keyed multiset: rows by a key that many rows may have, which come and go by their values.

It is a keyed table with an index of the rows of each key. What identifies a row depends on what is known of the input:
a unique key, whose row a new one replaces, or all columns, with the number of equal rows, or nothing, where no row
is ever taken back.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from ..aggregates.reductions import to_arrow
from .comparable_keys import distinct_keys, fingerprints
from .frame_memory import Columns
from .key_rows import take_rows
from .keyed_table import IndexForm, KeyedTable
from .record_layout import FLAGS, IN_USE, KEY_HEAP, VALUE_HEAP
from .running_counts import running_counts
from .runs import first_of_runs, stable_order
from .secondary_index import RowsOfKeys

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]


class RowForm(Enum):
    """Distinctions between the rows of a key."""

    SINGLE = "KeyContainsUniqueKey"
    UNIQUE = "HasUniqueKey"
    COUNTED = "NoUniqueKey"
    APPENDED = "AppendOnly"


class MultisetSpec(NamedTuple):
    """The rows of a multiset.

    Args:
        columns: types of the columns: those of the key, then the rest of the unique key, then the others.
        width: number of the key's columns.
        form: what distinguishes the rows of a key.
        unique_width: of a unique key, the number of its columns and those of the key.
        has_matches: whether each row has a number that `put_matches` replaces.
        keeps_matches: whether a row that comes while there are equal ones leaves their number as it is, in the form
            with the number of equal rows; else they get the number of the row that came last.
        ttl_ms: how long a row is known that is not written; 0: for ever.
    """

    columns: tuple[pa.DataType, ...]
    width: int
    form: RowForm
    unique_width: int = 0
    has_matches: bool = False
    ttl_ms: int = 0
    keeps_matches: bool = False


class KeyedMultiset:
    """Rows by a key.

    The numbers of rows that the methods take and return are valid until the next change.

    >>> spec = MultisetSpec((pa.int64(), pa.string()), 1, RowForm.COUNTED)
    >>> rows = KeyedMultiset(spec)
    >>> rows.change([pa.array([7, 7, 8]), pa.array(["a", "a", "b"])], np.array([1, 1, 1]), None, now_ms=0)
    >>> rows.change([pa.array([7]), pa.array(["a"])], np.array([-1]), None, now_ms=0)
    >>> stored = rows.find([pa.array([7])])
    >>> [column.to_pylist() for column in rows.take(stored.order[stored.first[0] : stored.first[0] + stored.count[0]])]
    [[7], ['a']]

    Args:
        spec: of the rows.
    """

    def __init__(self, spec: MultisetSpec) -> None:
        columns, form = spec.columns, spec.form
        keys = {RowForm.SINGLE: spec.width, RowForm.APPENDED: spec.width, RowForm.UNIQUE: spec.unique_width}
        self._key_width = keys.get(form, len(columns))
        self._spec, self._form = spec, form
        matches = [pa.int64()] if spec.has_matches else []
        self._count = 0
        """Number of the value that is the number of equal rows, in the form that has one."""
        self._matches = len(columns) - self._key_width + (form is RowForm.COUNTED)
        values = [*columns[self._key_width :], *([pa.int64()] if form is RowForm.COUNTED else []), *matches]
        index = {RowForm.SINGLE: IndexForm.KEY, RowForm.APPENDED: IndexForm.PARTITION}
        self.table = KeyedTable(
            columns[: self._key_width], values, spec.ttl_ms, spec.width, index.get(form, IndexForm.KEY_AND_PARTITION)
        )
        """The table that has the rows; it is opened and stored by the operator."""

    def find(self, keys: Columns) -> RowsOfKeys:
        """Return the rows of each key, those included whose time is over; keys may be equal.

        Args:
            keys: columns of keys.
        """
        comparable = self.table.comparable(keys)
        if self._form is not RowForm.SINGLE:
            return self.table.find_partitions(comparable)
        rows = self.table.lookup(comparable)
        is_known = rows >= 0
        order = np.where(is_known, rows, 0).astype(np.uint32)
        return RowsOfKeys(order, np.arange(len(rows)), is_known.astype(np.int64))

    def is_over(self, rows: Rows, now_ms: int) -> NDArray[np.bool_]:
        """Return of which rows the time is over: bool[n]."""
        return self.table.is_over(rows, now_ms)

    def take(self, rows: Rows) -> Columns:
        """Return the columns of rows, at least one, in their order."""
        table = self.table
        records = table.records.take(rows)
        columns = table.keys_of(records, lambda _: table.key_heap.take(records[KEY_HEAP]))
        if self._form is not RowForm.COUNTED and len(self._spec.columns) > self._key_width:
            values = table.values_of(records, lambda _: table.value_heap.take(records[VALUE_HEAP]))
            columns += values[: len(self._spec.columns) - self._key_width]
        return columns

    def lookup(self, columns: Columns) -> Rows:
        """Return the stored row that is equal to each one, in the form with the number of equal rows; -1: none is."""
        return self.table.lookup(self.table.comparable(columns))

    def are_stored(self, rows: Rows, matches: Rows) -> NDArray[np.bool_]:
        """Return which numbers are those of rows that still have these matches: bool[n]."""
        records = self.table.records.take(rows)
        is_in_use = records[FLAGS] & IN_USE != 0
        are_stored: NDArray[np.bool_] = is_in_use & (records[self.table.layout.value_field(self._matches)] == matches)
        return are_stored

    def counts(self, rows: Rows) -> Rows | None:
        """Return how many equal rows each one stands for; None: one each."""
        return self.table.numbers(rows, self._count) if self._form is RowForm.COUNTED else None

    def matches(self, rows: Rows) -> Rows:
        """Return the number that each row has: int64[n]."""
        return self.table.numbers(rows, self._matches)

    def greatest_match(self) -> int:
        """Return the greatest number that a row has; -1: there are no rows."""
        numbers = [self.matches(rows).max() for rows in self.table.records.in_use() if len(rows)]
        return int(max(numbers, default=-1))

    def put_matches(self, rows: Rows, matches: Rows, now_ms: int) -> None:
        """Replace the numbers that rows have, no two of them equal."""
        self.table.put_numbers(rows, self._matches, matches, now_ms)

    def change(self, columns: Columns, signs: Rows, matches: Rows | None, now_ms: int) -> None:
        """Add rows, and take rows back that are equal, one after the other; one that is not there is left alone.

        Args:
            columns: of the rows.
            signs: 1 for each row that comes, -1 for each that is taken back.
            matches: the number that a row gets that comes; None: rows have none.
        """
        if not len(signs):
            return
        match self._form:
            case RowForm.APPENDED:
                assert signs.min() > 0, "rows of an insert-only input are never taken back"
                keys = self.table.comparable(columns[: self._key_width])
                self.table.add(keys, self._values(columns, matches, None), now_ms)
            case RowForm.COUNTED:
                self._count_rows(columns, signs, matches, now_ms)
            case _:
                self._replace(columns, signs, matches, now_ms)

    def effects(self, columns: Columns, signs: Rows, now_ms: int) -> Rows:
        """Return what each change, one after the other, adds to the number of rows: 1, -1 or 0; none is made.

        A row that is not there cannot be taken back, and one that replaces another by its unique key adds none.

        Args:
            columns: of the rows.
            signs: 1 for each row that comes, -1 for each that is taken back.
        """
        if not len(signs) or self._form is RowForm.APPENDED:
            return signs
        if self._form is RowForm.COUNTED and signs.min() > 0:
            return signs
        keys = self.table.comparable(columns[: self._key_width])
        codes, firsts = distinct_keys(keys, fingerprints(keys))
        rows = self.table.find(take_rows(keys, firsts), now_ms)
        counts = (rows >= 0).astype(np.int64)
        if self._form is RowForm.COUNTED:
            known = np.flatnonzero(rows >= 0)
            counts[known] = self.table.numbers(rows[known], self._count)
            return np.where(running_counts(codes, signs, counts).before + signs < 0, 0, signs)
        order = stable_order(codes)
        is_there = np.append(0, signs[order][:-1] > 0)
        starts = np.flatnonzero(first_of_runs(codes[order]))
        is_there[starts] = counts[codes[order[starts]]]
        effects = np.empty(len(signs), dtype=np.int64)
        effects[order] = (signs[order] > 0) - is_there
        return effects

    def _values(self, columns: Columns, matches: Rows | None, counts: Rows | None) -> Columns:
        numbers = [numbers for numbers in (counts, matches) if numbers is not None]
        return [*columns[self._key_width :], *(to_arrow(column, pa.int64()) for column in numbers)]

    def _replace(self, columns: Columns, signs: Rows, matches: Rows | None, now_ms: int) -> None:
        """Let the last change of each unique key in a batch decide."""
        keys = self.table.comparable(columns[: self._key_width])
        codes, firsts = distinct_keys(keys, fingerprints(keys))
        last = np.empty(len(firsts), dtype=np.int64)
        last[codes] = np.arange(len(signs))  # of several for one place the last one wins
        if len(last) < len(signs):
            columns, signs = take_rows(columns, last), signs[last]
            keys = take_rows(keys, firsts)
            matches = None if matches is None else matches[last]
        rows = self.table.find(keys, now_ms)
        self._store(rows, keys, signs > 0, self._values(columns, matches, None), now_ms)

    def _count_rows(self, columns: Columns, signs: Rows, matches: Rows | None, now_ms: int) -> None:
        """Count equal rows; where more are taken back than there are, the others have expired."""
        keys = self.table.comparable(columns)
        codes, firsts = distinct_keys(keys, fingerprints(keys))
        if len(firsts) < len(signs):
            keys = take_rows(keys, firsts)
        rows = self.table.find(keys, now_ms)
        known = np.flatnonzero(rows >= 0)
        counts = np.zeros(len(rows), dtype=np.int64)
        counts[known] = self.table.numbers(rows[known], self._count)
        if len(firsts) == len(signs):
            after = np.maximum(counts + signs, 0)
        else:
            after = _counts_after(codes, signs, counts)
        if matches is not None:
            arrivals = _arrivals(codes, signs, counts) if self._spec.keeps_matches else np.flatnonzero(signs > 0)
            matches = self._fresh_matches(codes, arrivals, matches, rows)
        if len(known) == len(rows) and matches is None and (after > 0).all():
            self.table.put_numbers(rows, self._count, after, now_ms)
            return
        self._store(rows, keys, after > 0, self._values([], matches, after), now_ms)

    def _fresh_matches(self, codes: NDArray[np.intp], arrivals: Rows, matches: Rows, rows: Rows) -> Rows:
        """Return the number that each distinct row gets: that of its last arrival, or what it has.

        Args:
            codes: the distinct row of each change.
            arrivals: the changes that bring a number.
        """
        fresh = np.zeros(len(rows), dtype=np.int64)
        known = np.flatnonzero(rows >= 0)
        fresh[known] = self.matches(rows[known])
        fresh[codes[arrivals]] = matches[arrivals]
        return fresh

    def _store(self, rows: Rows, keys: Columns, is_present: NDArray[np.bool_], values: Columns, now_ms: int) -> None:
        """Store what is present by its keys, and remove the rest, of which rows may be -1."""
        known, new = np.flatnonzero((rows >= 0) & is_present), np.flatnonzero((rows < 0) & is_present)
        gone = rows[(rows >= 0) & ~is_present]
        if len(known):
            self.table.put(rows[known], take_rows(values, known), now_ms)
        if len(gone):
            self.table.remove(gone)
        if len(new) == len(rows):
            self.table.add(keys, values, now_ms)
        elif len(new):
            self.table.add(take_rows(keys, new), take_rows(values, new), now_ms)


def _counts_after(codes: NDArray[np.intp], signs: Rows, counts: Rows) -> Rows:
    """Return the number of equal rows behind all changes, none of which lets it fall below zero.

    Args:
        codes: the distinct row of each change.
        signs: of the changes.
        counts: before them, of each distinct row.
    """
    order = stable_order(codes)
    starts = np.flatnonzero(first_of_runs(codes[order]))
    sums = np.cumsum(signs[order])
    before = np.append(0, sums)[starts]
    least = np.minimum(np.minimum.reduceat(sums, starts) - before + counts, 0)
    after: Rows = np.append(sums[starts[1:] - 1], sums[-1]) - before + counts - least
    return after


def _arrivals(codes: NDArray[np.intp], signs: Rows, counts: Rows) -> Rows:
    """Return the changes that add a row of which there is none just then.

    Args:
        codes: the distinct row of each change.
        signs: of the changes.
        counts: before them, of each distinct row.

    >>> _arrivals(np.array([0, 1, 0, 0, 0, 0]), np.array([1, 1, 1, -1, -1, 1]), np.array([0, 3])).tolist()
    [0, 5]
    """
    arrivals: Rows = np.flatnonzero((signs > 0) & (running_counts(codes, signs, counts).before == 0))
    return arrivals


__all__ = ["KeyedMultiset", "MultisetSpec", "RowForm"]
