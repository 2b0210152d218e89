"""What the pages of Flink 2.3 on the operations of the Table API in Python say that they give."""

from __future__ import annotations

import datetime

import pytest

from rayflink.common import Row
from rayflink.table import DataTypes
from rayflink.table.expressions import (
    CURRENT_RANGE,
    UNBOUNDED_RANGE,
    UNBOUNDED_ROW,
    col,
    concat,
    lit,
    row_interval,
)
from rayflink.table.udf import udaf, udf, udtf
from rayflink.table.window import Over, Session, Slide, Tumble
from tests.pyflink.documented_programs import csv_table, environment, shown

COLUMNS = (
    "a STRING, b BIGINT, c BIGINT, rowtime TIMESTAMP(3), proctime AS PROCTIME(), "
    "WATERMARK FOR rowtime AS rowtime - INTERVAL '1' SECOND"
)
LINES = ("X,1,1,10:00", "Y,5,2,10:02", "X,3,2,10:30", "X,3,9,11:15")


@pytest.fixture(params=[False, True], ids=["streaming", "batch"])
def t_env(request, tmp_path):
    created = environment(request.param)
    csv_table(created, tmp_path, "Orders", COLUMNS, *(f"{line[:-5]}2020-01-01 {line[-5:]}:00" for line in LINES))
    return created


def at(hour, minute, second=0, microsecond=0):
    return datetime.datetime(2020, 1, 1, hour, minute, second, microsecond)


def rows(table):
    """The rows of a table, in order."""
    with table.execute().collect() as result:
        return sorted(map(tuple, result), key=lambda row: [*map(str, row)])


def test_the_example_of_the_overview(t_env):
    orders = t_env.from_path("Orders")
    hourly = (
        orders.filter(col("a").is_not_null & col("b").is_not_null & col("c").is_not_null)
        .select(col("a").lower_case.alias("a"), col("b"), col("rowtime"))
        .window(Tumble.over(lit(1).hour).on(col("rowtime")).alias("hourly_window"))
        .group_by(col("hourly_window"), col("a"))
        .select(col("a"), col("hourly_window").end.alias("hour"), col("b").avg.alias("avg_billing_amount"))
    )
    assert hourly.get_schema().get_field_names() == ["a", "hour", "avg_billing_amount"]
    assert rows(hourly) == [("x", at(11, 0), 2), ("x", at(12, 0), 3), ("y", at(11, 0), 5)]


def test_columns_are_added_replaced_dropped_and_renamed(t_env):
    orders = t_env.from_path("Orders").select(col("a"), col("b"), col("c"))
    assert rows(orders.where(col("a") == "Y").add_columns(concat(col("a"), "sunny"))) == [("Y", 5, 2, "Ysunny")]
    replaced = orders.filter(col("a") == "Y").add_or_replace_columns(concat(col("a"), "sunny").alias("a"))
    assert shown(replaced) == (["a", "b", "c"], [("Ysunny", 5, 2)])
    names = [
        table.get_schema().get_field_names()
        for table in (orders.drop_columns(col("b"), col("c")), orders.select(col("*")), orders.alias("x", "y", "z"),
                      orders.rename_columns(col("b").alias("b2"), col("c").alias("c2")))
    ]  # fmt: skip
    assert names == [["a"], ["a", "b", "c"], ["x", "y", "z"], ["a", "b2", "c2"]]


@pytest.mark.parametrize(
    "window, expected",
    [
        (Tumble.over(lit(5).minutes), [(at(10, 0), at(10, 5), 6), (at(10, 30), at(10, 35), 3)]),
        (Slide.over(lit(10).minutes).every(lit(5).minutes), [(at(9, 55), at(10, 5), 6), (at(10, 0), at(10, 10), 6)]),
        (Session.with_gap(lit(10).minutes), [(at(10, 0), at(10, 12), 6), (at(10, 30), at(10, 40), 3)]),
    ],
)
def test_groups_of_windows(t_env, window, expected):
    windowed = t_env.from_path("Orders").window(window.on(col("rowtime")).alias("w"))
    assert rows(windowed.group_by(col("w")).select(col("w").start, col("w").end, col("b").sum))[:2] == expected
    keyed = windowed.group_by(col("a"), col("w")).select(col("a"), col("w").rowtime, col("b").sum.distinct)
    assert {row[0] for row in rows(keyed)} == {"X", "Y"}
    assert all(row[1].microsecond == 999_000 for row in rows(keyed))


