"""The orders of the golden queries as a stream that comes slowly, so that a job can be stopped in the midst of it."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow
from pyarrow import csv

from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.streams.stream import DataStream
from rayflink.table.connectors.contract import Connected, Connector, TableSource
from rayflink.table.conversion.arrow_columns import arrow_schema
from rayflink.table.plan.logical import Schema
from rayflink.testing import Pause, ScriptedSource
from tests.table.queries.golden_queries import FOLDER


def orders(times: int) -> list[tuple[Any, ...]]:
    """The rows of orders.csv, again and again, each time forty seconds later."""
    names = ["id", "customer", "product", "price", "amount", "ts"]
    types = {"customer": pyarrow.string(), "price": pyarrow.decimal128(10, 2), "ts": pyarrow.timestamp("ms")}
    read = csv.ReadOptions(column_names=names)
    convert = csv.ConvertOptions(column_types=types, strings_can_be_null=True)
    rows = csv.read_csv(FOLDER / "orders.csv", read, convert_options=convert).to_pylist()
    later = [datetime.timedelta(seconds=40 * number) for number in range(times)]
    return [(*list(row.values())[:5], row["ts"] + by) for by in later for row in rows]


class Columns:
    """Rows as columns of a schema."""

    def __init__(self, schema: pyarrow.Schema) -> None:
        self._schema = schema

    def __call__(self, batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        arrays = [column.cast(field.type) for column, field in zip(batch.columns, self._schema, strict=True)]
        return pyarrow.RecordBatch.from_arrays(arrays, schema=self._schema)


class PacedOrders(TableSource):
    """Gives a row every few milliseconds."""

    def __init__(self, schema: Schema, times: int) -> None:
        self._schema, self._times = schema, times

    def stream(self, env: StreamExecutionEnvironment, strategy: Any, name: str) -> DataStream:
        script = [part for row in orders(self._times) for part in (row, Pause(2))]
        rows = env.from_source(ScriptedSource(script), None, name).set_parallelism(1)
        stream = rows.map_batches(Columns(arrow_schema(self._schema))).set_parallelism(1)
        timed = stream if strategy is None else stream.assign_timestamps_and_watermarks(strategy)
        return timed.set_parallelism(1)


class PacedConnector(Connector):
    """The orders, so many times."""

    def __init__(self, times: int) -> None:
        self._times = times

    def source(self, table: Connected) -> TableSource:
        return PacedOrders(table.schema, self._times)

    def parsed(self, table: str, given: Any) -> tuple[dict[str, Any], dict[str, str]]:
        return {}, {}


__all__ = ["PacedConnector", "orders"]
