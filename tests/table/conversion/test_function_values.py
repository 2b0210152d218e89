"""Values that functions take and give: rows by name, objects, Instants, decimal numbers, and frames of pandas."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from rayflink.common import Instant, Row
from rayflink.common.records.arrow_values import values_of
from rayflink.table import DataTypes as D
from rayflink.table import EnvironmentSettings, TableEnvironment
from rayflink.table.conversion.column_values import pandas_value, rows_of_table
from rayflink.table.conversion.python_values import plain_of
from rayflink.table.conversion.row_format import SqlFormat, ValueFormat
from rayflink.table.expressions import col
from rayflink.table.plan.type_rules import common_type
from rayflink.table.plan.typed import Arguments, Call, Session, named
from rayflink.table.udf import udf
from rayflink.table.user_functions.user_kernels import UserKernel, frame_of
from tests.table.conversion.test_elements import Order, Place, PlaceType

ROW = D.ROW([("what", D.STRING()), ("amount", D.DECIMAL(4, 1))])


@pytest.mark.parametrize(
    ("kind", "value", "plain"),
    [
        (ROW, Row("tea", Decimal("1.25")), {"what": "tea", "amount": Decimal("1.3")}),
        (ROW, Row(amount=Decimal(1), what="tea"), {"what": "tea", "amount": Decimal("1.0")}),
        (ROW, Row(a="tea", b=None), {"what": "tea", "amount": None}),
        (ROW, {"amount": 2}, {"what": None, "amount": Decimal("2.0")}),
        (ROW, Order("tea", 2), {"what": "tea", "amount": Decimal("2.0")}),
        (ROW, ("tea",), ("tea",)),
        (D.DECIMAL(3, 1), Decimal("99.95"), Decimal("99.95")),
        (D.DECIMAL(3, 1), "1", "1"),
        (D.TIMESTAMP_LTZ(3), Instant(2, 5_000_000), 2005),
        (D.ARRAY(D.TIMESTAMP(6)), [Instant(2, 5_000), None], [2_000_005, None]),
        (D.MAP(D.INT(), PlaceType()), {1: Place(2.0, 3.0)}, [(1, {"x": 2.0, "y": 3.0})]),
    ],
)
def test_a_value_of_a_function_becomes_one_that_arrow_takes(kind, value, plain):
    to_plain = plain_of(kind)
    assert to_plain is not None and to_plain(value) == plain


def test_rows_are_a_frame_of_their_fields():
    kind = pa.struct([("a", pa.int32()), ("m", pa.map_(pa.string(), pa.int32()))])
    frame = pandas_value(pa.array([{"a": 1, "m": [("k", 2)]}, None], kind).slice(0))
    assert list(frame.columns) == ["a", "m"] and frame["a"][0] == 1 and frame["m"][0] == {"k": 2}
    assert frame["a"].isna()[1] and frame["m"][1] is None and len(pandas_value(pa.array([], kind))) == 0


def test_a_frame_is_rows_by_the_names_of_its_columns_or_by_their_places():
    kind = pa.struct([("a", pa.int32()), ("b", pa.string())])
    for table in ({"b": ["x"], "a": [1]}, {"c": [1], "d": ["x"]}):
        assert rows_of_table(pa.table(table), kind).to_pylist() == [{"a": 1, "b": "x"}]
    with pytest.raises(ValueError, match="1 columns, a, for 2 fields"):
        rows_of_table(pa.table({"a": [1]}), kind)


@pytest.mark.slow
def test_functions_of_pandas_take_and_give_frames_for_rows():
    pandas = pytest.importorskip("pandas")
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("execution.target", "local")

    @udf(result_type=ROW, func_type="pandas")
    def twice(order):
        return pandas.DataFrame({"amount": order["amount"] * 2, "what": order["what"].str.upper()})

    rows = [(("tea", Decimal("1.5")),), (("cake", Decimal(2)),)]
    table = t_env.from_elements(rows, D.ROW([("order", ROW)])).select(twice(col("order")))
    assert [row[0] for row in table.execute().collect()] == [
        Row("TEA", Decimal("3.0")), Row("CAKE", Decimal("4.0")),
    ]  # fmt: skip


def test_fields_of_rows_are_columns_of_the_frame_that_a_row_function_gets():
    pandas = pytest.importorskip("pandas")
    columns = [pandas.Series([1, 2]), pandas.DataFrame({"c": [3, 4], "d": ["x", "y"]})]
    frame = frame_of("pandas", ["a", "b"], columns)
    assert list(frame.columns) == ["a", "c", "d"] and frame.to_dict("list")["d"] == ["x", "y"]


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (D.MAP(D.STRING(False), D.INT()), [{"a": 1}, None, {}, float("nan")], [[("a", 1)], None, [], None]),
        (D.ARRAY(D.MAP(D.INT(False), D.INT())), [[{1: 2}, None]], [[[(1, 2)], None]]),
    ],
)
def test_a_series_of_dicts_is_a_column_of_maps(kind, values, expected):
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(values, dtype=object)
    kernel = UserKernel(lambda: series, "pandas", "f")
    arguments = Arguments([], len(values), Call(kind, named("UPPER"), ()), Session())
    assert kernel(arguments).to_pylist() == expected


@pytest.mark.slow
def test_a_function_gives_an_instant_and_takes_what_a_table_has():
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("execution.target", "local")
    later = udf(lambda at, by: Instant(int(at.timestamp()) + by["s"][0].n, 0), result_type=D.TIMESTAMP_LTZ(3))
    moment = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    table = t_env.from_elements([(moment, {"s": [Row(n=60)]})], ["at", "by"]).select(later(col("at"), col("by")))
    assert [row[0] for row in table.execute().collect()] == [moment + datetime.timedelta(minutes=1)]


@pytest.mark.parametrize(
    ("kind", "value", "cast", "java"),
    [
        (D.INTERVAL_DAY_TIME(), datetime.timedelta(1, 7384, 500_000), "+1 02:03:04.500", "PT26H3M4.5S"),
        (D.INTERVAL_DAY_TIME(), datetime.timedelta(seconds=-100), "-0 00:01:40.000", "PT-1M-40S"),
        (D.INTERVAL_DAY_TIME(), datetime.timedelta(0), "+0 00:00:00.000", "PT0S"),
        (D.INTERVAL_YEAR_MONTH(), 14, "+1-02", "P1Y2M"),
        (D.INTERVAL_YEAR_MONTH(), -1, "-0-01", "P-1M"),
        (D.INTERVAL_YEAR_MONTH(), 0, "+0-00", "P0D"),
    ],
)
def test_lengths_of_time_are_printed_as_flink_does(kind, value, cast, java):
    assert (SqlFormat().of(kind)(value), ValueFormat().of(kind)(value)) == (cast, java)


def test_lists_in_keys_of_maps_are_tuples():
    kind = pa.map_(pa.list_(pa.int8()), pa.list_(pa.struct([("n", pa.list_(pa.int8()))])))
    assert values_of(pa.array([[([1, 2], [{"n": [3]}])]], kind)) == [{(1, 2): [Row(n=[3])]}]


def test_lengths_of_time_have_one_type_whatever_units_they_are_written_in():
    assert common_type([D.INTERVAL(D.YEAR()), D.INTERVAL(D.MONTH())]) == D.INTERVAL_YEAR_MONTH()
    assert common_type([D.INTERVAL(D.DAY()), D.INTERVAL(D.SECOND(3))]) == D.INTERVAL_DAY_TIME(6)
    assert common_type([D.INTERVAL(D.HOUR()), D.INTERVAL(D.HOUR()).not_null()]) == D.INTERVAL(D.HOUR())
