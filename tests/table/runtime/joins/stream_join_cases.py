"""Words for tests of joins of streams, and a model that goes row by row, as Flink's operators do."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch
from rayflink.common.records.row_kinds import with_kinds
from rayflink.common.types import Row, RowKind
from rayflink.datastream.streams.selectors import NamedField
from rayflink.operators.base import Operator
from rayflink.table.plan.joins import JoinKind
from rayflink.table.plan.typed import Call, Column, Session, named
from rayflink.table.runtime.joins.join_rows import JoinSide, JoinSpec
from rayflink.table.runtime.joins.stored_side import SideState
from rayflink.table.runtime.joins.stream_join import StreamJoinOperator, StreamJoinSpec
from rayflink.table.runtime.keyed_state.keyed_multiset import RowForm
from rayflink.table.types import DataTypes
from rayflink.testing import rec
from rayflink.testing.elements import Columns, Record, columns

INSERT, BEFORE, AFTER, DELETE = RowKind
WORD, ID, N = range(3)
LEFT = pa.schema([("word", pa.string()), ("id", pa.int64()), ("n", pa.int64())])
RIGHT = pa.schema([("word0", pa.string()), ("id0", pa.int64()), ("m", pa.int64())])
BY_WORD = (NamedField("word"), NamedField("word0"))
LESS = Call(DataTypes.BOOLEAN(), named("<"), (Column(DataTypes.BIGINT(), 2, "n"), Column(DataTypes.BIGINT(), 5, "m")))
"""n < m."""
Values = tuple[Any, ...]
Change = tuple[RowKind, Values]
IDENTITIES: dict[RowForm, Sequence[int]] = {
    RowForm.SINGLE: (WORD,), RowForm.UNIQUE: (WORD, ID), RowForm.COUNTED: (WORD, ID, N), RowForm.APPENDED: (),
}  # fmt: skip


def batch(changes: Sequence[Change], side: int = 0) -> Columns:
    """Changes as one batch, with kinds where not all rows come."""
    schema = (LEFT, RIGHT)[side]
    data = [pa.array([values[place] for _, values in changes], kind) for place, kind in enumerate(schema.types)]
    rows = pa.RecordBatch.from_arrays(data, schema=schema)
    kinds = np.array([kind.value for kind, _ in changes], dtype=np.int8)
    return columns(ArrowBatch(with_kinds(rows, kinds) if kinds.any() else rows))


@dataclass(frozen=True)
class StreamJoinCase:
    """A join by word.

    Args:
        forms: of the sides.
        is_bounded: n < m must hold, too.
        has_key: else all rows match.
    """

    kind: JoinKind
    forms: tuple[RowForm, RowForm] = (RowForm.COUNTED, RowForm.COUNTED)
    is_bounded: bool = False
    nulls_match: bool = False
    has_key: bool = True
    ttls: tuple[int, int] = (0, 0)
    with_before: bool = True

    def __call__(self) -> Operator:
        return StreamJoinOperator(self.spec)

    @property
    def spec(self) -> StreamJoinSpec:
        """What the operator is to do."""
        keys = (WORD,) if self.has_key else ()
        left, right = (
            JoinSide(schema, keys, keys, "rows", (ID,) if form is RowForm.UNIQUE else keys)
            for schema, form in zip((LEFT, RIGHT), self.forms, strict=True)
        )
        result = LEFT if self.kind.is_of_left else pa.schema([*LEFT, *RIGHT])
        condition = LESS if self.is_bounded else None
        spec = JoinSpec(self.kind, left, right, (self.nulls_match,) * len(keys), condition, result, Session())
        states = [
            SideState(form, ttl, has_matches)
            for form, ttl, has_matches in zip(self.forms, self.ttls, self.are_counted, strict=True)
        ]
        return StreamJoinSpec(spec, states[0], states[1], self.with_before)

    @property
    def are_counted(self) -> tuple[bool, bool]:
        """Return whether the rows of each side have the number of their partners."""
        return self.kind.keeps_left or self.kind.is_of_left, self.kind.keeps_right

    def out(self, kind: RowKind, left: Values | None, right: Values | None = None) -> Record:
        """A change of the result."""
        names = LEFT.names if self.kind.is_of_left else [*LEFT.names, *RIGHT.names]
        values = (*(left or (None,) * 3), *(() if self.kind.is_of_left else right or (None,) * 3))
        row = Row(*names)(*values)
        row.set_row_kind(kind)
        return rec(row)


@dataclass
class _Stored:
    row: Values
    equal: int
    partners: int
    time: int


@dataclass
class StreamJoinModel:
    """Follows the rows of both sides in dicts, as Flink's StreamingJoinOperator and the one of semi joins do."""

    case: StreamJoinCase
    rows: tuple[dict[Values, _Stored], dict[Values, _Stored]] = field(default_factory=lambda: ({}, {}))
    added: int = 0

    def add(self, changes: Sequence[Change], side: int, now: int = 0) -> Iterator[list[list[Record]]]:
        """Yield the changes of the result by change, in parts whose order counts."""
        for kind, row in changes:
            comes = kind in (INSERT, AFTER)
            partners = [] if self._matches_nothing(row) else self._partners(row, side, now)
            yield self._changes(kind, row, side, partners, now)
            if not self._matches_nothing(row):
                self._store(row, side, comes, sum(partner.equal for partner in partners), now)

    def _matches_nothing(self, row: Values) -> bool:
        return self.case.has_key and row[WORD] is None and not self.case.nulls_match

    def _partners(self, row: Values, side: int, now: int) -> list[_Stored]:
        ttl = self.case.ttls[1 - side]
        return [
            stored for stored in self.rows[1 - side].values()
            if (not self.case.has_key or stored.row[WORD] == row[WORD]) and (not ttl or stored.time + ttl > now)
            and (not self.case.is_bounded or _is_less(*((row, stored.row) if side == 0 else (stored.row, row))))
        ]  # fmt: skip

    def _changes(
        self, kind: RowKind, row: Values, side: int, partners: list[_Stored], now: int
    ) -> list[list[Record]]:  # fmt: skip
        case, comes = self.case, kind in (INSERT, AFTER)
        own_outer, other_outer = (case.kind.keeps_left, case.kind.keeps_right)[:: 1 if side == 0 else -1]
        is_anti, plain = case.kind is JoinKind.ANTI, INSERT if comes else DELETE
        turned: list[_Stored] = []
        if case.are_counted[1 - side]:
            for partner in partners:
                turned += [partner] * partner.equal if partner.partners == (0 if comes else 1) else []
                partner.partners += 1 if comes else -1
                partner.time = now
        if case.kind.is_of_left and side == 0:
            return [[self._out(kind, row, None, side)]] if bool(partners) is not is_anti else []
        if case.kind.is_of_left:
            turned_kind = kind if not is_anti else DELETE if comes else INSERT
            return [[case.out(turned_kind, partner.row) for partner in turned]]
        if own_outer and not partners:
            return [[self._out(plain, row, None, side)]]
        alone = [self._out(DELETE if comes else INSERT, partner.row, None, 1 - side) for partner in turned]
        pair_kind = plain if own_outer or (comes and other_outer) else kind
        pairs = [self._out(pair_kind, row, partner.row, side) for partner in partners for _ in range(partner.equal)]
        return [alone, pairs] if comes else [pairs, alone]

    def _out(self, kind: RowKind, row: Values, other: Values | None, side: int) -> Record:
        kind = DELETE if kind is BEFORE and not self.case.with_before else kind
        return self.case.out(kind, *((row, other) if side == 0 else (other, row)))

    def _store(self, row: Values, side: int, comes: bool, partners: int, now: int) -> None:
        form, ttl, rows = self.case.forms[side], self.case.ttls[side], self.rows[side]
        identity = tuple(row[column] for column in IDENTITIES[form])
        if form is RowForm.APPENDED:
            self.added += 1
            identity = (self.added,)
        known = rows.get(identity)
        if known is not None and (form is not RowForm.COUNTED or (ttl and known.time + ttl <= now)):
            known = None
        equal = (known.equal if known else 0) + (1 if comes else -1)
        if equal > 0:
            partners = partners if comes else known.partners if known else 0
            rows[identity] = _Stored(row, equal, partners, now)
        else:
            rows.pop(identity, None)