@pytest.mark.parametrize("t_env", [False], ids=["streaming"], indirect=True)
def test_windows_of_a_count_of_rows(t_env):
    orders = t_env.from_path("Orders")
    two = orders.window(Tumble.over(row_interval(2)).on(col("proctime")).alias("w"))
    assert rows(two.group_by(col("w")).select(col("b").sum)) == [(6,), (6,)]
    moving = orders.window(Slide.over(row_interval(2)).every(row_interval(1)).on(col("proctime")).alias("w"))
    assert rows(moving.group_by(col("w")).select(col("b").sum)) == [(6,), (6,), (8,)]


BY_A = Over.partition_by(col("a")).order_by(col("rowtime"))


@pytest.mark.parametrize(
    "over, expected",
    [
        (BY_A.preceding(UNBOUNDED_RANGE).following(CURRENT_RANGE), [1, 4, 7, 5]),
        (BY_A.preceding(UNBOUNDED_ROW), [1, 4, 7, 5]),
        (BY_A.preceding(lit(31).minutes), [1, 4, 3, 5]),
        (BY_A.preceding(row_interval(1)), [1, 4, 6, 5]),
        (Over.order_by(col("rowtime")).preceding(UNBOUNDED_RANGE), [1, 9, 12, 6]),
    ],
)
def test_over_windows(t_env, over, expected):
    orders = t_env.from_path("Orders").over_window(over.alias("w"))
    sums = rows(orders.select(col("a"), col("rowtime"), col("b").sum.over(col("w")), col("b").max.over(col("w"))))
    assert [(row[0], row[2]) for row in sorted(sums)] == list(zip("XXXY", expected, strict=True))


def test_distinct_rows_and_values(t_env):
    orders = t_env.from_path("Orders")
    assert shown(orders.group_by(col("a")).select(col("a"), col("b").sum.distinct.alias("d"))) == (
        ["a", "d"], [("X", 4), ("Y", 5)])  # fmt: skip
    assert shown(orders.select(col("a")).distinct())[1] == [("X",), ("Y",)]
    over = orders.over_window(BY_A.preceding(UNBOUNDED_RANGE).alias("w"))
    assert rows(over.select(col("a"), col("b").sum.distinct.over(col("w")))) == [("X", 1), ("X", 4), ("X", 4), ("Y", 5)]


@pytest.mark.parametrize(
    "join, expected",
    [
        ("left_outer_join", {(1, "l1", "r1"), (2, "l2", None)}),
        ("right_outer_join", {(1, "l1", "r1"), (None, None, "r3")}),
        ("full_outer_join", {(1, "l1", "r1"), (2, "l2", None), (None, None, "r3")}),
    ],
)
def test_joins_of_two_tables(t_env, join, expected):
    left = t_env.from_elements([(1, "l1", 0), (2, "l2", 0)], ["a", "b", "c"])
    right = t_env.from_elements([(1, "r1", 0), (3, "r3", 0)], ["d", "e", "f"])
    chosen = col("a"), col("b"), col("e")
    outer = getattr(left, join)(right, col("a") == col("d")).select(*chosen)
    assert {tuple(None if value != value else value for value in row) for row in shown_rows(outer)} == expected
    assert rows(left.join(right).where(col("a") == col("d")).select(*chosen)) == [(1, "l1", "r1")]
    assert rows(left.where(col("a").in_(right.select(col("d"))))) == [(1, "l1", 0)]


