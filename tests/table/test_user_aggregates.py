"""Aggregate functions of the user's own in SQL and the Table API."""

from __future__ import annotations

import pytest

from rayflink.common import Row
from rayflink.common.errors import InvalidTypesError, JobFailed
from rayflink.table import DataTypes, EnvironmentSettings, ListView, MapView, SqlError, TableEnvironment
from rayflink.table.expressions import call, col, row_interval
from rayflink.table.udf import AggregateFunction, TableAggregateFunction, udaf, udtaf
from rayflink.table.window import Slide, Tumble

ORDERS = [(1, "tea", "ann"), (3, "tea", "bob"), (3, "cake", "bob"), (3, "tea", "eve"), (2, "tea", "ann")]


class Joined(AggregateFunction):
    """Words that are not null, sorted, with a separator."""

    def create_accumulator(self):
        return []

    def accumulate(self, accumulator, word, separator):
        accumulator.append((word, separator))

    def retract(self, accumulator, word, separator):
        accumulator.remove((word, separator))

    def get_value(self, accumulator):
        return accumulator[0][1].join(sorted(word for word, _ in accumulator)) if accumulator else ""

    def get_result_type(self):
        return DataTypes.STRING()


class CountAndSum(AggregateFunction):
    """Counts rows and sums their first column."""

    def create_accumulator(self):
        return [0, 0]

    def accumulate(self, accumulator, row):
        accumulator[0] += 1
        accumulator[1] += row.n

    def get_value(self, accumulator):
        return tuple(accumulator)

    def get_result_type(self):
        return "ROW<orders BIGINT, total BIGINT>"


class Top2(TableAggregateFunction):
    """The two greatest values, with their places."""

    def create_accumulator(self):
        return []

    def accumulate(self, accumulator, n):
        accumulator[:] = sorted([n, *accumulator], reverse=True)[:2]

    def emit_value(self, accumulator):
        yield from enumerate(accumulator, 1)

    def get_result_type(self):
        return DataTypes.ROW([DataTypes.FIELD("place", DataTypes.INT()), DataTypes.FIELD("best", DataTypes.BIGINT())])


def environment(settings: EnvironmentSettings) -> TableEnvironment:
    t_env = TableEnvironment.create(settings)
    t_env.get_config().set_string("execution.target", "local")
    t_env.create_temporary_view("orders", t_env.from_elements(ORDERS, ["n", "what", "who"]))
    t_env.create_temporary_function("joined", Joined())
    t_env.create_temporary_system_function("top2", Top2())
    return t_env


@pytest.fixture
def t_env() -> TableEnvironment:
    return environment(EnvironmentSettings.in_streaming_mode())


@pytest.fixture
def batch_env() -> TableEnvironment:
    return environment(EnvironmentSettings.in_batch_mode())


def rows(table) -> list[tuple]:
    return [tuple(row) for row in table.collect()]


def folded(result) -> list[tuple]:
    """The rows that a changelog leaves, sorted."""
    left: list[tuple] = []
    for row in result.collect():
        if row.get_row_kind().name in ("INSERT", "UPDATE_AFTER"):
            left.append(tuple(row))
        else:
            left.remove(tuple(row))
    return sorted(left)


QUERY = """SELECT who, joined(what, '+'), joined(DISTINCT what, '.') FILTER (WHERE n > 1) AS d, COUNT(*)
           FROM orders GROUP BY who HAVING joined(what, '') <> 'x'"""
JOINED = [("ann", "tea+tea", "tea", 2), ("bob", "cake+tea", "cake.tea", 2), ("eve", "tea", "tea", 1)]


def test_it_stands_beside_built_in_ones_with_distinct_filter_and_having(t_env, batch_env):
    assert folded(t_env.execute_sql(QUERY)) == JOINED
    assert sorted(rows(batch_env.execute_sql(QUERY))) == JOINED


def test_rows_that_change_are_taken_back(t_env):
    changing = "(SELECT who, LAST_VALUE(what) AS what FROM orders GROUP BY who)"
    assert folded(t_env.execute_sql(f"SELECT joined(what, '|') FROM {changing}")) == [("cake|tea|tea",)]
    orders = t_env.from_path("orders")
    changing = orders.group_by(col("who")).select(col("n").max.alias("n"))
    with pytest.raises(SqlError, match="CountAndSum has no method retract, and its input has rows that are taken back"):
        changing.aggregate(udaf(CountAndSum())).select(col("total")).execute()


