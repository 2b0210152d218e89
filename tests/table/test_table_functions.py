"""Table functions of the user's own, called by LATERAL TABLE."""

from __future__ import annotations

import polars
import pyarrow
import pytest

from rayflink.common.errors import InvalidTypesError, JobFailed
from rayflink.common.types import Row
from rayflink.table import DataTypes, EnvironmentSettings, SqlError, TableEnvironment
from rayflink.table.udf import TableFunction, udf, udtf


@pytest.fixture
def t_env() -> TableEnvironment:
    found = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    found.get_config().set_string("execution.target", "local")
    found.create_temporary_view("t", found.from_elements([(1, "a b"), (2, ""), (3, None), (4, "c")], ["n", "w"]))
    return found


def rows(t_env: TableEnvironment, query: str) -> list[tuple[object, ...]]:
    return [tuple(row._values) for row in t_env.execute_sql(query).collect()]


@udtf(result_types=[DataTypes.STRING(), DataTypes.INT()])
def words(text, extra=0):
    for word in (text or "").split():
        yield word, len(word) + extra


def test_each_row_stands_beside_those_that_the_function_yields(t_env):
    t_env.create_temporary_function("words", words)
    assert rows(t_env, "SELECT n, word, size FROM t, LATERAL TABLE(words(w)) AS r(word, size)") == [
        (1, "a", 1), (1, "b", 1), (4, "c", 1),
    ]  # fmt: skip
    crossed = "SELECT n, r.* FROM t CROSS JOIN LATERAL TABLE(WORDS(w, 2)) AS r(a, b) WHERE n > 1"
    assert rows(t_env, crossed) == [(4, "c", 3)]
    left = "SELECT n, word FROM t LEFT JOIN LATERAL TABLE(words(w)) AS r(word, size) ON TRUE"
    assert rows(t_env, left) == [(1, "a"), (1, "b"), (2, None), (3, None), (4, "c")]
    assert rows(t_env, "SELECT f0, f1 FROM LATERAL TABLE(words('x yy'))") == [("x", 1), ("yy", 2)]
    assert rows(t_env, "SELECT a FROM TABLE(words('x yy')) AS r(a, b) WHERE b = 2") == [("yy",)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (lambda n: None, []),
        (lambda n: range(n), [0, 1]),
        (lambda n: [n, None], [2, None]),
        (lambda n: n, [2]),
        (lambda n: iter([(n,), Row(7)]), [2, 7]),
    ],
)
def test_rows_are_given_in_many_forms(t_env, given, expected):
    t_env.create_temporary_function("f", udtf(given, result_types=DataTypes.BIGINT()))
    assert rows(t_env, "SELECT x FROM LATERAL TABLE(f(2)) AS r(x)") == [(one,) for one in expected]


def test_columns_have_the_names_of_its_row_type(t_env):
    made = udtf(lambda n: [(n, [n]), Row(n, None)], result_types="ROW<a BIGINT, b ARRAY<BIGINT>>")
    t_env.create_temporary_function("f", made)
    assert rows(t_env, "SELECT a, b FROM t, LATERAL TABLE(f(n)) WHERE n = 1") == [(1, [1]), (1, None)]


def numbered(column):
    n = column.to_pylist() if isinstance(column, pyarrow.Array) else list(column)
    pairs = [(at, each) for at in reversed(range(len(n))) for each in range(n[at] % 3)]
    return {"row": [at for at, _ in pairs], "x": [each for _, each in pairs]}


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        ("arrow", lambda n: pyarrow.table(numbered(n))),
        ("polars", lambda n: polars.DataFrame(numbered(n), schema={"row": polars.UInt32, "x": polars.Int64})),
        ("pandas", lambda n: pytest.importorskip("pandas").DataFrame(numbered(n))),
    ],
)
def test_a_vectorised_one_says_to_which_row_its_rows_belong(t_env, kind, function):
    t_env.create_temporary_function("f", udtf(function, result_types="ROW<x BIGINT>", func_type=kind))
    assert rows(t_env, "SELECT n, x FROM t, LATERAL TABLE(f(n))") == [(1, 0), (2, 0), (2, 1), (4, 0)]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (lambda n: pyarrow.table({"row": [99], "x": [1]}), "returned row numbers outside of 0 to"),
        (lambda n: pyarrow.table({"x": [1]}), "returned 1 columns: x; return 2"),
        (lambda n: n, "returned a Int64Array for columns; return a table"),
    ],
)
def test_a_vectorised_one_that_gives_something_else_is_reported(t_env, given, problem):
    t_env.create_temporary_function("f", udtf(given, result_types="ROW<x BIGINT>", func_type="arrow"))
    with pytest.raises(JobFailed, match=problem):
        rows(t_env, "SELECT n, x FROM t, LATERAL TABLE(f(n))")


