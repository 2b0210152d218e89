"""Aggregates of each type, in the results' types, beside DuckDB where both mean the same."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.errors import InvalidTypesError
from rayflink.common.records.batches import ArrowBatch, Watermark
from rayflink.common.types import Row
from rayflink.table.plan.logical import WindowKind
from rayflink.table.runtime.aggregates.aggregates import AggregateKind, result_type
from rayflink.table.runtime.aggregates.window_spec import WindowAggregation, WindowSpec
from rayflink.table.runtime.windows.window_operators import (
    global_window_aggregate,
    local_window_aggregate,
    one_phase_window_aggregate,
)
from rayflink.table.types import DataType, DataTypes
from rayflink.testing import OperatorHarness

from .window_cases import aggregate, rows, schema_of, tumble

D = DataTypes


def one(kind: DataType, values: list[Any], *names: str, **how: Any) -> tuple[Any, ...]:
    """Aggregates of one window of these values: in two phases and two batches, and in one phase and one batch."""
    row = D.ROW([("word", D.STRING()), ("v", kind), ("ts", D.TIMESTAMP(3)), ("ok", D.BOOLEAN())])
    of_all = WindowAggregation(row, (), tuple(aggregate(name, 1, of=row, **how) for name in names), tumble())
    phases = lambda: [local_window_aggregate(of_all), global_window_aggregate(of_all)]  # noqa: E731
    two_phases, one_phase = [
        results(phases, row, values, len(values) // 2),
        results(lambda: one_phase_window_aggregate(of_all), row, values, len(values)),
    ]
    assert repr(two_phases) == repr(one_phase)
    return two_phases[: len(names)]


def results(factory: Any, row: DataType, values: list[Any], batch_rows: int) -> tuple[Any, ...]:
    """The one row that comes out, where a snapshot is taken behind each batch."""
    with OperatorHarness(factory) as harness:
        size = max(batch_rows, 1)
        for at in range(0, len(values), size):
            harness.give(rows(*(("a", value, at, True) for value in values[at : at + size]), of=row))
            harness.snapshot()
        harness.advance_watermark(1_000)
        (found,) = harness.output_values()
        return tuple(found)


@pytest.mark.parametrize(
    ("name", "argument", "wanted"),
    [
        ("COUNT", D.STRING(), D.BIGINT(False)),
        ("SUM", D.INT(), D.INT()),
        ("SUM", D.TINYINT(False), D.TINYINT(False)),
        ("SUM", D.DECIMAL(10, 3), D.DECIMAL(38, 3)),
        ("SUM", D.FLOAT(), D.FLOAT()),
        ("AVG", D.INT(), D.INT()),
        ("AVG", D.DECIMAL(10, 3), D.DECIMAL(38, 6)),
        ("AVG", D.DECIMAL(20, 9), D.DECIMAL(38, 9)),
        ("AVG", D.DOUBLE(), D.DOUBLE()),
        ("MIN", D.TIMESTAMP(3, False), D.TIMESTAMP(3, False)),
        ("STDDEV_SAMP", D.DOUBLE(False), D.DOUBLE()),
        ("COLLECT", D.INT(), D.MULTISET(D.INT(), False)),
        ("LISTAGG", D.CHAR(3), D.STRING()),
    ],
)
def test_types_of_results(name, argument, wanted):
    assert result_type(AggregateKind(name), argument) == wanted


def test_a_filter_may_leave_nothing():
    assert result_type(AggregateKind.SUM, D.INT(False), is_filtered=True) == D.INT()


@pytest.mark.parametrize(("name", "argument"), [("SUM", D.STRING()), ("LISTAGG", D.INT()), ("MIN", D.ARRAY(D.INT()))])
def test_undefined_aggregates_are_refused(name, argument):
    with pytest.raises(InvalidTypesError, match=name):
        result_type(AggregateKind(name), argument)


def test_whole_numbers_wrap_in_their_type():
    assert one(D.INT(), [2**31 - 1, 1], "SUM", "AVG") == (-(2**31), 2**30)
    assert one(D.TINYINT(), [100, 100], "SUM", "AVG") == (-56, 100)
    assert one(D.BIGINT(), [2**63 - 1, 1], "SUM") == (-(2**63),)
    assert one(D.INT(), [-7, 0], "AVG", "STDDEV_POP") == (-3, 3)


def test_decimals():
    values = [Decimal("1.10"), Decimal("2.25"), None, Decimal("-0.01")]
    assert one(D.DECIMAL(10, 2), values, "SUM", "AVG", "MIN", "MAX", "FIRST_VALUE", "LAST_VALUE", "COUNT") == (
        Decimal("3.34"), Decimal("1.113333"), Decimal("-0.01"), Decimal("2.25"), Decimal("1.10"), Decimal("-0.01"), 3,
    )  # fmt: skip
    assert one(D.DECIMAL(10, 0), [Decimal(-1), Decimal(-1), Decimal(0)], "AVG") == (Decimal("-0.666667"),)


def test_a_sum_of_decimals_that_has_too_many_digits_is_null():
    most = Decimal(10**38 - 1)
    assert one(D.DECIMAL(38, 0), [most, Decimal(1)], "SUM", "MAX") == (None, most)
    assert one(D.DECIMAL(38, 0), [most, Decimal(1), Decimal(-1)], "SUM") == (most,)
    assert one(D.DECIMAL(38, 0), [most, most, most.copy_negate()], "SUM") == (most,)


def test_decimals_of_many_digits():
    most = Decimal("9" * 30 + ".12345678")
    kind = D.DECIMAL(38, 8)
    assert one(kind, [most, most, None], "AVG", "COUNT", "MIN") == (most, 2, most)
    assert one(kind, [most] * 3, "SUM") == (None,)
    assert one(D.DECIMAL(38, 0), [Decimal(10**37), Decimal(10**37)], "AVG", "SUM") == (None, Decimal(2 * 10**37))
    assert one(D.DECIMAL(30, 2), [Decimal("1.01"), Decimal("1.02")], "AVG", "SUM") == (
        Decimal("1.015000"),
        Decimal("2.03"),
    )


def test_times():
    days = [date(2020, 1, 2), None, date(1960, 1, 2)]
    assert one(D.DATE(), days, "MIN", "MAX", "FIRST_VALUE", "COUNT") == (days[2], days[0], days[0], 2)
    stamps = [datetime(2020, 1, 2, 3), datetime(2020, 1, 2, 2)]
    assert one(D.TIMESTAMP(3), stamps, "MIN", "LAST_VALUE") == (stamps[1], stamps[1])
    hours = [time(3), time(2, 0, 0, 5000)]
    assert one(D.TIME(3), hours, "MIN", "MAX") == (hours[1], hours[0])
    lengths = [timedelta(days=1), timedelta(hours=1)]
    assert one(D.INTERVAL_DAY_TIME(), lengths, "MIN", "MAX") == (lengths[1], lengths[0])


def test_strings_bytes_and_truth_values():
    assert one(D.STRING(), ["b", None, "ab", "ä"], "MIN", "MAX", "LISTAGG", "COUNT") == ("ab", "ä", "b,ab,ä", 3)
    assert one(D.BYTES(), [b"b", b"a"], "MIN", "FIRST_VALUE") == (b"a", b"b")
    assert one(D.BOOLEAN(), [False, True, None], "MIN", "MAX", "LAST_VALUE") == (False, True, True)


def test_floating_point_numbers():
    assert one(D.FLOAT(), [0.5, 0.25, None], "SUM", "AVG", "MIN") == (0.75, 0.375, 0.25)
    nan = float("nan")
    assert one(D.DOUBLE(), [nan, 1.0], "MIN", "MAX") == (1.0, 1.0)
    (lone,) = one(D.DOUBLE(), [nan, nan], "MIN")
    assert lone != lone


def test_variances():
    found = one(D.DOUBLE(), [1.0, 2.0, 4.0, None], "VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV_SAMP")
    assert found == pytest.approx((14 / 9, 7 / 3, (14 / 9) ** 0.5, (7 / 3) ** 0.5))
    assert one(D.DOUBLE(), [3.0], "VAR_POP", "VAR_SAMP", "STDDEV_SAMP") == (0.0, None, None)
    assert one(D.DOUBLE(), [1e9 + 1, 1e9 + 3], "VAR_POP") == (1.0,)
    assert one(D.DECIMAL(5, 1), [Decimal("1.5"), Decimal("2.5")], "VAR_POP") == (Decimal("0.25"),)
    assert one(D.DECIMAL(38, 0), [Decimal(10**37), Decimal(0)], "VAR_POP") == (None,)


def test_nothing_but_nulls():
    names = ("COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST_VALUE", "VAR_POP", "COLLECT")
    assert one(D.BIGINT(), [None, None], *names) == (0, None, None, None, None, None, None, {})
    assert one(D.STRING(), [None], "LISTAGG", "MIN", "COLLECT") == (None, None, {})
    assert one(D.DECIMAL(9, 2), [None], "SUM", "AVG", "MAX") == (None, None, None)


def test_distinct_values():
    assert one(D.BIGINT(), [3, 3, None, 4, 3], "COUNT", "SUM", "COLLECT", distinct=True) == (2, 7, {3: 1, 4: 1})
    assert one(D.STRING(), ["b", "a", "b"], "LISTAGG", distinct=True, separator="-") == ("b-a",)
    strings = [Decimal("1.5"), Decimal("1.5"), Decimal("2")]
    assert one(D.DECIMAL(5, 1), strings, "AVG", distinct=True) == (Decimal("1.75"),)


def test_rows_are_collected():
    row = D.ROW([("a", D.INT())])
    assert one(row, [{"a": 1}, None, {"a": 2}], "FIRST_VALUE", "LAST_VALUE") == (Row(a=1), Row(a=2))
    assert one(D.STRING(), ["x", "y", "x"], "COLLECT") == ({"x": 2, "y": 1},)


# beside DuckDB

WIDE = D.ROW(
    [("k", D.STRING()), ("g", D.INT()), ("ts", D.TIMESTAMP(3)), ("n", D.BIGINT()), ("d", D.DECIMAL(8, 2)),
     ("x", D.DOUBLE()), ("t", D.STRING()), ("f", D.BOOLEAN())]
)  # fmt: skip
NAMES = [field.name for field in WIDE.fields]
CALLS = {
    "COUNT(*)": ("COUNT", None, False, None), "SUM(n)": ("SUM", "n", False, None), "MIN(n)": ("MIN", "n", False, None),
    "MAX(d)": ("MAX", "d", False, None), "SUM(d)": ("SUM", "d", False, None), "MIN(t)": ("MIN", "t", False, None),
    "MAX(x)": ("MAX", "x", False, None), "COUNT(DISTINCT t)": ("COUNT", "t", True, None),
    "SUM(DISTINCT n)": ("SUM", "n", True, None), "SUM(n) FILTER (WHERE f)": ("SUM", "n", False, "f"),
    "COUNT(DISTINCT d) FILTER (WHERE f)": ("COUNT", "d", True, "f"), "AVG(x)": ("AVG", "x", False, None),
    "VAR_POP(x)": ("VAR_POP", "x", False, None), "STDDEV_SAMP(x)": ("STDDEV_SAMP", "x", False, None),
    "SUM(x)": ("SUM", "x", False, None),
}  # fmt: skip

tables = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "", None]), st.sampled_from([1, 2, None]),
        st.integers(-30, 90).map(lambda ms: datetime(1970, 1, 1) + timedelta(milliseconds=ms)),
        st.none() | st.integers(-9, 9), st.none() | st.decimals(-999, 999, places=2),
        st.none() | st.integers(-64, 64).map(lambda n: n / 8), st.sampled_from(["x", "yy", "z", None]),
        st.sampled_from([True, False, None]),
    ),
    min_size=1, max_size=60,
)  # fmt: skip


def call(name: str, argument: str | None, distinct: bool, only: str | None) -> Any:
    at = None if argument is None else NAMES.index(argument)
    return aggregate(name, at, of=WIDE, distinct=distinct, filter=None if only is None else NAMES.index(only))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(table=tables, cut=st.integers(1, 20))
def test_tumbling_windows_are_those_of_duckdb(table, cut):
    batch = pa.RecordBatch.from_pylist([dict(zip(NAMES, row, strict=True)) for row in table], schema_of(WIDE))
    of_all = WindowAggregation(WIDE, (0, 1), tuple(call(*of) for of in CALLS.values()), tumble())
    source = pa.table(batch)  # noqa: F841  # by its name, below
    start = "epoch_ms(CAST(floor(epoch_ms(ts::TIMESTAMP) / 10.0) * 10 AS BIGINT))"
    query = f"SELECT k, g, {', '.join(CALLS)}, {start} FROM source GROUP BY k, g, {start}"
    wanted = duckdb.sql(query).fetchall()
    with OperatorHarness(lambda: [local_window_aggregate(of_all), global_window_aggregate(of_all)]) as harness:
        for at in range(0, batch.num_rows, cut):
            harness.process_batch(ArrowBatch(batch.slice(at, cut)))
            harness.snapshot()
        harness.advance_watermark(Watermark(1_000).timestamp)
        found = [tuple(value)[:-2] for value in harness.output_values()]
    assert [one[-1] for one in found] == sorted(one[-1] for one in found)
    assert sorted(map(rounded, found)) == sorted(map(rounded, wanted))


def rounded(row: tuple[Any, ...]) -> tuple[str, ...]:
    """A row as strings, by which rows with nulls have an order; floating point numbers to nine digits."""
    return tuple(f"{value:.9g}" if isinstance(value, float) else str(value) for value in row)


@pytest.mark.slow
def test_many_rows_of_a_few_hot_keys_are_those_of_duckdb():
    draw = np.random.default_rng(3)
    count = 300_000
    keys = np.where(draw.random(count) < 0.9, 7, draw.integers(0, 60_000, count))
    times = np.arange(count) // 20 + draw.integers(-3_000, 1, count)
    row = D.ROW([("k", D.BIGINT()), ("v", D.BIGINT()), ("ts", D.TIMESTAMP(3))])
    data = pa.table(
        {"k": keys, "v": draw.integers(-1000, 1000, count), "ts": pa.array(times).cast(pa.timestamp("ms"))}
    ).cast(schema_of(row))
    calls = [aggregate("COUNT"), aggregate("SUM", 1, of=row), aggregate("COUNT", 1, of=row, distinct=True)]
    spec = WindowSpec(WindowKind.HOP, 6_000, 2_000, time_column=2)
    of_all = WindowAggregation(row, (0,), tuple(calls), spec)
    with OperatorHarness(lambda: [local_window_aggregate(of_all), global_window_aggregate(of_all)]) as harness:
        for batch in data.to_batches(max_chunksize=20_000):
            harness.process_batch(ArrowBatch(batch))
            harness.advance_watermark(int(batch.column(2).cast("int64")[0].as_py()) - 3_000)
        harness.advance_watermark(1_000_000)
        values = harness.output_values()
    found = pa.Table.from_pylist([value.as_dict() for value in values], of_all.result_schema)
    wanted = duckdb.sql(  # noqa: F841  # by its name, below
        """
        SELECT k, count(*), sum(v), count(DISTINCT v), epoch_ms(CAST(w * 2000 AS BIGINT)) FROM (
            SELECT k, v, unnest([floor(epoch_ms(ts::TIMESTAMP) / 2000.0) - i FOR i IN [0, 1, 2]]) AS w FROM data
        ) GROUP BY k, w
        """
    )
    difference = duckdb.sql(
        "(SELECT k0, a0, a1, a2, window_start FROM found EXCEPT ALL SELECT * FROM wanted) UNION ALL "
        "(SELECT * FROM wanted EXCEPT ALL SELECT k0, a0, a1, a2, window_start FROM found)"
    )
    assert difference.fetchall() == []
    assert len(found) > 60_000
