"""Words for tests of the operator of MATCH_RECOGNIZE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import pyarrow as pa

from rayflink.common.types import Row
from rayflink.datastream.streams.selectors import NamedField
from rayflink.table import EnvironmentSettings, TableEnvironment
from rayflink.table.conversion.arrow_columns import arrow_schema
from rayflink.table.parsing.statement_parser import parse_statement
from rayflink.table.physical.translation import row_type
from rayflink.table.plan.logical import Values
from rayflink.table.plan.matching import MatchRecognize
from rayflink.table.plan.typed import Session
from rayflink.table.runtime.matching.match_operator import MatchOperator
from rayflink.testing import rec
from rayflink.testing.elements import Columns, Record, columns

BY_WORD = NamedField("f0")
SCHEMA = pa.schema([("f0", pa.string()), ("f1", pa.int64()), ("f2", pa.timestamp("ms"))])


@cache
def planned(clause: str) -> MatchRecognize:
    """The node of a clause over the columns word, n and ts, all of which it reads."""
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.execute_sql(
        "CREATE TABLE t (word STRING, n BIGINT, ts TIMESTAMP(3), at AS PROCTIME(), WATERMARK FOR ts AS ts) "
        "WITH ('connector' = 'datagen')"
    )
    query = f"SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY word {clause})"
    plan = t_env._queries.optimize([t_env._context.bind(parse_statement(query).tree, query)])[0]
    return next(node for node in plan.walk() if isinstance(node, MatchRecognize))


def matching(clause: str, ttl_ms: int = 0) -> Callable[[], MatchOperator]:
    plan = planned(clause)
    alone, schema = replace(plan, input=Values(plan.input.schema, ())), arrow_schema(plan.schema)
    return lambda: MatchOperator(alone, row_type(plan.input), schema, Session(), str(plan.pattern), ttl_ms)


def row(word: str | None, n: int | None, ms: int = 0) -> tuple[Any, ...]:
    return word, n, datetime(1970, 1, 1) + timedelta(milliseconds=ms)


def rows(*values: tuple[Any, ...]) -> Columns:
    data = [pa.array([value[index] for value in values], kind) for index, kind in enumerate(SCHEMA.types)]
    return columns(pa.RecordBatch.from_arrays(data, schema=SCHEMA))


def out(clause: str, *values: Any) -> Record:
    return rec(Row(*planned(clause).names)(*values))


def values_of(elements: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [tuple(element.value) for element in elements if isinstance(element, Record)]
