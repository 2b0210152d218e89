"""table.exec.*: what tables demand of rows that are written, sources that are idle, and how parallel queries are."""

from __future__ import annotations

import warnings

import pyarrow
import pytest

from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError, JobFailed
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import ArrowBatch
from rayflink.operators.base import OperatorContext
from rayflink.table import EnvironmentSettings, SqlError, StreamTableEnvironment, TableEnvironment
from rayflink.table.runtime.constraints import DROPPED, ConstraintOperator, Length
from rayflink.testing import verify
from rayflink.testing.elements import columns
from tests.table.queries.golden_queries import FOLDER, GoldenQuery


@pytest.fixture
def t_env() -> TableEnvironment:
    found = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    found.get_config().set_string("execution.target", "local").set_string("parallelism.default", "1")
    found.execute_sql("CREATE TABLE shown (a VARCHAR(3), b INT NOT NULL, c CHAR(3)) WITH ('connector' = 'print')")
    return found


MIXED = "SELECT a, b, a FROM (VALUES ('abc', CAST(NULL AS INT)), ('xyz', 2)) AS t(a, b)"


def test_a_row_with_null_for_a_column_that_has_none_is_an_error(t_env):
    with pytest.raises(JobFailed, match=r"column 'b' of .*shown is NOT NULL, and a row has NULL there"):
        t_env.execute_sql(f"INSERT INTO shown {MIXED}").wait()


def test_or_it_is_left_out(t_env, capsys):
    t_env.execute_sql("SET 'table.exec.sink.not-null-enforcer' = 'DROP'")
    t_env.execute_sql(f"INSERT INTO shown {MIXED}").wait()
    assert capsys.readouterr().out.splitlines() == ["+I[xyz, 2, xyz]"]


def given_by(operator: ConstraintOperator, data: pyarrow.RecordBatch) -> list[dict[str, list[object]]]:
    operator.setup(OperatorContext("0" * 32, "constraints", metrics=MetricGroup()))
    return [one.data.to_pydict() for one in operator.process(ArrowBatch(data), 0)]


def test_rows_that_are_left_out_are_counted():
    operator = ConstraintOperator("t", ["a", "b"], [0, 1], True, [])
    data = pyarrow.record_batch({"a": [1, None, 3, None], "b": [1, 2, None, 4]})
    assert given_by(operator, data) == [{"a": [1], "b": [1]}]
    assert operator.ctx.metrics.counter(DROPPED).get_count() == 3


def test_strings_and_bytes_are_cut_and_filled_up():
    lengths = [Length(0, 3, False, True), Length(1, 3, True, True), Length(2, 2, True, True)]
    operator = ConstraintOperator("t", ["v", "c", "b"], [], False, lengths)
    data = pyarrow.record_batch({"v": ["aüßc", "a", None], "c": ["abcd", "ä", None], "b": [b"abc", b"", None]})
    assert given_by(operator, data) == [
        {"v": ["aüß", "a", None], "c": ["abc", "ä  ", None], "b": [b"ab", b"\0\0", None]}
    ]


@pytest.mark.parametrize(("length", "value"), [(Length(0, 3, False, False), "abcd"), (Length(0, 3, True, False), "ab")])
def test_or_another_length_is_an_error(length, value):
    operator = ConstraintOperator("t", ["v"], [], False, [length])
    with pytest.raises(Exception, match="the query") as raised:
        given_by(operator, pyarrow.record_batch({"v": ["abc", value]}))
    assert f"'{value}' is of length {len(value)}, and column 'v' of t takes 3" in str(raised.value.__cause__)


def test_constraints_hold_under_every_hardship():
    data = pyarrow.record_batch({"a": [1, None, 3], "v": ["abcd", "x", "yz"]})
    lengths = [Length(1, 2, True, True)]
    verify(lambda: ConstraintOperator("t", ["a", "v"], [0], True, lengths), [columns(ArrowBatch(data))])


def test_a_column_that_cannot_be_null_is_not_looked_at(t_env):
    assert "ConstraintEnforcer" not in t_env.explain_sql("INSERT INTO shown VALUES ('a', 1, 'b')", *json_plan())
    assert "ConstraintEnforcer" in t_env.explain_sql(f"INSERT INTO shown {MIXED}", *json_plan())