def test_columns_of_pandas_are_for_rows_that_end(t_env, batch_env):
    spread = udaf(lambda n: (n.max() - n.min(), n.mean()), result_type="ROW<a BIGINT, b FLOAT>", func_type="pandas")
    for env in (t_env, batch_env):
        env.create_temporary_function("spread", spread)
    orders = batch_env.from_path("orders")
    spreads = orders.group_by(col("what")).aggregate(spread(col("n")).alias("x", "y")).select(col("what"), col("y"))
    assert sorted(rows(spreads.execute())) == [("cake", 3.0), ("tea", 2.25)]
    assert rows(batch_env.execute_sql("SELECT spread(n).a FROM orders WHERE n > 5")) == [(None,)]
    with pytest.raises(SqlError, match="(?s)SPREAD is given columns of pandas .* which GROUP BY over a stream without"):
        t_env.execute_sql("SELECT spread(n) FROM orders")


def test_a_row_is_given_and_its_fields_become_columns(t_env):
    sums = t_env.from_path("orders").group_by(col("what")).aggregate(udaf(CountAndSum()).alias("c", "s"))
    assert folded(sums.select(col("what"), col("s"), col("c")).execute()) == [("cake", 3, 1), ("tea", 9, 4)]
    with pytest.raises(SqlError, match="1 names for 2 columns"):
        t_env.from_path("orders").aggregate(udaf(CountAndSum()).alias("c")).select(col("c"))


@pytest.mark.parametrize("top", [udtaf(Top2())(col("n")), call("top2", col("n"))])
def test_a_table_aggregate_function_gives_rows(t_env, batch_env, top):
    expected = [("ann", 1, 2), ("ann", 2, 1), ("bob", 1, 3), ("bob", 2, 3), ("eve", 1, 3)]
    for env in (t_env, batch_env):
        best = env.from_path("orders").group_by(col("who")).flat_aggregate(top)
        assert folded(best.select(col("who"), col("place"), col("best")).execute()) == expected
    best = t_env.from_path("orders").where(col("who") == "ann").flat_aggregate(top).select(col("best"))
    changes = [(row.get_row_kind().name, *row) for row in best.execute().collect()]
    assert changes == [("INSERT", 1), ("DELETE", 1), ("INSERT", 2), ("INSERT", 1)]


class Words(AggregateFunction):
    """Words in the order in which they came, and how many different ones there are."""

    def create_accumulator(self):
        return Row(ListView(), MapView(), 0)

    def accumulate(self, accumulator, word):
        accumulator[0].add(word)
        accumulator[1].put_all({word: (accumulator[1].get(word) or 0) + 1})
        accumulator[2] += 1

    def get_value(self, accumulator):
        counts = sorted(f"{word}:{times}" for word, times in accumulator[1].items())
        return Row(" ".join(accumulator[0]), ",".join(counts), accumulator[2])

    def get_result_type(self):
        return "ROW<words STRING, counts STRING, size INT>"

    def get_accumulator_type(self):
        views = DataTypes.LIST_VIEW(DataTypes.STRING()), DataTypes.MAP_VIEW(DataTypes.STRING(), DataTypes.INT())
        return DataTypes.ROW([DataTypes.FIELD(f"f{n}", view) for n, view in enumerate((*views, DataTypes.INT()))])


