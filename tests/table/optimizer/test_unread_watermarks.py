"""Watermarks are left out of a streaming query unless a step, a table that is written, or an option wants them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rayflink.common import Configuration
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.functions import ProcessFunction
from rayflink.table import EnvironmentSettings, StreamTableEnvironment, TableEnvironment
from rayflink.table.connectors.print_and_blackhole import Blackhole

EVENTS = """CREATE TABLE {name} (id BIGINT, price INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
    WITH ('connector' = '{connector}'{options})"""
KAFKA = ", 'topic' = 't', 'properties.bootstrap.servers' = 'nowhere:1', 'format' = 'json'"
ALIGNED = ", 'scan.watermark.alignment.group' = 'g', 'scan.watermark.alignment.max-drift' = '1 s'"
PARTITIONED = """CREATE TABLE days (id BIGINT, price INT, `day` STRING) PARTITIONED BY (`day`)
    WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '/nowhere/days',
    'sink.partition-commit.trigger' = '{by}', 'sink.partition-commit.policy.kind' = 'success-file')"""
WINDOWS = """SELECT window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY window_start, window_end"""


@pytest.fixture
def rows(tmp_path) -> Path:
    path = tmp_path / "events.json"
    path.write_text("".join(f'{{"id": {n}, "price": {n}, "ts": "1970-01-01 00:00:0{n}"}}\n' for n in (1, 2)))
    return path


def files(path: Path) -> str:
    return f", 'format' = 'json', 'path' = '{path}'"


@pytest.fixture
def t_env(rows) -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.execute_sql(EVENTS.format(name="events", connector="filesystem", options=files(rows)))
    environment.execute_sql("CREATE TABLE counts (window_end TIMESTAMP(3), n BIGINT) WITH ('connector' = 'blackhole')")
    environment.execute_sql("CREATE TABLE ids (id BIGINT) WITH ('connector' = 'blackhole')")
    return environment


def watermarks(explained: str) -> int:
    return explained.split("== Optimized Physical Plan ==")[1].split("==")[0].count("WatermarkAssigner")


@pytest.mark.parametrize(("by", "wanted"), [("partition-time", 1), ("process-time", 0)])
def test_partitions_that_are_complete_by_event_time_want_watermarks(t_env, by, wanted):
    t_env.execute_sql(PARTITIONED.format(by=by))
    insert = "INSERT INTO days SELECT id, price, DATE_FORMAT(ts, 'yyyy-MM-dd') FROM events"
    assert watermarks(t_env.explain_sql(insert)) == wanted


@pytest.mark.parametrize(("options", "wanted"), [("", 0), (ALIGNED, 1)])
def test_a_source_that_is_aligned_with_others_has_watermarks(t_env, options, wanted):
    t_env.execute_sql(EVENTS.format(name="messages", connector="kafka", options=KAFKA + options))
    assert watermarks(t_env.explain_sql("INSERT INTO ids SELECT id FROM messages")) == wanted


def test_a_sink_of_another_kind_wants_watermarks_unless_it_says_otherwise(t_env, monkeypatch):
    sink = type(Blackhole().sink(None))
    assert watermarks(t_env.explain_sql("INSERT INTO ids SELECT id FROM events")) == 0
    monkeypatch.delattr(sink, "reads_watermarks")
    assert watermarks(t_env.explain_sql("INSERT INTO ids SELECT id FROM events")) == 1


def test_an_option_leaves_them_in(t_env):
    t_env.get_config().set("rayflink.table.optimizer.drop-unread-watermarks", "false")
    assert watermarks(t_env.explain_sql("SELECT id FROM events")) == 1


def test_statements_share_a_table_with_watermarks_if_one_wants_them(t_env):
    plain, windows = "INSERT INTO ids SELECT id FROM events", f"INSERT INTO counts {WINDOWS}"
    for statements, wanted in (((plain, windows), 2), ((plain, plain), 0)):
        together = t_env.create_statement_set()
        for statement in statements:
            together.add_insert_sql(statement)
        assert watermarks(together.explain()) == wanted
    t_env.get_config().set("table.optimizer.reuse-source-enabled", "false")
    together = t_env.create_statement_set()
    together.add_insert_sql(plain)
    together.add_insert_sql(windows)
    assert watermarks(together.explain()) == 1, "each reads the table by itself"


@pytest.mark.parametrize("clause", ["DO NOTHING", "DO ERROR", "DO DEDUPLICATE"])
def test_changes_that_wait_for_what_conflicts_want_watermarks(t_env, clause):
    t_env.execute_sql("""CREATE TABLE keyed (id BIGINT, price INT, PRIMARY KEY (id) NOT ENFORCED)
        WITH ('connector' = 'upsert-kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'nowhere:1',
        'key.format' = 'json', 'value.format' = 'json')""")
    explained = t_env.explain_sql(f"INSERT INTO keyed SELECT id, price FROM events ON CONFLICT {clause}")
    assert watermarks(explained) == int(clause != "DO DEDUPLICATE")


def test_a_stream_of_rows_has_the_event_time_of_its_table(rows):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration().set_string("execution.target", "local"))
    environment = StreamTableEnvironment.create(env)
    environment.execute_sql(EVENTS.format(name="events", connector="filesystem", options=files(rows)))
    stream = environment.to_data_stream(environment.sql_query("SELECT id, ts FROM events"))
    assert list(stream.process(Timestamps()).execute_and_collect()) == [1000, 2000]


class Timestamps(ProcessFunction):
    def process_element(self, value, ctx):
        yield ctx.timestamp()