def test_queries_have_a_parallelism_of_their_own(t_env, tmp_path):
    t_env.execute_sql("SET 'table.exec.resource.default-parallelism' = '3'")
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv'"
    t_env.execute_sql(f"CREATE TABLE files (a STRING) WITH ({options})")
    plan = t_env.explain_sql("INSERT INTO files SELECT a FROM (VALUES ('x')) AS t(a)", *json_plan())
    assert '"parallelism" : 3' in plan or '"parallelism": 3' in plan, plan
    assert t_env.get_config().get_string("parallelism.default", "") == "1"


def json_plan():
    from rayflink.table.explain_detail import ExplainDetail

    return (ExplainDetail.JSON_EXECUTION_PLAN,)


def test_a_source_that_is_idle_does_not_hold_time_back():
    query = GoldenQuery(FOLDER / "tumble")
    t_env = query.environment(**{"table.exec.source.idle-timeout": "7 s"})
    stream = t_env._queries.add_stream(t_env.sql_query(query.text)._plan)
    found = stream._transformation
    while found.inputs:
        found = found.inputs[0]
    assert found.operator_factory._strategy.idle_timeout_ms == 7_000


def test_mini_batches_have_a_size_and_a_latency(t_env):
    t_env.execute_sql("SET 'table.exec.mini-batch.enabled' = 'true'")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        t_env.explain_sql("SELECT 1")
    for name in ("allow-latency", "size"):
        with pytest.raises(ConfigError, match=f"mini-batch.{name}.*wanted more than 0; set it, or reset"):
            t_env.explain_sql("SELECT n, COUNT(*) FROM (VALUES (1)) AS t(n) GROUP BY n")
        t_env.execute_sql(f"SET 'table.exec.mini-batch.{name}' = '100{' ms' * (name != 'size')}'")
    t_env.explain_sql("SELECT n, COUNT(*) FROM (VALUES (1)) AS t(n) GROUP BY n")


def test_hints_of_options_are_refused_where_the_program_says_so(t_env):
    t_env.execute_sql("CREATE TABLE many (n INT) WITH ('connector' = 'datagen', 'number-of-rows' = '1')")
    hinted = "SELECT COUNT(*) FROM many /*+ OPTIONS('number-of-rows' = '0') */"
    t_env.explain_sql(hinted)
    t_env.get_config().set("table.dynamic-table-options.enabled", "false")
    with pytest.raises(SqlError, match="OPTIONS of 'many' are not allowed; set 'table.dynamic-table-options.enabled'"):
        t_env.explain_sql(hinted)


def test_a_misspelt_option_is_reported(t_env):
    t_env.execute_sql("SET 'table.exec.mini-batc.size' = '100'")
    with pytest.warns(UserWarning, match="mini-batc.size.* is no option"):
        list(t_env.execute_sql("SELECT 1").collect())


@pytest.mark.parametrize("create", [TableEnvironment.create, lambda given: StreamTableEnvironment.create(None, given)])
def test_options_from_outside_reach_tables(create, monkeypatch):
    monkeypatch.setenv("RAYFLINK_OPTIONS", "execution.target=local table.local-time-zone=Asia/Tokyo")
    t_env = create(EnvironmentSettings.in_streaming_mode())
    assert t_env.get_config().get("execution.target", "") == "local"
    assert t_env.get_config().get_local_timezone() == "Asia/Tokyo"
    given = Configuration.from_dict({"table.local-time-zone": "UTC"})
    settings = EnvironmentSettings.new_instance().with_configuration(given).build()
    assert create(settings).get_config().get_local_timezone() == "UTC"


def test_a_time_zone_that_is_none_is_reported_before_the_query_runs():
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("table.local-time-zone", "Europe/Berlim")
    with pytest.raises(SqlError, match=r"'Europe/Berlim', which is no time zone \(did you mean Europe/Berlin\?\)"):
        t_env.execute_sql("SELECT CURRENT_TIMESTAMP")
