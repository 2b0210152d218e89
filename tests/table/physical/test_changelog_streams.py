"""Streams of changes as tables, and tables whose rows change as streams."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow
import pytest

from rayflink.actors.messages.states import JobStatus
from rayflink.common import Row, RowKind
from rayflink.common.errors import InvalidTypesError, JobExecutionError
from rayflink.common.records.batches import ArrowBatch
from rayflink.common.records.row_kinds import with_kinds
from rayflink.common.typeinfo import Types
from rayflink.connectors.collection import CollectSink
from rayflink.connectors.formats.column_blocks import as_schema
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.graph.job_graph import JobGraph
from rayflink.table import (
    ChangelogMode,
    DataTypes,
    EnvironmentSettings,
    ExplainDetail,
    Schema,
    SqlError,
    StreamTableEnvironment,
)
from rayflink.table.expressions import col, descriptor, map_
from rayflink.table.plan.changelog_fold import materialized
from rayflink.testing import (
    UNRELIABLE_NETWORK,
    KillTask,
    Pause,
    ScriptedSource,
    SimulatedDisk,
    StopWithSavepoint,
    rec,
    simulate,
    wm,
)

NEW, OLD, NOW, GONE = RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE
COUNTS = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])
CHANGES = [(NEW, "a", 1), (OLD, "a", 1), (NOW, "a", 12), (NEW, "b", 3), (GONE, "a", 12), (OLD, "b", 3), (NOW, "b", 4)]
UPSERTS = [(NEW, "a", 1), (NOW, "a", 12), (GONE, "a", None), (NOW, "b", 3)]
KEYED = Schema.new_builder().primary_key("word").build()


@pytest.fixture
def t_env() -> StreamTableEnvironment:
    env = StreamExecutionEnvironment({"execution.target": "local", "table.local-time-zone": "UTC"})
    env.set_parallelism(3)
    return StreamTableEnvironment.create(env)


def rows(changes):
    return [Row.of_kind(*change) for change in changes]


def stream(t_env, changes=CHANGES):
    return t_env._queries.env.from_collection(rows(changes), COUNTS)


def changes_of(records):
    return [(row.get_row_kind(), *row) for row in records]


def test_rows_of_a_stream_change_a_table_and_back_in_their_order(t_env):
    table = t_env.from_changelog_stream(stream(t_env))
    assert changes_of(t_env.to_changelog_stream(table).execute_and_collect()) == CHANGES
    assert changes_of(table.execute().collect()) == CHANGES
    assert table.to_arrow().to_pylist() == [{"word": "b", "n": 4}]


def test_groups_of_insertions_show_the_row_before_each_update(t_env):
    insertions = t_env._queries.env.from_collection([Row("a", 1), Row("a", 2)], COUNTS)
    found = t_env.from_data_stream(insertions).group_by(col("word")).select(col("word"), col("n").sum)
    assert changes_of(found.execute().collect()) == [(NEW, "a", 1), (OLD, "a", 1), (NOW, "a", 3)]


def test_changes_stay_in_order_where_a_union_has_inputs_of_several_widths(t_env):
    config = t_env.get_config().set("table.exec.mini-batch.enabled", "true")
    config.set("table.exec.mini-batch.allow-latency", "1 s").set("table.exec.mini-batch.size", "2")
    changes = [(kind, word, 1) for word in "abcdefgh" * 8 for kind in (NEW, GONE)]
    t_env.create_temporary_view("a", t_env.from_changelog_stream(stream(t_env, [*changes, (NEW, "z", 5)])))
    joined = "SELECT a.word, a.n FROM a JOIN (SELECT word, COUNT(*) FROM a GROUP BY word) AS b ON a.word = b.word"
    query = f"SELECT word, COUNT(*) AS n FROM (SELECT word, n FROM a UNION ALL {joined}) GROUP BY word"
    assert t_env.sql_query(query).to_arrow().to_pylist() == [{"word": "z", "n": 2}]


@pytest.mark.spec("A04", "dynamic")
def test_a_query_of_each_row_keeps_kinds_and_takes_back_what_no_longer_passes(t_env, capsys):
    table = t_env.from_changelog_stream(stream(t_env))
    found = table.where(col("n") < 10).select(col("word").upper_case.alias("w"), col("n") * 10)
    expected = [(NEW, "A", 10), (OLD, "A", 10), (NEW, "B", 30), (OLD, "B", 30), (NOW, "B", 40)]
    assert changes_of(t_env.to_changelog_stream(found).execute_and_collect()) == expected
    t_env.execute_sql("CREATE TABLE out (w STRING, n INT) WITH ('connector' = 'print')")
    found.execute_insert("out").wait()
    assert capsys.readouterr().out == "+I[A, 10]\n-U[A, 10]\n+I[B, 30]\n-U[B, 30]\n+U[B, 40]\n"


def test_elements_of_collections_change_with_their_row(t_env):
    kind = Types.ROW_NAMED(["id", "items"], [Types.INT(), Types.OBJECT_ARRAY(Types.STRING())])
    changes = [Row.of_kind(NEW, 1, ["x", "y"]), Row.of_kind(OLD, 1, ["x", "y"]), Row.of_kind(NOW, 1, ["z"])]
    t_env.create_temporary_view("t", t_env.from_changelog_stream(t_env._queries.env.from_collection(changes, kind)))
    found = t_env.sql_query("SELECT id, item FROM t CROSS JOIN UNNEST(items) AS u(item)")
    expected = [(NEW, 1, "x"), (NEW, 1, "y"), (OLD, 1, "x"), (OLD, 1, "y"), (NOW, 1, "z")]
    assert changes_of(found.execute().collect()) == expected


def test_upserts_need_no_row_of_before(t_env):
    table = t_env.from_changelog_stream(stream(t_env, UPSERTS), KEYED, ChangelogMode.upsert())
    found = t_env.to_changelog_stream(table, changelog_mode=ChangelogMode.upsert())
    assert changes_of(found.execute_and_collect()) == UPSERTS
    assert "changelogMode=[I,UA,D]" in table.explain(ExplainDetail.CHANGELOG_MODE)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM t", [(NEW, "a", 1), (NOW, "a", 12), (NEW, "b", 3), (GONE, "a", 12), (NOW, "b", 4)]),
        ("SELECT * FROM t WHERE n < 10", [(NEW, "a", 1), (GONE, "a", 1), (NEW, "b", 3), (GONE, "b", 3), (NOW, "b", 4)]),
    ],
)
def test_changes_become_upserts_that_forget_nothing(t_env, query, expected):
    t_env.get_config().set_string("table.exec.sink.upsert-materialize", "NONE")
    t_env.create_temporary_view("t", t_env.from_changelog_stream(stream(t_env)))
    found = t_env.to_changelog_stream(t_env.sql_query(query), KEYED, ChangelogMode.upsert())
    assert changes_of(found.execute_and_collect()) == expected


WHOLE = [(NEW, "a", 1), (OLD, "a", 1), (NOW, "a", 12), (GONE, "a", 12), (NEW, "b", 3)]


def upserts(t_env, changes=UPSERTS):
    return t_env.from_changelog_stream(stream(t_env, changes), KEYED, ChangelogMode.upsert())


def by_word(changes):
    """Changes in their order, word by word."""
    return sorted(changes, key=lambda change: change[1])


@pytest.mark.slow
def test_upserts_become_complete_changes_where_they_are_needed(t_env, capsys):
    table = upserts(t_env)
    assert by_word(changes_of(t_env.to_changelog_stream(table).execute_and_collect())) == WHOLE
    assert by_word(changes_of(table.execute().collect())) == WHOLE
    assert table.to_arrow().to_pylist() == [{"word": "b", "n": 3}]
    filtered = table.where(col("n") > 3)
    assert changes_of(filtered.execute().collect()) == [(NOW, "a", 12), (GONE, "a", 12)]
    assert "ChangelogNormalize(key=[word], changelogMode=[I,UB,UA,D])" in filtered.explain(ExplainDetail.CHANGELOG_MODE)
    assert changes_of(table.select(col("n").max).execute().collect())[-1][0] in (NEW, NOW)
    t_env.execute_sql("CREATE TABLE out (w STRING, n INT) WITH ('connector' = 'print')")
    table.where(col("n") < 5).execute_insert("out").wait()
    printed = [line.partition("> ")[2] for line in capsys.readouterr().out.splitlines()]
    assert sorted(printed) == ["+I[a, 1]", "+I[b, 3]", "-U[a, 1]"]


def test_repeated_upserts_and_deletions_of_nothing_change_nothing(t_env):
    repeated = [(GONE, "c", None), *(change for change in UPSERTS for _ in range(2)), (GONE, "a", None)]
    assert by_word(changes_of(upserts(t_env, repeated).execute().collect())) == WHOLE


@pytest.mark.slow
def test_upserts_without_their_key_are_complete_and_an_upsert_stream_needs_a_key(t_env):
    table, upsert = upserts(t_env), ChangelogMode.upsert()
    assert Counter(changes_of(table.select(col("n")).execute().collect())) == Counter((kind, n) for kind, _, n in WHOLE)
    assert len(changes_of(table.union_all(table).execute().collect())) == 2 * len(WHOLE)
    with pytest.raises(SqlError, match="replace others by word, which finds them no more behind"):
        t_env.to_changelog_stream(table.select(col("n")), changelog_mode=upsert)
    other = Schema.new_builder().column("word", "STRING").column("n", "BIGINT").primary_key("n").build()
    found = t_env.to_changelog_stream(table, other, upsert)
    assert Counter(changes_of(found.execute_and_collect())) == Counter(
        [(NEW, "a", 1), (GONE, "a", 1), (NEW, "a", 12), (GONE, "a", 12), (NEW, "b", 3)]
    )
    renamed = table.select(col("n"), col("word").alias("w"))
    kept = Schema.new_builder().column("n", "BIGINT").column("w", "STRING").primary_key("w").build()
    found = t_env.to_changelog_stream(renamed, kept, upsert)
    assert changes_of(found.execute_and_collect()) == [(kind, n, word) for kind, word, n in UPSERTS]
    assert changes_of(table.select(col("n")).to_changelog().execute().collect()) == [
        (NEW, kind.name, n) for kind, _, n in UPSERTS
    ]


def test_the_key_of_upserts_is_read_where_the_query_has_no_use_for_it(t_env):
    schema = Schema.new_builder().column("word", "STRING").column("n", "INT").primary_key("word")
    schema.column_by_expression("at", "TO_TIMESTAMP_LTZ(n, 3)").watermark("at", "at")
    table = t_env.from_changelog_stream(stream(t_env, UPSERTS[:2]), schema.build(), ChangelogMode.upsert())
    plan = table.select(col("at").max).explain()
    assert "ChangelogNormalize(key=[word])" in plan
    found = table.select(col("n"), col("at").cast(DataTypes.TIMESTAMP_LTZ(0)))
    assert [change[:2] for change in changes_of(found.execute().collect())] == [(NEW, 1), (OLD, 1), (NOW, 12)]


@pytest.mark.parametrize("is_duplicated", [False, True])
def test_changes_that_come_twice_count_once_where_an_option_says_so(t_env, is_duplicated):
    t_env.get_config().set_string("table.exec.source.cdc-events-duplicate", str(is_duplicated).lower())
    twice = [CHANGES[0], CHANGES[0], *CHANGES[1:3], *CHANGES[1:3], CHANGES[3], CHANGES[4], CHANGES[4]]
    t_env.create_temporary_view("t", t_env.from_changelog_stream(stream(t_env, twice), KEYED))
    found = changes_of(t_env.execute_sql("SELECT * FROM t").collect())
    assert by_word(found) == (by_word(CHANGES[:5]) if is_duplicated else by_word(twice))


def test_changes_that_come_twice_need_a_primary_key(t_env):
    t_env.get_config().set_string("table.exec.source.cdc-events-duplicate", "true")
    with pytest.raises(SqlError, match="has changes and no PRIMARY KEY; declare PRIMARY KEY"):
        t_env.from_changelog_stream(stream(t_env)).execute()


BY_N = Schema.new_builder().column("w", "STRING").column("n", "BIGINT NOT NULL").primary_key("n").build()
BY_BOTH = Schema.new_builder().column("w", "STRING").column("n", "BIGINT NOT NULL").primary_key("w", "n").build()
GROUPS = "SELECT CAST(word AS STRING) AS w, COUNT(*) AS n FROM t GROUP BY word HAVING COUNT(*) > 0"


def test_groups_that_would_replace_each_other_are_refused_without_their_rows(t_env):
    t_env.create_temporary_view("t", t_env.from_changelog_stream(stream(t_env)))
    t_env.get_config().set_string("table.exec.sink.upsert-materialize", "NONE")
    for key, wanted in ((BY_N, GROUPS), (BY_BOTH, GROUPS.replace("CAST(word AS STRING)", "'x'"))):
        with pytest.raises(SqlError, match="and lacks word, which GROUP BY has: .* have the columns of GROUP BY"):
            t_env.to_changelog_stream(t_env.sql_query(wanted), key, ChangelogMode.upsert())
    found = t_env.to_changelog_stream(t_env.sql_query(GROUPS), BY_BOTH, ChangelogMode.upsert())
    assert dict(tuple(row)[::-1] for row in found.execute_and_collect()) == {1: "b"}


@pytest.mark.slow
def test_a_table_shows_the_last_row_of_its_key_and_then_the_one_before_it(t_env):
    coming = [(NEW, word, n) for n, word in enumerate("ababc")]
    changes = [*coming, (GONE, "b", 1), (GONE, "c", 4)]
    t_env.create_temporary_view("t", t_env.from_changelog_stream(stream(t_env, changes)))
    table: dict[Any, Any] = {}
    for row in t_env.to_changelog_stream(t_env.sql_query(GROUPS), BY_N, ChangelogMode.upsert()).execute_and_collect():
        assert row.get_row_kind() is not OLD
        table[row.n] = None if row.get_row_kind() is GONE else row.w
    assert {key: word for key, word in table.items() if word} == {1: "b", 2: "a"}


@pytest.mark.spec("R20", "changelog")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "keyed", "everyone"),
    [("at", [("a", 2), ("b", 4)], ("a", 2)), ("at DESC", [("a", 7), ("b", 4)], ("a", 7)),
     ("now", [("a", 2), ("b", 4)], ("a", 2)), ("now DESC", [("a", 7), ("b", 4)], ("b", 4))],
)  # fmt: skip
def test_the_first_row_of_a_key_goes_when_it_is_taken_back(t_env, order, keyed, everyone):
    changes = [(NEW, "a", 5), (NEW, "b", 3), (NEW, "a", 2), (NEW, "a", 7), (NEW, "a", 9), (GONE, "a", 5)]
    changes += [(GONE, "a", 9), (OLD, "b", 3), (NOW, "b", 4)]
    schema = Schema.new_builder().column("word", "STRING").column("n", "INT").watermark("at", "at")
    schema.column_by_expression("at", "TO_TIMESTAMP_LTZ(n, 3)").column_by_expression("now", "PROCTIME()")
    t_env.create_temporary_view("t", t_env.from_changelog_stream(stream(t_env, changes), schema.build()))
    for partition, wanted in (("PARTITION BY word", keyed), ("", [everyone])):
        number = f"ROW_NUMBER() OVER ({partition} ORDER BY {order})"
        found = t_env.execute_sql(f"SELECT word, n FROM (SELECT *, {number} AS rn FROM t) WHERE rn = 1").collect()
        assert sorted(materialized(found)) == wanted


@pytest.mark.parametrize(("order", "wanted"), [
    ("now", [(2, 1, False), (7, 2, False)]), ("now DESC", [(1, 1, False), (7, 2, False)]),
])  # fmt: skip
def test_the_first_rows_as_they_come_are_numbered_anew_when_one_is_taken_back(t_env, order, wanted):
    changes = [(NEW, "a", 5), (NEW, "a", 2), (NEW, "a", 7), (NEW, "a", 1), (GONE, "a", 5)]
    t_env.create_temporary_view("t", t_env.from_changelog_stream(stream(t_env, changes)))
    number = f"ROW_NUMBER() OVER (PARTITION BY word ORDER BY {order})"
    query = f"SELECT *, {number} AS rn FROM (SELECT *, PROCTIME() AS now FROM t)"
    found = t_env.execute_sql(f"SELECT n, rn, now IS NULL FROM ({query}) WHERE rn <= 2").collect()
    assert sorted(materialized(found)) == wanted


@pytest.mark.parametrize("order", ["now DESC, word", "now, word", "n, now"])
def test_orders_by_the_clock_in_which_rows_are_not_found_again_are_refused(t_env, order):
    times = Schema.new_builder().column("word", "STRING").column("n", "INT")
    times.column_by_expression("now", "PROCTIME()").watermark("at", "at").column_by_expression("at", "NOW()")
    t_env.create_temporary_view("t", t_env.from_changelog_stream(stream(t_env), times.build()))
    number = f"ROW_NUMBER() OVER (PARTITION BY word ORDER BY {order})"
    with pytest.raises(SqlError, match="order of the processing time .* not found; order by the time alone, which"):
        t_env.explain_sql(f"SELECT n FROM (SELECT *, {number} AS rn FROM t) WHERE rn <= 2")


def test_the_time_of_rows_from_before_they_changed_is_an_order(t_env):
    t_env.create_temporary_view("c", t_env.from_changelog_stream(stream(t_env)))
    t_env.create_temporary_view("t", t_env.from_elements([("a", 1)], ["word", "n"]))
    number = "ROW_NUMBER() OVER (ORDER BY now DESC)"
    joined = "(SELECT t.*, PROCTIME() AS now FROM t) AS t LEFT JOIN c ON t.word = c.word"
    assert "orderBy=[now DESC]" in t_env.explain_sql(
        f"SELECT n FROM (SELECT t.n, t.now, {number} AS rn FROM {joined}) WHERE rn <= 2"
    )


@pytest.mark.parametrize(
    ("query", "strategy", "key", "is_stored"),
    [
        ("SELECT * FROM t", "AUTO", "word", True),
        ("SELECT * FROM t", "NONE", "word", False),
        ("SELECT word, COUNT(*) AS n FROM t GROUP BY word", "AUTO", "word", False),
        ("SELECT word, COUNT(*) AS n FROM t GROUP BY word", "FORCE", "word", True),
        ("SELECT word, COUNT(*) AS n FROM t GROUP BY word, n", "AUTO", "word", True),
        ("SELECT word, n FROM u", "AUTO", "word", False),
        ("SELECT word, n FROM keyed", "AUTO", "word", False),
        ("SELECT UPPER(word) AS word, n FROM keyed", "AUTO", "word", True),
    ],
)
def test_rows_are_stored_before_a_table_whose_key_is_another(t_env, query, strategy, key, is_stored):
    t_env.get_config().set_string("table.exec.sink.upsert-materialize", strategy)
    t_env.create_temporary_view("t", t_env.from_changelog_stream(stream(t_env)))
    t_env.create_temporary_view("keyed", t_env.from_changelog_stream(stream(t_env), KEYED))
    t_env.create_temporary_view("u", t_env.from_elements([("a", 1)], ["word", "n"]))
    options = "'connector' = 'upsert-kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'host:1'"
    formats = "'key.format' = 'json', 'value.format' = 'json'"
    columns = f"word STRING, n BIGINT, PRIMARY KEY ({key}) NOT ENFORCED"
    t_env.execute_sql(f"CREATE TABLE out ({columns}) WITH ({options}, {formats})")
    assert (f"UpsertMaterialize(key=[{key}])" in t_env.explain_sql(f"INSERT INTO out {query}")) == is_stored


def test_rows_that_cannot_be_compared_are_not_stored_by_another_key(t_env):
    kind = Types.ROW_NAMED(["id", "items"], [Types.INT(), Types.OBJECT_ARRAY(Types.STRING())])
    changes = [Row.of_kind(NEW, 1, ["x"]), Row.of_kind(GONE, 1, ["x"])]
    table = t_env.from_changelog_stream(t_env._queries.env.from_collection(changes, kind))
    by_id = Schema.new_builder().column("id", "INT").column("items", "ARRAY<STRING>").primary_key("id").build()
    with pytest.raises(SqlError, match="'items' is of type ARRAY<STRING>; let the query have the same key"):
        t_env.to_changelog_stream(table, by_id, ChangelogMode.upsert())
    t_env.create_temporary_view("t", table)
    number = "ROW_NUMBER() OVER (PARTITION BY id ORDER BY now DESC)"
    with pytest.raises(SqlError, match=r"ROW_NUMBER\(\) over .*'items' of type ARRAY<STRING> .*; select a part of it"):
        t_env.explain_sql(
            f"SELECT items FROM (SELECT *, {number} AS rn FROM (SELECT *, PROCTIME() AS now FROM t)) WHERE rn = 1"
        )


def test_values_that_cannot_be_compared_are_not_taken_back(t_env):
    kind = Types.ROW_NAMED(["id", "items"], [Types.INT(), Types.OBJECT_ARRAY(Types.STRING())])
    changes = [Row.of_kind(NEW, 1, ["x"]), Row.of_kind(GONE, 1, ["x"])]
    t_env.create_temporary_view("t", t_env.from_changelog_stream(t_env._queries.env.from_collection(changes, kind)))
    with pytest.raises(SqlError, match="LAST_VALUE of ARRAY<STRING> over rows that may be taken back"):
        t_env.execute_sql("SELECT LAST_VALUE(items) FROM t")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT word, COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(at), INTERVAL '1' SECOND)) "
        "GROUP BY word, window_start, window_end",
        "SELECT t.word FROM t JOIN u ON t.word = u.word AND t.at BETWEEN u.at - INTERVAL '1' SECOND AND u.at",
    ],
)
def test_what_takes_new_rows_alone_refuses_changes_before_it_starts(t_env, query):
    schema = Schema.new_builder().column_by_metadata("at", DataTypes.TIMESTAMP_LTZ(3), "rowtime")
    schema.watermark("at", "SOURCE_WATERMARK()")
    table = t_env.from_changelog_stream(stream(t_env), schema.build())
    t_env.create_temporary_view("t", table)
    t_env.create_temporary_view("u", table)
    with pytest.raises(SqlError, match="doesn't support consuming update and delete changes which is produced by"):
        t_env.execute_sql(query)


def test_a_stream_of_insertions_is_no_stream_of_changes(t_env, tmp_path):
    table = t_env.from_changelog_stream(stream(t_env))
    with pytest.raises(SqlError, match=r"use to_changelog_stream\(\)"):
        t_env.to_data_stream(table)
    with pytest.raises(SqlError, match=r"use to_changelog_stream\(\)"):
        t_env.to_append_stream(table, COUNTS)
    with pytest.raises(SqlError, match=r"doesn't support consuming update and delete .* as ChangelogMode\.all\(\)"):
        t_env.to_changelog_stream(table, None, ChangelogMode.insert_only())
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv'"
    t_env.execute_sql(f"CREATE TABLE files (w STRING, n INT) WITH ({options})")
    with pytest.raises(SqlError, match="files with 'format' = 'debezium-json'"):
        table.execute_insert("files")
    batch = StreamTableEnvironment.create(t_env._queries.env, EnvironmentSettings.in_batch_mode())
    with pytest.raises(SqlError, match="in batch mode rows only come"):
        batch.from_changelog_stream(stream(t_env)).execute()


def test_a_record_of_another_kind_than_said_fails_the_job(t_env):
    for table in (
        t_env.from_data_stream(stream(t_env)),
        t_env.from_changelog_stream(stream(t_env), KEYED, ChangelogMode.upsert()),
    ):
        with pytest.raises(JobExecutionError, match=r"a record is UPDATE_BEFORE.*use from_changelog_stream\(\)"):
            list(table.execute().collect())


def test_a_row_that_is_not_there_cannot_be_taken_back(t_env):
    table = t_env.from_changelog_stream(stream(t_env, [(GONE, "a", 1)]))
    with pytest.raises(SqlError, match=r"-D \('a', 1\), and there is no such row"):
        table.to_arrow()


def test_a_target_schema_casts_columns_and_makes_event_time_of_one(t_env):
    schema = Schema.new_builder().column_by_expression("at", "TO_TIMESTAMP_LTZ(n, 3)").build()
    table = t_env.from_changelog_stream(stream(t_env), schema)
    rowtime = Schema.new_builder().column_by_metadata("rowtime", "TIMESTAMP_LTZ(3)").build()
    for wanted, of in ((rowtime, Types.INT()), (
        Schema.new_builder().column("w", "STRING").column_by_expression("passed_over", "UPPER(w)").column("m", "BIGINT")
        .from_schema(rowtime).build(), Types.LONG()
    )):  # fmt: skip
        found = t_env.to_changelog_stream(table, wanted)
        assert found.get_type().get_field_types() == [Types.STRING(), of]
        stamped = found.process(lambda row, ctx: [(row[1], ctx.timestamp())])
        assert sorted(set(stamped.execute_and_collect())) == [(n, n) for n in (1, 3, 4, 12)]
    for schema, problem in (
        (Schema.new_builder().column("w", "STRING").build(), "gives 3 columns, and the target schema takes 1"),
        (Schema.new_builder().column_by_metadata("offset", "BIGINT").build(), "a record has its event time alone"),
    ):
        with pytest.raises(SqlError, match=problem):
            t_env.to_changelog_stream(table, schema)


def test_records_of_a_declared_type_say_whether_rows_come(t_env):
    table = t_env.from_changelog_stream(stream(t_env))
    record = Types.ROW_NAMED(["w", "m"], [Types.STRING(), Types.INT()])
    pairs = list(t_env.to_retract_stream(table, record).execute_and_collect())
    assert pairs[:3] == [(True, Row(w="a", m=1)), (False, Row(w="a", m=1)), (True, Row(w="a", m=12))]
    given = t_env.from_elements([(1, {"a": {"x": 2}})], DataTypes.ROW([
        DataTypes.FIELD("n", DataTypes.INT()),
        DataTypes.FIELD("m", DataTypes.MAP(DataTypes.STRING(), DataTypes.ROW([DataTypes.FIELD("x", DataTypes.INT())]))),
    ]))  # fmt: skip
    nested = Types.TUPLE([Types.INT(), Types.MAP(Types.STRING(), Types.ROW_NAMED(["x"], [Types.INT()]))])
    assert list(t_env.to_append_stream(given, nested).execute_and_collect()) == [(1, {"a": Row(x=2)})]
    with pytest.raises(InvalidTypesError, match="has 1 fields, and the table 2 columns"):
        t_env.to_append_stream(given, Types.TUPLE([Types.INT()]))


def test_columns_that_cannot_say_what_rows_do_refuse_them():
    changed = with_kinds(pyarrow.record_batch({"n": [1, 2]}), RowKind.DELETE)
    with pytest.raises(ValueError, match="rows take back or replace others, which columns .* do not say; say in a map"):
        as_schema(ArrowBatch(changed), pyarrow.schema([("n", pyarrow.int64())]))


# what rows do as a column


def test_changes_are_rows_with_strings_and_become_changes_again(t_env):
    table = t_env.from_changelog_stream(stream(t_env))
    strings = table.to_changelog()
    expected = [(kind.name, word, n) for kind, word, n in CHANGES]
    assert [tuple(row) for row in strings.execute().collect()] == expected
    again = t_env.from_data_stream(t_env.to_data_stream(strings)).where(col("n") > 1).from_changelog()
    assert changes_of(again.execute().collect()) == [change for change in CHANGES if change[2] > 1]
    assert "changelogMode=[I,UA,D]" in again.explain(ExplainDetail.CHANGELOG_MODE)


def test_strings_of_changes_may_be_others(t_env):
    table = t_env.from_changelog_stream(stream(t_env))
    codes = map_("INSERT, UPDATE_AFTER", "put", "DELETE", "drop").as_argument("op_mapping")
    found = table.to_changelog(descriptor("what").as_argument("op"), codes)
    assert found.get_schema().get_field_names() == ["what", "word", "n"]
    assert [tuple(row) for row in found.execute().collect()] == [
        ("put", "a", 1), ("put", "a", 12), ("put", "b", 3), ("drop", "a", 12), ("put", "b", 4)
    ]  # fmt: skip
    events = t_env.from_elements([("a", "c"), ("b", "r"), ("a", "d")], ["word", "op"])
    codes = map_("c, r", "INSERT", "d", "DELETE").as_argument("op_mapping")
    assert changes_of(events.from_changelog(codes).execute().collect()) == [(NEW, "a"), (NEW, "b"), (GONE, "a")]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([descriptor("n").as_argument("op")], "column 'n' is of type BIGINT; CAST it to STRING"),
        ([descriptor("o").as_argument("op")], "there is no column 'o' .did you mean op"),
        ([map_("u", "UPDATE_AFTER").as_argument("op_mapping")], "UPDATE_AFTER and no UPDATE_BEFORE; map a code"),
        ([map_("u", "UPDATE").as_argument("op_mapping")], "op_mapping has 'UPDATE'.*; the kinds of change are INSERT"),
        ([map_("u", "INSERT", "u ", "DELETE").as_argument("op_mapping")], "has 'u' twice"),
        ([map_("u", 1).as_argument("op_mapping")], "give a map of strings"),
        ([col("op")], "is not an argument of this function; give descriptor"),
    ],
)
def test_what_no_changes_can_be_made_of(t_env, arguments, problem):
    events = t_env.from_elements([("c", 1)], ["op", "n"])
    with pytest.raises(SqlError, match=problem):
        events.from_changelog(*arguments)


def test_a_text_that_stands_for_nothing_fails_the_job(t_env):
    for text in ("UPSERT", None):
        events = t_env.from_elements([("INSERT", 1), (text, 2)], ["op", "n"])
        with pytest.raises(JobExecutionError, match=f"a row has {text!r} in 'op', wanted is one of INSERT, UPDATE_B"):
            list(events.from_changelog().execute().collect())
    with pytest.raises(SqlError, match="the table has a column 'op' already"):
        events.to_changelog()


# under faults

STATELESS = "SELECT UPPER(word) AS word, n FROM t WHERE MOD(n, 3) <> 0"
OF_UPSERTS = "SELECT word, n FROM t WHERE MOD(n, 3) <> 0"
EARLY = "SELECT word, COUNT(*) AS n FROM t GROUP BY word, TUMBLE(at, INTERVAL '1' SECOND)"
OPTIONS = {
    "execution.target": "local", "execution.checkpointing.interval": "5 ms", "pipeline.max-parallelism": "12",
    "restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "20",
    "restart-strategy.fixed-delay.delay": "0 s", "table.exec.emit.early-fire.enabled": "true",
    "table.exec.emit.early-fire.delay": "0 s",
}  # fmt: skip


def script(word: str, query: str) -> list[Any]:
    """A word's count, replaced twenty times; or twenty records of it in two windows."""
    found: list[Any] = []
    for n in range(20):
        if query == EARLY:
            found += [rec(Row(word, n), n * 100), wm(n * 100), Pause(2)]
        elif query == OF_UPSERTS:
            found += [Row.of_kind(NOW, word, n), Pause(1), Row.of_kind(NOW, word, n), Pause(1)]
        else:
            found += [Row.of_kind(OLD, word, n - 1), Pause(1)] if n else []
            found += [Row.of_kind(NOW if n else NEW, word, n), Pause(1)]
    return found