def shown_rows(table):
    """The rows that remain of a table after all changes."""
    return table.to_pandas().astype(object).values.tolist()


def test_interval_joins_and_table_functions(t_env):
    orders = t_env.from_path("Orders")
    later = orders.select(col("a").alias("d"), col("b").alias("e"), col("rowtime").alias("rowtime2"))
    near = (col("rowtime") >= col("rowtime2") - lit(1).second) & (col("rowtime") <= col("rowtime2") + lit(2).seconds)
    joined = orders.join(later).where((col("a") == col("d")) & near).select(col("a"), col("b"), col("e"))
    assert rows(joined) == [("X", 1, 1), ("X", 3, 3), ("X", 3, 3), ("Y", 5, 5)]

    @udtf(result_types=[DataTypes.BIGINT(), DataTypes.BIGINT(), DataTypes.BIGINT()])
    def split(number):
        return [Row(1, 2, 3)] if number > 1 else []

    call = split(col("c")).alias("s", "t", "v")
    few = orders.where(col("rowtime") <= lit(at(10, 2))).select(col("a"), col("c"))
    assert rows(few.join_lateral(call).select(col("a"), col("s"), col("v"))) == [("Y", 1, 3)]
    assert rows(few.left_outer_join_lateral(call).select(col("a"), col("t"))) == [("X", None), ("Y", 2)]


@pytest.mark.parametrize(
    "operation, expected",
    [("union", [1, 2, 3]), ("union_all", [1, 1, 1, 2, 3]), ("intersect", [1]), ("intersect_all", [1]),
     ("minus", [2]), ("minus_all", [1, 2])],
)  # fmt: skip
def test_sets_of_tables(operation, expected):
    t_env = environment(batch=True)
    left, right = t_env.from_elements([(1,), (1,), (2,)], ["a"]), t_env.from_elements([(1,), (3,)], ["a"])
    assert rows(getattr(left, operation)(right)) == [(value,) for value in expected]


def test_rows_are_sorted_skipped_and_fetched():
    numbers = environment(batch=True).from_elements([(number,) for number in range(12)], ["a"])
    ascending = numbers.order_by(col("a").asc)
    assert rows(ascending.fetch(2)) == [(0,), (1,)]
    assert rows(ascending.offset(10)) == [(10,), (11,)]
    assert rows(numbers.order_by(col("a").desc).offset(10).fetch(5)) == [(0,), (1,)]


def test_rows_of_functions_have_named_fields(t_env):
    fields = [DataTypes.FIELD("a", DataTypes.BIGINT()), DataTypes.FIELD("b", DataTypes.BIGINT())]
    table = t_env.from_elements([(1, 2)], ["a", "b"])
    mapped = table.map(udf(lambda row: Row(row.a + 1, row.b * row.b), result_type=DataTypes.ROW(fields)))
    assert shown(mapped.alias("x", "y")) == (["x", "y"], [(2, 4)])
    doubled = udf(lambda frame: frame * 2, result_type=DataTypes.ROW(fields), func_type="pandas")
    assert shown(table.map(doubled).alias("x", "y")) == (["x", "y"], [(2, 4)])


def test_an_aggregate_of_frames_in_a_window(t_env):
    fields = [DataTypes.FIELD("a", DataTypes.FLOAT()), DataTypes.FIELD("b", DataTypes.INT())]
    function = udaf(lambda f: (f.b.mean(), f.b.max()), result_type=DataTypes.ROW(fields), func_type="pandas")
    window = Tumble.over(lit(1).hours).on(col("rowtime")).alias("w")
    grouped = t_env.from_path("Orders").select(col("b"), col("rowtime")).window(window).group_by(col("w"))
    result = grouped.aggregate(function.alias("d", "e")).select(col("w").rowtime, col("d"), col("e"))
    assert rows(result) == [(at(10, 59, 59, 999_000), 3.0, 5), (at(11, 59, 59, 999_000), 3.0, 3)]