def test_one_is_opened_with_its_context_and_closed(t_env, tmp_path):
    class Repeats(TableFunction):
        def open(self, function_context):
            function_context.get_metric_group().counter("calls")
            self.times = int(function_context.get_job_parameter("times", "1"))
            self.subtask = function_context.get_index_of_this_subtask()

        def close(self):
            (tmp_path / "closed").touch()

        def eval(self, n):
            yield from [self.subtask] * self.times

    t_env.get_config().set_string("pipeline.global-job-parameters", "times:2").set_string("parallelism.default", "1")
    t_env.create_temporary_system_function("f", udtf(Repeats(), result_types=["INT"]))
    assert rows(t_env, "SELECT n, x FROM t, LATERAL TABLE(f(n)) AS r(x) WHERE n > 3") == [(4, 0), (4, 0)]
    assert (tmp_path / "closed").exists()


def test_what_it_raises_names_the_function_and_the_row(t_env):
    t_env.create_temporary_function("f", udtf(lambda w, n: [len(w) + n], result_types="INT"))
    with pytest.raises(JobFailed, match=r"function F failed for the arguments \(None, 3\): TypeError"):
        rows(t_env, "SELECT n, x FROM t, LATERAL TABLE(f(w, n)) AS r(x)")
    t_env.create_temporary_function("g", udtf(lambda n: [(1, 2, 3)], result_types=["INT", "INT"]))
    with pytest.raises(JobFailed, match=r"function G returned the row \(1, 2, 3\) of 3 values; its result has 2"):
        rows(t_env, "SELECT n FROM t, LATERAL TABLE(g(n)) AS r(x, y)")
    t_env.create_temporary_function("h", udtf(lambda n: ["x"], result_types="INT"))
    with pytest.raises(JobFailed, match="function H returned 'x' of type str; return INT"):
        rows(t_env, "SELECT n, x FROM t, LATERAL TABLE(h(n)) AS r(x)")


def test_what_is_no_table_function_is_refused(t_env):
    t_env.create_temporary_function("words", words)
    t_env.create_temporary_function("one", udf(lambda: 1, result_type="INT"))
    for query, problem in [
        ("SELECT words(w) FROM t", "WORDS is a table function, which is not allowed here; write it in FROM"),
        ("SELECT * FROM t, LATERAL TABLE(word(w))", r"there is no table function WORD \(did you mean WORDS\?\)"),
        ("SELECT * FROM t, LATERAL TABLE(one())", "there is no table function ONE"),
        ("SELECT * FROM t, LATERAL TABLE(words())", "WORDS does not take"),
        ("SELECT * FROM t, LATERAL TABLE(words(w)) AS r(a)", "1 names for 2 columns: f0, f1"),
        ("SELECT * FROM t LEFT JOIN LATERAL TABLE(words(w)) AS r(a, b) ON a = w", "takes no condition but ON TRUE"),
        (
            "SELECT * FROM t RIGHT JOIN LATERAL TABLE(words(w)) AS r(a, b) ON TRUE",
            "RIGHT JOIN is not possible with UNNEST",
        ),
    ]:
        with pytest.raises(SqlError, match=problem):
            t_env.execute_sql(query)
    with pytest.raises(InvalidTypesError, match="the result types of function f are not known"):

        @udtf
        def f(n):
            yield n


def test_one_that_is_not_deterministic_says_so(t_env):
    class Draws(TableFunction):
        def is_deterministic(self):
            return False

        def eval(self):
            return [1]

    assert not udtf(Draws(), result_types="INT").deterministic
    assert not udf(lambda: 1, result_type="INT", deterministic=False).registered("F").is_deterministic
    with pytest.raises(ValueError, match=r"deterministic=True, but its is_deterministic\(\) returns False"):
        udtf(Draws(), result_types="INT", deterministic=True)


def test_values_of_rows_and_maps_come_as_rows_and_dicts(t_env):
    def describe(row, entries, items):
        return f"{row.a} {row['b']} {entries} {items[0][0]}"

    t_env.create_temporary_function("shown", udf(describe, result_type="STRING"))
    query = "SELECT shown(CAST(ROW(n, w) AS ROW<a BIGINT, b STRING>), MAP['k', n], ARRAY[ROW(n)]) FROM t WHERE n = 1"
    assert rows(t_env, query) == [("1 a b {'k': 1} 1",)]
    t_env.create_temporary_function(
        "made", udf(lambda n: [(n, {"x": Row(n)})], result_type="ARRAY<ROW<a INT, m MAP<STRING, ROW<b INT>>>>")
    )
    assert rows(t_env, "SELECT a, m['x'].b FROM t, UNNEST(made(n)) WHERE n = 1") == [(1, 1)]
