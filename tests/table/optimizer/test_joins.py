"""Filters and projections below joins: plans, and that rows are the same as in DuckDB whatever is joined."""

from __future__ import annotations

from collections import Counter

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.table import EnvironmentSettings, TableEnvironment
from rayflink.table.optimizer.optimizer import RuleSettings, optimized
from rayflink.table.optimizer.rules.push_filter_through_join import push_filter_through_join
from rayflink.table.plan.joins import Join, KeyedJoin
from rayflink.table.plan.logical import Filter, Relation
from rayflink.table.plan.typed import Session

EMP = pa.table({"empno": [1, 2, 3, 4], "deptno": [10, 10, 20, None], "sal": [5, 9, 7, 8]})
DEPT = pa.table({"deptno": [10, 20, 30], "dname": ["sales", "it", "it"]})


@pytest.fixture(scope="module")
def t_env() -> TableEnvironment:
    found = environment()
    for name, table in (("emp", EMP), ("dept", DEPT)):
        found.create_temporary_view(name, found.from_arrow(table))
    return found


def environment() -> TableEnvironment:
    found = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    for key, value in {"execution.target": "local", "parallelism.default": "1"}.items():
        found.get_config().set_string(key, value)
    return found


def below(plan: Relation) -> tuple[list[str], list[str], list[str]]:
    """The conditions above the join, on its left side and on its right side."""
    join = next(one for one in plan.walk() if isinstance(one, (Join, KeyedJoin)))
    sides = [[str(one.condition) for one in side.walk() if isinstance(one, Filter)] for side in join.inputs]
    under = {id(one) for one in join.walk()}
    above = [str(one.condition) for one in plan.walk() if isinstance(one, Filter) and id(one) not in under]
    return above, sides[0], sides[1]


@pytest.mark.spec("R11")
@pytest.mark.parametrize(
    ("join", "above", "left", "right"),
    [
        ("JOIN", [], ["sal > 5"], ["dname = 'it'"]),
        ("LEFT JOIN", ["dname = 'it'"], ["sal > 5"], []),
        ("RIGHT JOIN", ["sal > 5"], [], ["dname = 'it'"]),
        ("FULL JOIN", ["(sal > 5) AND (dname = 'it')"], [], []),
    ],
)
def test_a_filter_on_one_side_goes_below_the_join_as_far_as_outer_joins_allow(t_env, join, above, left, right):
    query = f"SELECT empno, dname FROM emp {join} dept ON emp.deptno = dept.deptno WHERE sal > 5 AND dname = 'it'"
    plan = push_filter_through_join(t_env.sql_query(query)._plan)
    assert below(plan) == (above, left, right)


@pytest.mark.parametrize(
    ("join", "nullable"),
    [
        ("JOIN", (False, False)),
        ("LEFT JOIN", (False, True)),
        ("RIGHT JOIN", (True, False)),
        ("FULL JOIN", (True, True)),
    ],
)
def test_columns_of_a_side_that_may_be_missing_may_be_null(t_env, join, nullable):
    joined = t_env.sql_query(f"SELECT x.n, y.n FROM (VALUES (1)) AS x(n) {join} (VALUES (1)) AS y(n) ON x.n = y.n")
    assert tuple(attribute.type.is_nullable for attribute in joined._plan.schema) == nullable


@pytest.mark.spec("R11")
def test_a_filter_on_both_sides_goes_below_neither_and_joins_the_condition(t_env):
    both = "SELECT empno FROM emp JOIN dept ON emp.deptno = dept.deptno WHERE sal > CHAR_LENGTH(dname) AND sal > 5"
    plan = push_filter_through_join(t_env.sql_query(both)._plan)
    assert below(plan) == ([], ["sal > 5"], [])
    assert "sal > CHAR_LENGTH(dname)" in next(
        str(one.explain_line()) for one in plan.walk() if isinstance(one, (Join, KeyedJoin))
    )


