"""Words for tests of joins of several streams: inputs of one form, joined in the ways that a drawn case has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch
from rayflink.common.records.row_kinds import with_kinds
from rayflink.operators.base import Operator
from rayflink.table.plan.typed import Call, Column, Expr, Session, named
from rayflink.table.runtime.joins.join_rows import JoinSide
from rayflink.table.runtime.joins.multi_join import MultiJoinOperator
from rayflink.table.runtime.joins.multi_join_rows import MultiJoinSpec, StepSpec
from rayflink.table.runtime.joins.stored_side import SideState
from rayflink.table.runtime.keyed_state.keyed_multiset import RowForm
from rayflink.table.types import DataTypes

from .stream_join_cases import Change, Values

WORD, ID, N = range(3)
WIDTH = 3
NAMES = "abcd"


def schema_of(number: int) -> pa.Schema:
    """The columns of an input."""
    name = NAMES[number]
    return pa.schema([(f"{name}_word", pa.string()), (f"{name}_id", pa.int64()), (f"{name}_n", pa.int64())])


def batch(changes: Sequence[Change], number: int) -> ArrowBatch:
    """Changes of an input as one batch, with kinds where not all rows come."""
    schema = schema_of(number)
    data = [pa.array([values[place] for _, values in changes], kind) for place, kind in enumerate(schema.types)]
    rows = pa.RecordBatch.from_arrays(data, schema=schema)
    kinds = np.array([kind.value for kind, _ in changes], dtype=np.int8)
    return ArrowBatch(with_kinds(rows, kinds) if kinds.any() else rows)


@dataclass(frozen=True)
class Part:
    """The join of one more input.

    Args:
        is_left: a left join.
        source: the input before it whose word is equal to its own.
        bounded_by: an input before it whose n must be less than its own; None: none.
    """

    is_left: bool
    source: int
    bounded_by: int | None = None

    def condition(self, number: int) -> Expr | None:
        """What must hold beyond equal words."""
        if self.bounded_by is None:
            return None
        numbers = (WIDTH * self.bounded_by + N, WIDTH * number + N)
        sides = tuple(Column(DataTypes.BIGINT(), column, "n") for column in numbers)
        return Call(DataTypes.BOOLEAN(), named("<"), sides)

    def text(self, number: int) -> str:
        """The join as SQL."""
        name, kind = NAMES[number], "LEFT JOIN" if self.is_left else "JOIN"
        bound = "" if self.bounded_by is None else f" AND {NAMES[self.bounded_by]}_n < {name}_n"
        return f"{kind} {name} ON {NAMES[self.source]}_word = {name}_word{bound}"


@dataclass(frozen=True)
class MultiJoinCase:
    """Joins by word.

    Args:
        forms: of the inputs.
    """

    parts: tuple[Part, ...]
    forms: tuple[RowForm, ...]
    ttls: tuple[int, ...] = ()

    def __call__(self) -> Operator:
        return MultiJoinOperator(self.spec)

    @property
    def spec(self) -> MultiJoinSpec:
        """What the operator is to do."""
        sides = tuple(
            JoinSide(
                schema_of(number), (WORD,), (WORD,), f"rows {number}", (ID,) if form is RowForm.UNIQUE else (WORD,)
            )
            for number, form in enumerate(self.forms)
        )  # fmt: skip
        ttls = self.ttls or (0,) * len(sides)
        states = tuple(SideState(form, ttl) for form, ttl in zip(self.forms, ttls, strict=True))
        steps = tuple(
            StepSpec(part.is_left, (part.source,), part.condition(number))
            for number, part in enumerate(self.parts, start=1)
        )
        result = pa.schema([field for number in range(len(sides)) for field in schema_of(number)])
        return MultiJoinSpec(sides, states, steps, result, Session())

    @property
    def query(self) -> str:
        """The joins as SQL."""
        joins = [part.text(number) for number, part in enumerate(self.parts, start=1)]
        return f"SELECT * FROM a {' '.join(joins)}"


@cache
def connection() -> Any:
    """Tables of DuckDB, one for each input, empty."""
    created = duckdb.connect()
    for name in NAMES:
        created.execute(f"CREATE TABLE {name} ({name}_word VARCHAR, {name}_id BIGINT, {name}_n BIGINT)")
    return created


def joined_by_duckdb(case: MultiJoinCase, tables: Sequence[list[Values]]) -> list[Values]:
    """Return the rows of the joins of tables."""
    for name, table in zip(NAMES, tables, strict=False):
        connection().execute(f"DELETE FROM {name}")
        if table:
            connection().executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", table)
    rows: list[Values] = connection().execute(case.query).fetchall()
    return rows
