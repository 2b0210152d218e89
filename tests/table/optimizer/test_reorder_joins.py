"""Inner joins are run in the order that makes the fewest rows, and give the same rows as in the written one."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.table import EnvironmentSettings, TableEnvironment
from rayflink.table.optimizer.join_order import JoinOrder, Order
from rayflink.table.runtime.joins.join_rows import JoinRows

SALES = pa.table({"id": range(4000), "shop": [n % 40 for n in range(4000)], "item": [n % 500 for n in range(4000)]})
SHOPS = pa.table({"shop": range(40), "town": [n % 8 for n in range(40)]})
TOWNS = pa.table({"town": range(8), "land": ["a" if n < 4 else "b" for n in range(8)]})
ITEMS = pa.table({"item": range(500), "kind": [f"k{n % 50}" for n in range(500)]})
STAR = (
    "SELECT sales.id, land, kind FROM sales JOIN shops ON sales.shop = shops.shop "
    "JOIN towns ON shops.town = towns.town JOIN items ON sales.item = items.item WHERE kind = 'k7' AND land = 'a'"
)


def environment(**tables: pa.Table) -> TableEnvironment:
    found = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    found.get_config().set_string("execution.target", "local")
    for name, table in tables.items():
        found.create_temporary_view(name, found.from_arrow(table))
    return found


@pytest.fixture
def shop() -> TableEnvironment:
    return environment(sales=SALES, shops=SHOPS, towns=TOWNS, items=ITEMS)


def reorder(t_env: TableEnvironment, enabled: bool = True) -> None:
    t_env.get_config().set_string("table.optimizer.join-reorder-enabled", str(enabled).lower())


def rows(t_env: TableEnvironment, query: str) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row) for row in t_env.execute_sql(query).collect())


def joins(t_env: TableEnvironment, query: str) -> list[str]:
    """The columns of the joins, from the result down."""
    plan = t_env.explain_sql(query).partition("== Optimized Physical Plan ==\n")[2].partition("\n\n")[0]
    return re.findall(r"HashJoin\(.*where=\[(.*?)\], select", plan)


@contextmanager
def counted() -> Iterator[list[int]]:
    """The rows that joins give meanwhile."""
    made: list[int] = []
    joined = JoinRows.join

    def count(self, *args):
        for batch in joined(self, *args):
            made.append(len(batch))
            yield batch

    with mock.patch.object(JoinRows, "join", count):
        yield made


@pytest.mark.spec("R10")
def test_the_order_that_is_chosen_makes_fewer_rows(shop):
    with counted() as written:
        wanted = rows(shop, STAR)
    reorder(shop)
    with counted() as chosen:
        assert rows(shop, STAR) == wanted and sum(wanted.values()) == 40
    assert sum(written) == 4000 + 2000 + 40
    assert sum(chosen) < 300


@pytest.mark.spec("R10")
def test_explain_shows_the_order(shop):
    assert joins(shop, STAR) == ["item = item", "town = town", "shop = shop"]
    reorder(shop)
    assert joins(shop, STAR) == ["shop = shop", "item = item", "town = town"]


def test_the_columns_keep_their_order_and_names(shop):
    query = STAR.replace("sales.id, land, kind", "*")
    wanted = shop.sql_query(query)
    reorder(shop)
    assert shop.sql_query(query).get_schema() == wanted.get_schema()
    found = rows(shop, query)
    reorder(shop, False)
    assert found == rows(shop, query)


@pytest.mark.parametrize(
    ("part", "instead"),
    [
        ("= shops.shop", "= shops.shop AND RAND() >= 0"),
        ("= shops.shop", "= shops.shop AND 100 / (sales.id + shops.shop + 1) >= 0"),
        ("JOIN shops", "LEFT JOIN shops"),
    ],
)
def test_what_may_not_be_moved_stays_as_it_is_written(shop, part, instead):
    query = STAR.replace(part, instead).replace(" AND land = 'a'", "").replace("JOIN towns", "LEFT JOIN towns")
    usual = joins(shop, query)
    reorder(shop)
    assert joins(shop, query) == usual and len(usual) == 3


def test_a_table_that_tells_nothing_leaves_the_order(shop):
    shop.execute_sql("CREATE TABLE made (item BIGINT, k INT) WITH ('connector' = 'datagen', 'number-of-rows' = '5')")
    query = STAR.replace("items", "made").replace("kind = 'k7'", "made.k > 0").replace(", kind", "")
    usual = joins(shop, query)
    reorder(shop)
    assert joins(shop, query) == usual


def test_many_tables_are_ordered_step_by_step(shop):
    reorder(shop)
    wanted = rows(shop, STAR)
    shop.get_config().set_string("table.optimizer.bushy-join-reorder-threshold", "2")
    assert rows(shop, STAR) == wanted
    assert joins(shop, STAR)[-1] != "shop = shop"


def test_a_cross_product_that_is_written_is_made_at_the_end(shop):
    query = "SELECT COUNT(*) FROM towns, sales, shops, items WHERE sales.shop = shops.shop AND sales.item = items.item"
    reorder(shop)
    with counted() as made:
        assert list(rows(shop, query)) == [(32000,)]
    assert sum(made) == 4000 + 4000 + 32000


TABLES = {"a": 6, "b": 4, "c": 5, "d": 3}
numbers = st.none() | st.integers(0, 3)
EDGES = [
    "a.k = b.k", "b.x = c.x", "a.x = c.k", "c.k = d.k", "d.x = a.x", "b.k IS NOT DISTINCT FROM d.x", "a.k < c.x",
    "a.x + b.x = c.x", "a.k + 1 = d.k", "b.x > 0", "c.k IS NOT NULL OR d.k = 1", "d.x <> 2",
]  # fmt: skip


@st.composite
def four_tables(draw: st.DrawFn) -> dict[str, list[tuple[int | None, int | None]]]:
    return {name: draw(st.lists(st.tuples(numbers, numbers), max_size=most)) for name, most in TABLES.items()}


@st.composite
def orders(draw: st.DrawFn, tables: list[int]) -> Order:
    """Any order, with cross products and whichever side."""
    if len(tables) == 1:
        return tables[0]
    at = draw(st.integers(1, len(tables) - 1))
    return draw(orders(tables[:at])), draw(orders(tables[at:]))


@pytest.mark.slow
@pytest.mark.spec("R10")
@settings(max_examples=20, deadline=None)
@given(
    four_tables(), st.lists(st.sampled_from(EDGES), max_size=5, unique=True), st.permutations(range(4)).flatmap(orders),
    st.booleans(),
)  # fmt: skip
def test_every_order_gives_the_rows_of_duckdb(tables, edges, order, is_nested):
    t_env, other = environment(), duckdb.connect()
    for name, given_rows in tables.items():
        columns = [pa.array([row[at] for row in given_rows], pa.int64()) for at in (0, 1)]
        table = pa.Table.from_arrays(columns, names=["k", "x"])
        t_env.create_temporary_view(name, t_env.from_arrow(table))
        other.register(name, table)
    reorder(t_env)
    columns = "a.k AS ak, a.x AS ax, b.x AS bx, c.k AS ck, d.x AS dx"
    query = f"SELECT {columns} FROM a, b, c, d WHERE {' AND '.join(f'({one})' for one in edges) or 'TRUE'}"
    if is_nested:
        query = f"SELECT dx, n.ax, a.k FROM ({query}) AS n JOIN a ON n.ak = a.k AND n.dx >= a.x"
    wanted = Counter(other.execute(query).fetchall())
    assert rows(t_env, query) == wanted, query
    dictated = mock.patch.object(JoinOrder, "best", lambda self: order if len(self.rows) == 4 else (4, order))
    with dictated, mock.patch.object(sys.modules["rayflink.table.optimizer.rules.reorder_joins"], "GAIN", 1e30):
        assert rows(t_env, query) == wanted, (query, order)
