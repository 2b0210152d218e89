"""Where timestamps come from: fields, functions of a batch, the clock; what is wrong with them, and what has none."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rayflink.common.errors import InvalidFunction
from rayflink.common.records.batches import MIN_TIMESTAMP, ArrowBatch, RowBatch, Watermark
from rayflink.common.time import Duration
from rayflink.common.types import Row
from rayflink.common.watermarks import WatermarkGenerator, WatermarkOutput, WatermarkStrategy
from rayflink.operators.base import UserCodeError
from rayflink.operators.event_time.watermark_operator import TimestampsAndWatermarksOperator
from rayflink.testing import HARDSHIPS
from tests.operators.laws import Clock, Metrics, answers, context, flat, now, started, verify

ASCENDING = WatermarkStrategy.for_monotonous_timestamps()
LOSES_GENERATORS = [name for name in HARDSHIPS if name.startswith("restored")]
NOON = datetime(2013, 1, 1, 12, tzinfo=timezone.utc)
NOON_MS = 1_357_041_600_000


def operator_of(strategy: WatermarkStrategy, **facts: Any) -> TimestampsAndWatermarksOperator:
    facts.setdefault("clock", Clock())
    operator = started(lambda: TimestampsAndWatermarksOperator(strategy, 10), context(**facts))
    assert isinstance(operator, TimestampsAndWatermarksOperator)
    return operator


def columns(**data: Any) -> ArrowBatch:
    return ArrowBatch(pa.record_batch(data))


def stamps(strategy: WatermarkStrategy, batch: Any, **facts: Any) -> list[int]:
    """The timestamps of a batch that comes out whole, and in the form in which it went in."""
    (out,) = operator_of(strategy, **facts).process(batch, 0)
    assert type(out) is type(batch)
    if isinstance(batch, ArrowBatch):
        assert out.data.schema == batch.data.schema and out.timestamps.dtype == np.int64  # type: ignore[union-attr]
    return list(out.timestamps)  # type: ignore[union-attr, arg-type]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([NOON_MS, 5], pa.int64()),
        pa.array([7, 5], pa.int32()),
        pa.array([7, 5], pa.uint64()),
        pa.array([NOON_MS * 1000 + 999, 5], pa.timestamp("us")),
        pa.array([NOON_MS, 5], pa.timestamp("ms", "America/New_York")),
        pa.array([NOON_MS // 1000, 0], pa.timestamp("s", "UTC")),
        pa.array([1, -1], pa.date32()),
        pa.array([86_400_000, 0], pa.date64()),
        pa.array([7, 5], pa.int64()).dictionary_encode(),
    ],
    ids=lambda column: str(column.type),
)
def test_a_column_of_integers_or_times_gives_the_timestamps_and_columns_stay_columns(column: Any) -> None:
    wanted = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    if pa.types.is_date32(column.type):
        expected = [86_400_000 * days for days in wanted.cast(pa.int32()).to_pylist()]
    elif pa.types.is_temporal(column.type):
        per_ms = {"us": 1 / 1000, "ms": 1, "s": 1000}[getattr(column.type, "unit", "ms")]
        expected = [int(number * per_ms) for number in wanted.cast(pa.int64()).to_pylist()]
    else:
        expected = wanted.to_pylist()
    strategy = ASCENDING.with_timestamp_column("at")
    assert stamps(strategy, columns(other=["a", "b"], at=column)) == expected
    assert stamps(ASCENDING.with_timestamp_column(1), columns(other=["a", "b"], at=column)) == expected


@pytest.mark.parametrize(
    "record, column",
    [
        ({"at": NOON_MS}, "at"),
        (Row(name="x", at=NOON_MS), "at"),
        (("x", NOON_MS), 1),
        ({"at": NOON}, "at"),
        ({"at": NOON.replace(tzinfo=None)}, "at"),
        ({"at": NOON.astimezone(timezone(timedelta(hours=-5)))}, "at"),
    ],
    ids=["dict", "Row", "tuple", "UTC", "no zone", "another zone"],
)
def test_a_field_of_rows_gives_the_timestamp(record: Any, column: Any) -> None:
    assert stamps(ASCENDING.with_timestamp_column(column), RowBatch([record])) == [NOON_MS]


def test_a_date_is_its_first_moment_in_utc() -> None:
    assert stamps(ASCENDING.with_timestamp_column(0), RowBatch([(date(2013, 1, 1),)])) == [NOON_MS - 12 * 3_600_000]


@pytest.mark.parametrize(
    "function, batch",
    [
        (lambda data: data["s"].to_numpy() * 1000, columns(s=[3, 9])),
        (lambda data: pa.compute.multiply(data["s"], 1000), columns(s=[3, 9])),
        (lambda data: [1000 * s for s in data["s"].to_pylist()], columns(s=[3, 9])),
        (lambda data: data["s"].cast(pa.timestamp("s")), columns(s=[3, 9])),
        (lambda rows: [row * 1000 for row in rows], RowBatch([3, 9])),
        (lambda rows: np.array(rows) * 1000, RowBatch([3, 9])),
        (lambda rows: np.array(rows, "datetime64[s]"), RowBatch([3, 9])),
    ],
)
def test_a_function_of_a_batch_gives_all_its_timestamps(function: Callable[[Any], Any], batch: Any) -> None:
    found = stamps(ASCENDING.with_batch_timestamp_assigner(function), batch)
    assert found == [3000, 9000] and (isinstance(batch, ArrowBatch) or {type(stamp) for stamp in found} == {int})


def test_the_greatest_timestamp_of_a_column_makes_the_watermark() -> None:
    operator = operator_of(ASCENDING.with_timestamp_column("at"))
    list(operator.process(columns(at=[5, 90, 7]), 0))
    assert list(operator.on_processing_time(10)) == [Watermark(89)]


def test_an_assigner_of_single_records_leaves_columns_columns_too() -> None:
    strategy = ASCENDING.with_timestamp_assigner(lambda row, before: row["at"] + before)
    batch = ArrowBatch(pa.record_batch({"at": [5, 7]}), np.array([100, 200]))
    assert stamps(strategy, batch) == [105, 207]


def test_a_users_generator_sees_the_rows_of_columns_divided_behind_its_watermarks() -> None:
    class AtMarks(WatermarkGenerator):
        def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
            if event["mark"]:
                output.emit_watermark(Watermark(event_timestamp))

        def on_periodic_emit(self, output: WatermarkOutput) -> None:
            pass

    operator = operator_of(WatermarkStrategy.for_generator(AtMarks).with_timestamp_column("at"))
    batch = columns(at=[1, 2, 3], mark=[False, True, False])
    first, mark, second = operator.process(batch, 0)
    assert (first, mark, second) == (
        ArrowBatch(batch.data.slice(0, 2), np.array([1, 2])),
        Watermark(2),
        ArrowBatch(batch.data.slice(2), np.array([3])),
    )


def test_timestamps_of_batches_keep_the_law_of_batches() -> None:
    by_batch = ASCENDING.with_batch_timestamp_assigner(lambda rows: [row * 2 for row in rows])
    steps = [RowBatch([3, 9, 5]), now(10), RowBatch([20]), now(25)]
    for strategy in (by_batch, ASCENDING.with_timestamp_assigner(lambda row, _: row * 2)):
        out = verify(lambda s=strategy: TimestampsAndWatermarksOperator(s, 10), steps, without=LOSES_GENERATORS)  # type: ignore[misc]
        assert out == [(None, 3, 6), (None, 9, 18), (None, 5, 10), Watermark(17), (None, 20, 40), Watermark(39)]


@pytest.mark.parametrize(
    "strategy, batch, problem",
    [
        (ASCENDING.with_timestamp_column("at"), columns(at=["x"]), "epoch milliseconds, found a column of string"),
        (ASCENDING.with_timestamp_column("at"), columns(at=[0.5]), "found a column of double; give one of integers"),
        (ASCENDING.with_timestamp_column("at"), columns(at=pa.array([2**63], pa.uint64())), "not in range"),
        (ASCENDING.with_timestamp_column("at"), columns(id=[1]), r"0 columns are named 'at'; there are \['id'\]"),
        (ASCENDING.with_timestamp_column(2), columns(id=[1]), r"no column 2; there are 1: \['id'\]"),
        (ASCENDING.with_timestamp_column("at"), RowBatch([{"at": 1}, {"id": 7}]), "record {'id': 7}: .*field 'at'"),
        (ASCENDING.with_timestamp_column("at"), RowBatch([{"at": "x"}]), "record {'at': 'x'}.*found 'x' of type str"),
        (ASCENDING.with_timestamp_column(0), RowBatch([(2**63,)]), r"record \(9223372036854775808,\).* of 64 bits"),
        (ASCENDING.with_batch_timestamp_assigner(lambda data: [1]), RowBatch([1, 2]), "2 records is wanted, found 1"),
        (ASCENDING.with_batch_timestamp_assigner(lambda data: 5), RowBatch([1]), "1 records is wanted, found 5"),
        (ASCENDING.with_batch_timestamp_assigner(lambda data: "7"), RowBatch([1]), "is wanted, found '7'"),
        (ASCENDING.with_batch_timestamp_assigner(lambda data: [True]), RowBatch([1]), "found True of type bool"),
        (ASCENDING.with_batch_timestamp_assigner(lambda data: np.array([1.5])), RowBatch([1]), "float64; give int64"),
        (ASCENDING.with_batch_timestamp_assigner(lambda data: np.zeros((1, 1))), RowBatch([1]), "found one of 2"),
        (
            ASCENDING.with_batch_timestamp_assigner(lambda data: np.array([2**63], np.uint64)),
            RowBatch([1]),
            "found 9223372036854775808",
        ),
        (ASCENDING.with_batch_timestamp_assigner(lambda data: [1 // row for row in data]), RowBatch([0]), "record 0: "),
    ],
)  # fmt: skip
def test_a_wrong_timestamp_names_operator_record_and_problem(
    strategy: WatermarkStrategy, batch: Any, problem: str
) -> None:
    operator = operator_of(strategy, call_site="job.py:7")
    with pytest.raises(UserCodeError, match=rf"'tested' \(created at job.py:7\) failed in with_.*({problem})"):
        list(operator.process(batch, 0))


NULLS: list[tuple[WatermarkStrategy, Any, Any]] = [
    (ASCENDING.with_timestamp_column("at"), columns(at=[1, None, 3]), columns(at=[1, 3])),
    (ASCENDING.with_timestamp_column(0), RowBatch([(1,), (None,), (3,)]), RowBatch([(1,), (3,)])),
    (ASCENDING.with_timestamp_assigner(lambda v, _: v), RowBatch([1, None, 3]), RowBatch([1, 3])),
    (ASCENDING.with_timestamp_assigner(lambda v, _: v["at"]), columns(at=[1, None, 3]), columns(at=[1, 3])),
    (
        ASCENDING.with_batch_timestamp_assigner(lambda rows: np.array(rows, "datetime64[ms]")),
        RowBatch([1, None, 3]),
        RowBatch([1, 3]),
    ),
]


@pytest.mark.parametrize("strategy, batch, kept", NULLS)
def test_a_record_without_timestamp_is_an_error_or_by_choice_dropped_and_counted(
    strategy: WatermarkStrategy, batch: Any, kept: Any
) -> None:
    with pytest.raises(UserCodeError, match="on record .*None.*found None.*by with_null_timestamps_dropped"):
        list(operator_of(strategy).process(batch, 0))
    metrics = Metrics()
    operator = operator_of(strategy.with_null_timestamps_dropped(), metrics=metrics)
    (out,) = operator.process(batch, 0)
    kept.timestamps = [1, 3] if isinstance(kept, RowBatch) else np.array([1, 3])
    assert out == kept and metrics.counters["numNullTimestampsDropped"].count == 1


def test_a_batch_of_nothing_but_nulls_is_dropped_and_no_sign_of_life() -> None:
    strategy = ASCENDING.with_timestamp_column("at").with_null_timestamps_dropped().with_idleness(Duration.of_millis(5))
    operator = operator_of(strategy)
    assert not list(operator.process(columns(at=pa.array([None, None], pa.int64())), 0))
    assert not list(operator.process(columns(at=pa.nulls(2)), 0))


@pytest.mark.spec("E01")
def test_ingestion_time_follows_the_clock_never_falls_and_needs_no_records() -> None:
    strategy = WatermarkStrategy.for_ingestion_time()
    steps = [now(7), RowBatch(["a", "b"]), now(10), RowBatch(["c"]), now(30)]
    out = verify(lambda: TimestampsAndWatermarksOperator(strategy, 10), steps, without=LOSES_GENERATORS)
    assert out == [(None, "a", 7), (None, "b", 7), Watermark(9), (None, "c", 10), Watermark(29)]
    operator = operator_of(strategy)
    assert flat(answers(operator, now(50))) == [Watermark(49)]
    operator.ctx.clock.ms = 20
    assert stamps_of(operator, columns(x=[1])) == stamps_of(operator, RowBatch([1])) == [50]


def stamps_of(operator: TimestampsAndWatermarksOperator, batch: Any) -> list[int]:
    (out,) = operator.process(batch, 0)
    assert type(out) is type(batch)
    return list(out.timestamps)  # type: ignore[union-attr, arg-type]


def test_without_an_assigner_records_keep_their_timestamps_or_none() -> None:
    assert stamps(ASCENDING, RowBatch([1, 2], [5, 6])) == [5, 6]
    assert stamps(ASCENDING, RowBatch([1])) == stamps(ASCENDING, columns(x=[1])) == [MIN_TIMESTAMP]


def test_wrong_arguments_are_refused_where_they_are_given() -> None:
    with pytest.raises(TypeError, match="must be a name or a number, found 1.5"):
        ASCENDING.with_timestamp_column(1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least 0, found -1"):
        ASCENDING.with_timestamp_column(-1)
    with pytest.raises(TypeError, match="function of a batch is wanted, found 'at'"):
        ASCENDING.with_batch_timestamp_assigner("at")  # type: ignore[arg-type]
    with pytest.raises(InvalidFunction, match="1 argument, found one of 2"):
        ASCENDING.with_batch_timestamp_assigner(lambda value, before: value)  # type: ignore[arg-type, misc]


@pytest.mark.parametrize("timestamp", [1 << 63, MIN_TIMESTAMP - 1, "5", None])
def test_a_watermark_is_a_whole_number_of_64_bits(timestamp: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        Watermark(timestamp)