@pytest.mark.parametrize(
    ("join", "left", "right"),
    [("JOIN", 1, 1), ("LEFT JOIN", 0, 1), ("RIGHT JOIN", 1, 0), ("FULL JOIN", 0, 0)],
)
def test_a_side_that_is_kept_whole_is_not_filtered_by_the_join_itself(t_env, join, left, right):
    query = f"SELECT empno FROM emp {join} dept ON emp.deptno = dept.deptno AND sal > 5 AND dname = 'it'"
    above, on_left, on_right = below(push_filter_through_join(t_env.sql_query(query)._plan))
    assert (above, len(on_left), len(on_right)) == ([], left, right)


@pytest.mark.spec("X62")
def test_a_filter_below_the_join_leaves_fewer_rows_to_join_and_the_same_result(t_env):
    query = "SELECT empno FROM emp, dept WHERE emp.deptno = dept.deptno AND sal > 8"
    plan = optimized(t_env.sql_query(query)._plan, Session(), RuleSettings(True))
    join = next(one for one in plan.walk() if isinstance(one, KeyedJoin))
    assert "sal > 8" in str([str(one.explain_line()) for one in join.left.walk()])
    assert [list(row) for row in t_env.execute_sql(query).collect()] == [[2]]


def test_a_join_is_given_only_columns_that_are_read(t_env):
    query = "SELECT dname FROM emp JOIN dept ON emp.deptno = dept.deptno"
    plan = optimized(t_env.sql_query(query)._plan, Session(), RuleSettings(True))
    join = next(one for one in plan.walk() if isinstance(one, KeyedJoin))
    assert [join.left.names, join.right.names] == [["deptno"], ["deptno", "dname"]]


CONDITIONS = [
    "a.k = b.k", "a.x = b.x", "a.x < b.x", "a.k > 1", "b.x IS NULL", "b.k < 3", "a.x + 1 = b.x", "a.k IS NOT NULL",
    "a.x IS NOT DISTINCT FROM b.x", "COALESCE(a.x, 0) = b.k", "TRUE", "a.k <> 2 OR b.x = 1",
]  # fmt: skip
numbers = st.none() | st.integers(0, 3)
tables = st.lists(st.tuples(numbers, numbers), max_size=6)
conditions = st.lists(st.sampled_from(CONDITIONS), max_size=3)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["-1", "0", "1048576"]), tables, tables,
    st.sampled_from(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]), conditions, conditions,
    st.sampled_from(["", " AND a.k IN (SELECT k FROM c)", " AND a.k NOT IN (SELECT k FROM c WHERE c.x = b.x)",
                     " AND NOT EXISTS (SELECT 1 FROM c WHERE c.k = a.x)"]),
)  # fmt: skip
def test_joins_of_any_tables_give_the_rows_of_duckdb(threshold, left, right, join, on, where, asked):
    t_env, other = environment(), duckdb.connect()
    t_env.get_config().set_string("table.optimizer.join.broadcast-threshold", threshold)
    for name, rows in (("a", left), ("b", right), ("c", right[:3])):
        kinds = [pa.int64(), pa.int64()]
        columns = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds)]
        table = pa.Table.from_arrays(columns, names=["k", "x"])
        t_env.create_temporary_view(name, t_env.from_arrow(table))
        other.register(name, table)
    # DuckDB has an outer join by inequalities alone only where there is an equality, too
    on = ["a.k = b.k", *on] if join == "FULL JOIN" else on
    query = (
        f"SELECT a.k AS ak, a.x AS ax, b.k AS bk, b.x AS bx FROM a {join} b ON {' AND '.join(on) or 'TRUE'} "
        f"WHERE {' AND '.join(f'({one})' for one in where) or 'TRUE'}{asked}"
    )
    found = [tuple(row) for row in t_env.execute_sql(query).collect()]
    assert Counter(found) == Counter(other.execute(query).fetchall()), query
