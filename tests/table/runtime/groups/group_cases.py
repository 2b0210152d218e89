"""Words for tests of GROUP BY over a stream: changes of rows, operators, and a model that goes row by row."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch
from rayflink.common.records.row_kinds import with_kinds
from rayflink.common.types import Row, RowKind
from rayflink.datastream.streams.selectors import NamedField
from rayflink.operators.base import Operator
from rayflink.table.plan.groups import MiniBatch
from rayflink.table.runtime.aggregates.aggregates import Aggregate, AggregateKind
from rayflink.table.runtime.groups.distinct_values import DistinctValuesOperator
from rayflink.table.runtime.groups.group_changes import GroupSpec, distinct_arguments
from rayflink.table.runtime.groups.group_operators import (
    GlobalGroupOperator,
    LocalGroupOperator,
    MiniBatchGroupOperator,
    StreamGroupOperator,
)
from rayflink.table.types import DataTypes
from rayflink.testing.elements import Columns, Record, columns, rec

from ..windows.window_cases import aggregate, schema_of

WORD, N, X, D, OK = range(5)
ROWS = DataTypes.ROW(
    [("word", DataTypes.STRING()), ("n", DataTypes.BIGINT()), ("x", DataTypes.DOUBLE()),
     ("d", DataTypes.DECIMAL(6, 2)), ("ok", DataTypes.BOOLEAN())]
)  # fmt: skip
SCHEMA: pa.Schema = schema_of(ROWS)
BY_WORD = NamedField("word")
INSERT, BEFORE, AFTER, DELETE = RowKind
Change = tuple[RowKind, tuple[Any, ...]]


def agg(name: str, argument: int | None = None, **how: Any) -> Aggregate:
    """An aggregate of a column of ROWS."""
    return aggregate(name, argument, ROWS, **how)


EVERY = (
    agg("COUNT"), agg("COUNT", N), agg("SUM", N), agg("SUM", X), agg("SUM", D), agg("AVG", D), agg("AVG", N),
    agg("MIN", N), agg("MAX", N), agg("MIN", X), agg("MAX", X), agg("MIN", D), agg("MAX", WORD), agg("MAX", OK),
    agg("FIRST_VALUE", N), agg("LAST_VALUE", X), agg("VAR_POP", N), agg("STDDEV_SAMP", X), agg("SUM", N, filter=OK),
    agg("COUNT", N, distinct=True), agg("COUNT", N, distinct=True, filter=OK),
    agg("SUM", N, distinct=True, filter=OK), agg("AVG", D, distinct=True),
)  # fmt: skip
LISTED = (
    agg("ARRAY_AGG", N), agg("LISTAGG", WORD, filter=OK), agg("COLLECT", N), agg("ARRAY_AGG", N, distinct=True),
    agg("PERCENTILE", N, percentages=(0.5,)),
)  # fmt: skip


def batch(changes: Sequence[Change]) -> Columns:
    """Changes as one batch, with kinds where not all rows come."""
    data = [pa.array([values[at] for _, values in changes], kind) for at, kind in enumerate(SCHEMA.types)]
    rows = pa.RecordBatch.from_arrays(data, schema=SCHEMA)
    kinds = np.array([kind.value for kind, _ in changes], dtype=np.int8)
    return columns(ArrowBatch(with_kinds(rows, kinds) if kinds.any() else rows))


def row(word: str | None, n: int | None = None, x: float | None = None, d: str | None = None, ok: bool = True) -> Any:
    return (word, n, x, None if d is None else Decimal(d), ok)


def come(*values: Any) -> Columns:
    return batch([(INSERT, value) for value in values])


@dataclass(frozen=True)
class Groups:
    """A GROUP BY of ROWS.

    Args:
        aggregates: what is computed.
        keys: numbers of columns.
    """

    aggregates: tuple[Aggregate, ...]
    keys: tuple[int, ...] = (WORD,)
    retracts: bool = False
    ttl_ms: int = 0
    with_before: bool = True
    mini_batch: MiniBatch | None = None
    is_two_phase: bool = False

    @property
    def names(self) -> list[str]:
        return [f"k{at}" for at in self.keys] + [f"a{at}" for at in range(len(self.aggregates))]

    def operators(self) -> list[Operator]:
        """Return the operators of it."""
        kinds = tuple(SCHEMA.types)
        spec = GroupSpec(kinds, self.keys, self.aggregates, self.ttl_ms, self.retracts, self.with_before, "rows")
        types = [ROWS.fields[key].type for key in self.keys] + [one.result for one in self.aggregates]
        fields = [one.to_arrow_field(name) for name, one in zip(self.names, types, strict=True)]
        schema = pa.schema([one.with_nullable(True) for one in fields])
        distinct = [DistinctValuesOperator(kinds, self.keys, alike, self.ttl_ms, self.retracts, f"{number}",
                                           self.is_two_phase)
                    for number, alike in enumerate(distinct_arguments(spec))]  # fmt: skip
        if self.mini_batch is not None and self.is_two_phase:
            local, whole = LocalGroupOperator(spec, self.mini_batch), GlobalGroupOperator(spec, schema, self.mini_batch)
            return [*distinct, local, whole]
        if self.mini_batch is not None:
            return [*distinct, MiniBatchGroupOperator(spec, schema, self.mini_batch)]
        return [*distinct, StreamGroupOperator(spec, schema)]

    def out(self, kind: RowKind, *values: Any) -> Record:
        """A change of the result."""
        made = Row(*self.names)(*values)
        made.set_row_kind(kind)
        return rec(made)


def changes_of(output: Iterable[Any]) -> list[Change]:
    """Return the changes among what an operator emitted."""
    return [(one.value.get_row_kind(), tuple(one.value)) for one in output if isinstance(one, Record)]


@dataclass
class GroupModel:
    """Computes a GROUP BY over rows in lists, as Flink's GroupAggFunction does."""

    groups: Groups
    counts: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    values: dict[tuple[Any, ...], list[list[Any]]] = field(default_factory=dict)
    """Key -> for each aggregate the values that it takes, in their order; of equal ones the first goes first."""

    def add(self, changes: Iterable[Change], folded: bool) -> list[Change]:
        """Return the changes of results, of each row or of all together."""
        found: list[Change] = []
        before: dict[tuple[Any, ...], tuple[Any, ...] | None] = {}
        for kind, values in changes:
            key = tuple(values[at] for at in self.groups.keys)
            before.setdefault(key, self._result(key))
            if kind in (BEFORE, DELETE) and not self.counts[key]:
                continue
            self._count(key, values, -1 if kind in (BEFORE, DELETE) else 1)
            if not folded:
                found += self._change(before.pop(key), self._result(key))
        for key, earlier in before.items():
            found += self._change(earlier, self._result(key))
        return found

    def _count(self, key: tuple[Any, ...], row: tuple[Any, ...], sign: int) -> None:
        self.counts[key] += sign
        known = self.values.setdefault(key, [[] for _ in self.groups.aggregates])
        for one, values in zip(self.groups.aggregates, known, strict=True):
            value = None if one.argument is None else row[one.argument]
            takes_nulls = one.argument is None or one.kind is AggregateKind.ARRAY_AGG
            if (one.filter is None or row[one.filter]) and (value is not None or takes_nulls):
                if sign > 0:
                    values.append(value)
                else:  # a distinct value stays in its place until the last one goes
                    del values[len(values) - 1 - values[::-1].index(value) if one.distinct else values.index(value)]
        if not self.counts[key]:
            del self.values[key]

    def _change(self, before: tuple[Any, ...] | None, after: tuple[Any, ...] | None) -> list[Change]:
        if after is None:
            return [] if before is None else [(DELETE, before)]
        if before is None:
            return [(INSERT, after)]
        if same(before, after) and not self.groups.ttl_ms:
            return []
        return [(BEFORE, before), (AFTER, after)] if self.groups.with_before else [(AFTER, after)]

    def _result(self, key: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if not self.counts[key]:
            return None
        pairs = zip(self.groups.aggregates, self.values[key], strict=True)
        return (*key, *(value_of(one, values) for one, values in pairs))


def value_of(one: Aggregate, values: list[Any]) -> Any:
    """Return an aggregate of the values that count."""
    kind = one.kind.value
    if one.distinct:
        values = list(dict.fromkeys(values))
    if kind == "COUNT":
        return len(values)
    if kind == "COLLECT":
        return dict(Counter(values))
    if not values:
        return None
    numbers = [value for value in values if value is not None and value == value]
    scale = Decimal(1).scaleb(-6)
    functions: dict[str, Callable[[], Any]] = {
        "SUM": lambda: sum(values), "MIN": lambda: min(numbers, default=values[0]),
        "MAX": lambda: max(numbers, default=values[0]), "FIRST_VALUE": lambda: values[0],
        "LAST_VALUE": lambda: values[-1], "ARRAY_AGG": lambda: list(values), "LISTAGG": lambda: ",".join(values),
        "AVG": lambda: (sum(values) / len(values)).quantize(scale, ROUND_HALF_UP) if isinstance(values[0], Decimal)
        else math.trunc(sum(values) / len(values)),
        "VAR_POP": lambda: math.trunc(_spread(values) / len(values) + 1e-9),
        "STDDEV_SAMP": lambda: math.sqrt(_spread(values) / (len(values) - 1)) if len(values) > 1 else None,
        "PERCENTILE": lambda: float(np.percentile(values, 100 * one.percentages[0])),
    }  # fmt: skip
    return functions[kind]()


def _spread(values: list[Any]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values)


def same(one: Any, other: Any) -> bool:
    """Compare values; floating point numbers about."""
    if isinstance(one, (tuple, list)) and isinstance(other, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return (one != one and other != other) or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-7)
    return bool(one == other)
