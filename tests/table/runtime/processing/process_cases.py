"""Words for tests of process table functions: their calls over rows of a word, a number and a time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from rayflink.operators.base import Operator
from rayflink.table.binding.process_tables import bind_process
from rayflink.table.binding.queries import QueryBinder
from rayflink.table.conversion.arrow_columns import arrow_schema
from rayflink.table.parsing.statement_parser import parse_statement
from rayflink.table.plan.changelog import ChangelogMode
from rayflink.table.plan.logical import Attribute, TimePart, Values
from rayflink.table.plan.process_tables import ProcessTable
from rayflink.table.plan.typed import Session
from rayflink.table.runtime.processing.process_operators import ProcessRowOperator, ProcessSetOperator
from rayflink.table.runtime.processing.process_spec import ProcessSpec
from rayflink.table.types import DataTypes
from rayflink.table.udf import UserProcess
from rayflink.testing.elements import Columns, columns

TABLE = Values(
    (
        Attribute("word", DataTypes.STRING()), Attribute("n", DataTypes.BIGINT()),
        Attribute("ts", DataTypes.TIMESTAMP(3), TimePart.ROWTIME),
    ),
    (),
)  # fmt: skip
EPOCH = datetime(1970, 1, 1)
ROW = DataTypes.ROW([DataTypes.FIELD(column.name, column.type) for column in TABLE.schema])


def moment(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


def rows(*values: tuple[str | None, int | None, int]) -> Columns:
    """Rows of a word, a number and a time in milliseconds."""
    schema = arrow_schema(TABLE.schema)
    columns_of = list(zip(*((word, n, moment(ms)) for word, n, ms in values), strict=True))
    data = [pa.array(column, kind) for column, kind in zip(columns_of, schema.types, strict=True)]
    return columns(pa.RecordBatch.from_arrays(data, schema=schema))


def bound(function: UserProcess, arguments: str) -> ProcessTable:
    """Return the plan of a call over a table t."""
    tree = parse_statement(f"SELECT * FROM f({arguments})").tree.args["from_"].this.this
    plan = bind_process(QueryBinder(lambda *_: TABLE), tree, function.registered("F"))
    assert isinstance(plan, ProcessTable)
    return plan


def calling(
    function: UserProcess, arguments: str, mode: ChangelogMode | None = None, ttl_ms: int = 0
) -> Callable[[], Operator]:
    """Return what makes the operator of a call."""
    plan = bound(function, arguments)
    spec = ProcessSpec(
        plan.function.kernel, plan.tables, tuple(ROW for _ in plan.tables),
        tuple(ChangelogMode.insert_only() for _ in plan.tables), plan.scalars, arrow_schema(plan.schema),
        plan.mode if mode is None else mode, Session(), ttl_ms,
    )  # fmt: skip
    return lambda: ProcessSetOperator(spec) if plan.is_set else ProcessRowOperator(spec)


def values_of(element: Any) -> tuple[Any, ...]:
    return tuple(element.value)


__all__ = ["EPOCH", "TABLE", "bound", "calling", "moment", "rows", "values_of"]