def test_views_are_collections_in_groups_and_in_batch_mode(t_env, batch_env):
    expected = [("ann", "tea tea", "tea:2", 2), ("bob", "tea cake", "cake:1,tea:1", 2), ("eve", "tea", "tea:1", 1)]
    for env in (t_env, batch_env):
        words = env.from_path("orders").group_by(col("who")).aggregate(udaf(Words())(col("what")))
        result = words.select(col("who"), col("words"), col("counts"), col("size")).execute()
        assert folded(result) == expected


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (Tumble.over(row_interval(2)), [(1, "x|y", 3.0, 2), (2, "z|z", 2.0, 2)]),
        (
            Slide.over(row_interval(2)).every(row_interval(1)),
            [(1, "x|y", 3.0, 2), (1, "y|z", 7.0, 2), (2, "z|z", 2.0, 2)],
        ),
    ],
)
def test_windows_of_rows_are_over_with_their_last_row(t_env, batch_env, window, expected):
    mean = udaf(lambda n: n.mean(), result_type="DOUBLE", func_type="pandas")
    values = [(1, "x", 2), (3, "z", 1), (1, "y", 4), (2, "z", 3), (1, "z", 10), (2, "z", 1)]
    for env in (t_env, batch_env):
        table = env.from_elements(values, ["k", "w", "n"]).add_columns(call("PROCTIME").alias("p"))
        groups = table.window(window.on(col("p")).alias("w0")).group_by(col("k"), col("w0"))
        columns = col("k"), call("joined", col("w"), "|"), mean(col("n")), col("n").count
        assert sorted(rows(groups.select(*columns).execute())) == expected
        with pytest.raises(SqlError, match=r"w0\.start: a window of rows has no bounds in time"):
            groups.select(col("w0").start)
        with pytest.raises(SqlError, match="column 'n' is not in group_by"):
            groups.select(col("n"))


def test_functions_in_wrong_places_are_errors(t_env):
    orders = t_env.from_path("orders")
    with pytest.raises(SqlError, match="WHERE has an aggregate"):
        t_env.execute_sql("SELECT n FROM orders WHERE joined(what, '') = ''")
    with pytest.raises(SqlError, match=r"JOINED does not take \(STRING\); it takes 2 arguments"):
        t_env.execute_sql("SELECT joined(what) FROM orders")
    with pytest.raises(SqlError, match=r"JOINED\(DISTINCT ...\) of 2 columns"):
        t_env.execute_sql("SELECT joined(DISTINCT what, who) FROM orders")
    with pytest.raises(SqlError, match="TOP2 is a table aggregate function, whose rows have no place here"):
        t_env.execute_sql("SELECT top2(n) FROM orders")
    with pytest.raises(SqlError, match="Joined gives one value, not rows"):
        orders.flat_aggregate(udaf(Joined())(col("what"), "")).select(col("f0"))
    with pytest.raises(SqlError, match="the function has a column 'best', and so have the groups"):
        orders.group_by(col("n").alias("best")).flat_aggregate(udtaf(Top2())(col("n"))).select(col("best"))


def test_what_is_no_aggregate_function_is_an_error():
    with pytest.raises(InvalidTypesError, match="<lambda> is not an aggregate function"):
        udaf(lambda n: n, result_type="INT")
    with pytest.raises(InvalidTypesError, match="Top2 is not an aggregate function"):
        udaf(Top2())
    with pytest.raises(InvalidTypesError, match="Joined is not a table aggregate function"):
        udtaf(Joined())
    with pytest.raises(InvalidTypesError, match="over pandas is MAP<INT, INT>"):
        udaf(len, result_type=DataTypes.MAP(DataTypes.INT(), DataTypes.INT()), func_type="pandas")
    with pytest.raises(ValueError, match="The func_type must be 'general'"):
        udtaf(Top2(), func_type="pandas")


def test_it_is_opened_and_closed_and_its_errors_name_it(t_env, tmp_path):
    class Opened(Joined):
        def open(self, function_context):
            self.separator = function_context.get_job_parameter("my.separator", "&")

        def close(self):
            (tmp_path / "closed").touch()

        def accumulate(self, accumulator, word):
            super().accumulate(accumulator, word, self.separator)

    t_env.create_temporary_function("opened", Opened())
    assert folded(t_env.execute_sql("SELECT opened(what) FROM orders WHERE who = 'bob'")) == [("cake&tea",)]
    assert (tmp_path / "closed").exists()
    with pytest.raises(JobFailed, match=r"accumulate.* of function OPENED failed for the arguments \(1,\): TypeError"):
        t_env.create_temporary_function("wrong", udaf(Opened(), result_type="BIGINT"))
        folded(t_env.execute_sql("SELECT opened(n) FROM orders"))
    with pytest.raises(JobFailed, match="function WRONG returned 'tea' of type str; return BIGINT"):
        folded(t_env.execute_sql("SELECT wrong(what) FROM orders"))
