"""Made-up rows."""

from __future__ import annotations

import pytest

from rayflink.table import EnvironmentSettings, SqlError, TableEnvironment


@pytest.fixture
def t_env() -> TableEnvironment:
    found = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    found.get_config().set_string("execution.target", "local")
    found.get_config().set_string("parallelism.default", "2")
    return found


def test_rows_are_within_their_bounds_and_the_same_again(t_env):
    t_env.execute_sql("""CREATE TABLE g (s BIGINT, n INT, w STRING, d DECIMAL(6, 2), f DOUBLE, b BOOLEAN, t TINYINT,
      at TIMESTAMP(3), x VARCHAR(7)) WITH ('connector' = 'datagen', 'rows-per-second' = '1000000000',
      'fields.s.kind' = 'sequence', 'fields.s.start' = '5', 'fields.s.end' = '2004', 'fields.n.min' = '-3',
      'fields.n.max' = '3', 'fields.w.length' = '20', 'fields.d.min' = '1', 'fields.d.max' = '2.50',
      'fields.f.min' = '2', 'fields.f.max' = '4', 'fields.n.null-rate' = '0.5', 'fields.at.max-past' = '1 h')""")
    found = t_env.from_path("g").to_arrow().to_pydict()
    assert sorted(found["s"]) == list(range(5, 2005))
    whole = [n for n in found["n"] if n is not None]
    assert set(whole) == {-3, -2, -1, 0, 1, 2, 3} and 800 < len(whole) < 1200
    assert {len(w) for w in found["w"]} == {20} and len(set(found["w"])) == 2000
    assert {len(x) for x in found["x"]} == {7}
    assert 1 <= min(found["d"]) and max(found["d"]) <= 2.5 and min(found["d"]).as_tuple().exponent == -2
    assert 2 <= min(found["f"]) and max(found["f"]) <= 4
    assert set(found["b"]) == {True, False} and len(set(found["t"])) == 256
    assert (max(found["at"]) - min(found["at"])).total_seconds() > 3_000
    again = t_env.sql_query("SELECT s, n, w FROM g").to_arrow().to_pydict()
    assert sorted(zip(again["s"], again["w"], strict=True)) == sorted(zip(found["s"], found["w"], strict=True))


def test_a_number_of_rows_and_rows_without_end(t_env):
    t_env.execute_sql("CREATE TABLE g (n INT) WITH ('connector' = 'datagen', 'number-of-rows' = '7')")
    assert t_env.from_path("g").to_arrow().num_rows == 7
    t_env.execute_sql("CREATE TABLE endless (n INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000')")
    with pytest.raises(SqlError, match="which has no end"):
        t_env.from_path("endless").to_arrow()
    rows = t_env.execute_sql("SELECT n FROM endless").collect()
    assert next(rows) is not None
    rows.close()


@pytest.mark.parametrize(
    ("column", "options", "said"),
    [
        ("n ARRAY<INT>", "", "which 'datagen' does not make"),
        ("n INT", ", 'fields.m.min' = '1'", "no column 'm'"),
        ("n INT", ", 'fields.n.minimum' = '1'", "which 'datagen' does not know"),
        ("n INT", ", 'fields.n.min' = 'x'", "is not a number"),
        ("n INT", ", 'fields.n.min' = '3', 'fields.n.max' = '2'", "a min of 3 and a max of 2"),
        ("n INT", ", 'fields.n.kind' = 'sequence'", "has no start or end"),
        ("n INT", ", 'number-of-rows' = '-5'", "expected a whole number of at least 0"),
        ("n INT", ", 'number-of-rows' = 'many'", "expected a whole number of at least 0"),
        ("n INT", ", 'rows-per-second' = '0'", "expected a whole number of at least 1"),
        ("n INT", ", 'fields.n.max' = '99999999999'", r"write a whole number within \[-2147483648, 2147483647\]"),
        ("n INT", ", 'fields.n.min' = '1.5'", "write a whole number within"),
        ("n INT", ", 'fields.n.null-rate' = '7'", r"write a number within \[0, 1\]"),
        ("n STRING", ", 'fields.n.length' = '-1'", r"within \[0, 1000000\]"),
        ("n INT", ", 'fields.n.kind' = 'sequence', 'fields.n.start' = '9', 'fields.n.end' = '1'", "starts at 9 and"),
    ],
)
def test_what_cannot_be_made_is_reported(t_env, column, options, said):
    with pytest.raises(SqlError, match=said):
        t_env.execute_sql(f"CREATE TABLE g ({column}) WITH ('connector' = 'datagen'{options})")
        t_env.execute_sql("SELECT * FROM g")
