"""CURRENT_WATERMARK is the watermark that came last."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from rayflink.common.records.batches import ArrowBatch, Watermark
from rayflink.operators.base import OperatorContext
from rayflink.state.clock import ManualClock
from rayflink.table import EnvironmentSettings, TableEnvironment
from rayflink.table.conversion.arrow_columns import arrow_schema
from rayflink.table.plan.logical import Project
from rayflink.table.plan.typed import Session
from rayflink.table.runtime.calc import CalcOperator

EPOCH = datetime.datetime(1970, 1, 1)
NAME = "CURRENT_WATERMARK"


def calc(kind: str, selected: str) -> tuple[CalcOperator, pa.DataType]:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.execute_sql(f"CREATE TABLE t (ts {kind}, WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen')")
    plan = t_env.sql_query(f"SELECT {selected} AS w FROM t")._plan
    assert isinstance(plan, Project)
    operator = CalcOperator(None, plan.exprs, arrow_schema(plan.schema), Session("Europe/Berlin"))
    operator.setup(OperatorContext("0" * 32, "calc", clock=ManualClock()))
    operator.open()
    return operator, arrow_schema(plan.input.schema).types[0]


@pytest.mark.parametrize(("kind", "zone"), [("TIMESTAMP(3)", None), ("TIMESTAMP_LTZ(3)", datetime.timezone.utc)])
def test_it_is_null_before_the_first_and_of_the_kind_of_the_time(kind, zone):
    operator, stamp = calc(kind, f"{NAME}(ts)")
    rows = ArrowBatch(pa.RecordBatch.from_arrays([pa.array([0, 1], stamp)], ["ts"]))
    shown = []
    for watermark in (None, 5_000, 7_000):
        if watermark is not None:
            assert operator.process_watermark(Watermark(watermark)) == (Watermark(watermark),)
        (found,) = operator.process(rows, 0)
        shown.append(found.data.column(0).to_pylist())
    at = [(EPOCH + datetime.timedelta(seconds=second)).replace(tzinfo=zone) for second in (5, 7)]
    assert shown == [[None, None], [at[0]] * 2, [at[1]] * 2]


def test_late_rows_are_recognized_by_it():
    operator, stamp = calc("TIMESTAMP(3)", f"COALESCE(ts <= {NAME}(ts), FALSE)")
    rows = ArrowBatch(pa.RecordBatch.from_arrays([pa.array([4_000, 5_000, 6_000], stamp)], ["ts"]))
    (before,) = operator.process(rows, 0)
    operator.process_watermark(Watermark(5_000))
    (after,) = operator.process(rows, 0)
    assert before.data.column(0).to_pylist() == [False, False, False]
    assert after.data.column(0).to_pylist() == [True, True, False]