def _is_less(left: Values, right: Values) -> bool:
    return left[N] is not None and right[N] is not None and left[N] < right[N]


def ensure_equal(found: Sequence[Any], expected: Sequence[list[list[Record]]], by_phase: bool = True) -> None:
    """Check that changes come in the order of the rows that make them, and of their parts where it counts."""
    groups = [group for parts in expected for group in (parts if by_phase else [[e for part in parts for e in part]])]
    rest = [_shown(record) for record in found]
    for group in groups:
        part, rest = rest[: len(group)], rest[len(group) :]
        assert Counter(part) == Counter(map(_shown, group))
    assert not rest


def _shown(record: Any) -> tuple[Any, ...]:
    return (record.value.get_row_kind(), *record.value)


def random_changes(chance: random.Random, form: RowForm, alive: list[Values], count: int) -> list[Change]:
    """Return changes of rows that mostly make sense: rows that came are taken back, or replaced by others."""
    changes: list[Change] = []
    while len(changes) < count:
        row = (chance.choice(["a", "b", "c", None]), chance.randrange(4), chance.choice([1, 2, 3, None]))
        if form is not RowForm.APPENDED and alive and chance.random() < 0.5:
            old = alive.pop(chance.randrange(len(alive)))
            if chance.random() < 0.5:
                changes.append((DELETE, old))
                continue
            changes += [(BEFORE, old), (AFTER, row)]
        else:
            changes.append((INSERT, row))
        alive.append(row)
    return changes


def cases(kind: JoinKind) -> list[StreamJoinCase]:
    """Return joins of a kind with all forms of state."""
    forms = [(RowForm.COUNTED, RowForm.COUNTED), (RowForm.UNIQUE, RowForm.COUNTED), (RowForm.COUNTED, RowForm.UNIQUE),
             (RowForm.SINGLE, RowForm.UNIQUE), (RowForm.APPENDED, RowForm.SINGLE),
             (RowForm.APPENDED, RowForm.APPENDED)]  # fmt: skip
    plain = [StreamJoinCase(kind, form, is_bounded) for form in forms for is_bounded in (False, True)]
    return [
        *plain, replace(plain[0], nulls_match=True), replace(plain[1], has_key=False),
        replace(plain[2], ttls=(10, 25)), replace(plain[0], ttls=(20, 0), with_before=False),
    ]  # fmt: skip


Make = Callable[[], Operator]
