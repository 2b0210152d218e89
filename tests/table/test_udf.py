"""Functions of the user's own in queries."""

from __future__ import annotations

import importlib.util

import pyarrow
import pyarrow.compute
import pytest

from rayflink.common.errors import InvalidTypesError, JobFailed
from rayflink.table import DataTypes, EnvironmentSettings, SqlError, TableEnvironment
from rayflink.table.udf import ScalarFunction, udf


@pytest.fixture
def t_env() -> TableEnvironment:
    found = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    found.get_config().set_string("execution.target", "local")
    found.create_temporary_view("t", found.from_elements([(1, "a"), (2, None), (None, "c")], ["n", "w"]))
    return found


def values(t_env: TableEnvironment, query: str) -> list[object]:
    return [row[0] for row in t_env.execute_sql(query).collect()]


def test_a_function_of_values_gets_none_for_null(t_env):
    t_env.create_temporary_function("more", udf(lambda n: None if n is None else n + 1, result_type=DataTypes.BIGINT()))
    assert values(t_env, "SELECT MORE(n) FROM t") == [2, 3, None]
    assert values(t_env, "SELECT w FROM t WHERE more(n) = 3") == [None]


def test_its_type_is_that_of_its_annotation(t_env):
    def letters(word: str, times: int = 2) -> str | None:
        return None if word is None else word * times

    t_env.create_temporary_function("letters", letters)
    assert values(t_env, "SELECT letters(w) FROM t") == ["aa", None, "cc"]
    assert values(t_env, "SELECT letters(w, 3) FROM t") == ["aaa", None, "ccc"]
    with pytest.raises(SqlError, match="LETTERS does not take"):
        t_env.execute_sql("SELECT letters(w, 1, 2) FROM t")
    with pytest.raises(InvalidTypesError, match="the result type of function <lambda> is not known"):
        t_env.create_temporary_function("what", lambda n: n)


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        ("pandas", lambda n: n + 1),
        ("arrow", lambda n: pyarrow.compute.add(n, 1)),
        ("polars", lambda n: n + 1),
    ],
)
def test_a_vectorised_function_gets_columns(t_env, kind, function):
    t_env.create_temporary_function("more", udf(function, result_type=DataTypes.BIGINT(), func_type=kind))
    assert values(t_env, "SELECT more(n) FROM t") == [2, 3, None]


def test_a_scalar_function_is_opened_and_closed(t_env, tmp_path):
    class Adds(ScalarFunction):
        def open(self, function_context):
            self.by = int(function_context.get_job_parameter("my.by", "10"))

        def close(self):
            (tmp_path / "closed").touch()

        def eval(self, n):
            return None if n is None else n + self.by

    t_env.create_temporary_system_function("adds", udf(Adds(), result_type=DataTypes.BIGINT()))
    assert values(t_env, "SELECT adds(n) FROM t") == [11, 12, None]
    assert (tmp_path / "closed").exists()


def test_what_it_raises_or_gives_wrongly_is_reported(t_env):
    t_env.create_temporary_function("bad", udf(lambda n: 1 / 0, result_type=DataTypes.BIGINT()))
    with pytest.raises(JobFailed, match="ZeroDivisionError"):
        values(t_env, "SELECT bad(n) FROM t")
    t_env.create_temporary_function("text", udf(lambda n: "x", result_type=DataTypes.BIGINT()))
    with pytest.raises(JobFailed, match="function TEXT returned 'x' of type str; return BIGINT"):
        values(t_env, "SELECT text(n) FROM t")
    t_env.create_temporary_function("half", udf(lambda n: (n or 2) / 2, result_type=DataTypes.INT()))
    assert values(t_env, "SELECT half(n) FROM t WHERE n = 2 OR n IS NULL") == [1, 1]
    with pytest.raises(JobFailed, match="function HALF returned 0.5 of type float; return INT"):
        values(t_env, "SELECT half(n) FROM t")
    t_env.drop_temporary_function("half")
    assert t_env.drop_temporary_function("bad") and t_env.list_user_defined_functions() == ["text"]


def test_each_is_closed_although_another_fails(t_env, tmp_path):
    class Bad(ScalarFunction):
        def close(self):
            raise ValueError("cannot close")

        def eval(self, n):
            return n

    class Good(Bad):
        def close(self):
            (tmp_path / "closed").touch()

    for name, function in (("bad1", Bad()), ("good", Good()), ("bad2", Bad())):
        t_env.create_temporary_function(name, udf(function, result_type=DataTypes.BIGINT()))
    with pytest.raises(JobFailed, match="cannot close"):
        values(t_env, "SELECT bad1(n) + good(n) + bad2(n) FROM t")
    assert (tmp_path / "closed").exists()


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (5, "function WRONG returned 5 of type int, which is not a column; return a column of arrow"),
        (pyarrow.array(["x"]), "function WRONG returned values of type string: .*; return INT"),
    ],
)
def test_what_a_function_of_columns_gives_wrongly_is_reported(t_env, returned, message):
    t_env.create_temporary_function("wrong", udf(lambda n: returned, result_type=DataTypes.INT(), func_type="arrow"))
    with pytest.raises(JobFailed, match=message):
        list(t_env.execute_sql("SELECT wrong(n) FROM (VALUES (0)) AS t(n)").collect())


def test_a_function_of_columns_that_fails_is_named(t_env):
    def inverse(numbers):
        return pyarrow.compute.divide(1, numbers)

    t_env.create_temporary_function("inverse", udf(inverse, result_type=DataTypes.INT(), func_type="arrow"))
    with pytest.raises(JobFailed, match="function INVERSE failed for 1 rows: ArrowInvalid: divide by zero"):
        list(t_env.execute_sql("SELECT inverse(n) FROM (VALUES (0)) AS t(n)").collect())


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_the_package_of_a_kind_is_looked_for_where_the_function_is_declared(kind, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == kind else found(name))
    with pytest.raises(SqlError, match=f"requires {kind}, which is not installed; run `pip install {kind}` here"):
        udf(lambda column: column, result_type=DataTypes.INT(), func_type=kind)
    udf(lambda column: column, result_type=DataTypes.INT(), func_type="arrow")