def graph(query: str, width: int, path: str = "") -> JobGraph:
    """The changes that a query gives of two words, each read by a subtask."""
    env = StreamExecutionEnvironment({**OPTIONS, **({"execution.state-recovery.path": path} if path else {})})
    env.set_parallelism(width)
    t_env = StreamTableEnvironment.create(env)
    source = ScriptedSource(*(script(word, query) for word in "ab"))
    records = env.from_source(source, None, "changes", COUNTS).uid("changes")
    if query == EARLY:
        schema = Schema.new_builder().column_by_metadata("at", DataTypes.TIMESTAMP_LTZ(3), "rowtime")
        schema.watermark("at", "SOURCE_WATERMARK()")
        t_env.create_temporary_view("t", t_env.from_data_stream(records, schema.build()))
    else:
        described = (KEYED, ChangelogMode.upsert()) if query == OF_UPSERTS else ()
        t_env.create_temporary_view("t", t_env.from_changelog_stream(records, *described))
    t_env.to_changelog_stream(t_env.sql_query(query)).sink_to(CollectSink()).uid("out")
    return env.get_job_graph()


def left(story: Any) -> Counter[tuple[Any, ...]]:
    """What holds at the end; nothing is taken back that was not given."""
    assert story.status is JobStatus.FINISHED, story.describe(story.failure)
    found: Counter[tuple[Any, ...]] = Counter()
    for row in story.collected():
        found[tuple(row)] += -1 if row._is_retract_msg() else 1
    assert all(count >= 0 for count in found.values())
    return +found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (STATELESS, {("A", 19): 1, ("B", 19): 1}),
        (OF_UPSERTS, {("a", 19): 1, ("b", 19): 1}),
        (EARLY, {("a", 10): 2, ("b", 10): 2}),
    ],
)
def test_changes_are_each_once_under_kills_and_at_another_parallelism(query, expected):
    whole = simulate(graph(query, 2), 1)
    assert left(whole) == expected and len(whole.collected()) > 40
    moves = whole.happenings[-1].move
    for seed in range(3):
        faults = [KillTask("changes", move=int(moves * (0.2 + 0.2 * seed))), *UNRELIABLE_NETWORK]
        story = simulate(graph(query, 2), seed, faults)
        assert left(story) == expected, story.describe("other rows")
        assert Counter(map(repr, story.collected())) == Counter(map(repr, whole.collected()))
    for width in (1, 3):
        disk = SimulatedDisk()
        stopped = simulate(graph(query, 2), 1, [StopWithSavepoint(move=int(moves * 0.4))], disk)
        assert stopped.stopped_with
        assert left(simulate(graph(query, width, stopped.stopped_with), 1, (), disk)) == expected
