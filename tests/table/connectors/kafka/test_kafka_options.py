"""The options and columns of `kafka` and `upsert-kafka`: what is accepted, and errors at the statement."""

from __future__ import annotations

import pytest

from rayflink.table import EnvironmentSettings, ExplainDetail, Schema, SqlError, TableDescriptor, TableEnvironment
from rayflink.table.types import DataTypes

BASE = {"connector": "kafka", "topic": "bids", "properties.bootstrap.servers": "localhost:1", "format": "json"}
UPSERT = {
    "connector": "upsert-kafka", "topic": "bids", "properties.bootstrap.servers": "localhost:1",
    "key.format": "json", "value.format": "json",
}  # fmt: skip
COLUMNS = "id INT, name STRING"
KEYED = "id INT, name STRING, PRIMARY KEY (id) NOT ENFORCED"


def environment() -> TableEnvironment:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set_string("execution.target", "local").set_string("table.local-time-zone", "UTC")
    return t_env


def create(t_env: TableEnvironment, base: dict[str, str], columns: str = COLUMNS, **changed: str | None) -> None:
    options = {**base, **{key.replace("__", ".").replace("_", "-"): value for key, value in changed.items()}}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in options.items() if value is not None)
    t_env.execute_sql(f"CREATE TABLE t ({columns}) WITH ({listed})")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"topic": None}, "has no option 'topic'"),
        ({"topic_pattern": "b.*"}, "both 'topic' and 'topic-pattern'"),
        ({"topic_pattern": "(", "topic": None}, "expected a regular expression"),
        ({"format": None}, "has no option 'format'"),
        ({"format": "jsn"}, "the format 'jsn', which does not exist \\(did you mean json"),
        ({"value__format": "json"}, "both 'format' and 'value.format'"),
        ({"properties__bootstrap__servers": None}, "no option 'properties.bootstrap.servers'"),
        ({"properties__fetch__max__bites": "1"}, "fetch.max.bites is unknown .*did you mean .*fetch.max.bytes"),
        ({"properties__value__deserializer": "x"}, "value.deserializer is a property of Kafka's Java client"),
        ({"scan__startup__moed": "x"}, "did you mean scan.startup.mode"),
        ({"scan__startup__mode": "first"}, "expected earliest-offset or latest-offset"),
        ({"scan__startup__mode": "timestamp"}, "no option 'scan.startup.timestamp-millis'"),
        ({"scan__startup__timestamp_millis": "5"}, "'scan.startup.mode' is 'group-offsets'"),
        ({"scan__startup__mode": "timestamp", "scan__startup__timestamp_millis": "x"}, "a whole number of at least 0"),
        ({"scan__startup__mode": "specific-offsets"}, "no option 'scan.startup.specific-offsets'"),
        (
            {"scan__startup__mode": "specific-offsets", "scan__startup__specific_offsets": "0:42"},
            "partition:0,offset:42",
        ),
        (
            {
                "topic": "a;b",
                "scan__startup__mode": "specific-offsets",
                "scan__startup__specific_offsets": "partition:0,offset:1",
            },
            "and several topics",
        ),
        ({"scan__bounded__mode": "timestamp"}, "no option 'scan.bounded.timestamp-millis'"),
        ({"scan__bounded__specific_offsets": "partition:0,offset:1"}, "'scan.bounded.mode' is 'unbounded'"),
        ({"sink__delivery_guarantee": "exactly-once"}, "no 'sink.transactional-id-prefix'"),
        ({"sink__transactional_id_prefix": "x"}, "'sink.delivery-guarantee' is 'at-least-once'"),
        ({"sink__partitioner": "a b"}, "or the path of a function"),
        ({"malformed_records": "drop"}, "expected fail or skip or dead-letter"),
        ({"malformed_records": "dead-letter"}, "no option 'dead-letter.topic'"),
        ({"dead_letter__topic": "d"}, "'malformed-records' is 'fail'"),
        ({"json__ignore_parse_error": "true"}, "did you mean ignore-parse-errors"),
        ({"json__ignore_parse_errors": "maybe"}, "expected true or false"),
        ({"value__json__ignore_parse_errors": "true"}, "an option 'value.json.ignore-parse-errors'"),
        ({"key__fields": "id"}, "'key.fields' and no option 'key.format'"),
        ({"key__format": "json"}, "'key.format' and no option 'key.fields'"),
        ({"key__format": "json", "key__fields": "idd"}, "'idd', which is no physical column \\(did you mean id"),
        ({"key__format": "json", "key__fields": "id;id"}, "names 'id' twice"),
        ({"key__format": "json", "key__fields": "id", "key__fields_prefix": "k_"}, "does not begin with 'k_'"),
        ({"key__format": "json", "key__fields": "id", "sink__partitioner": "round-robin"}, "those of a key stay"),
        (
            {"key__format": "json", "key__fields": "id;name", "value__fields_include": "EXCEPT_KEY"},
            "none is left for the value",
        ),
        ({"value__fields_include": "SOME"}, "expected ALL or EXCEPT_KEY"),
        ({"format": "raw"}, "represents one column, and there are 2"),
        ({"scan__watermark__alignment__group": "g"}, "watermark alignment needs"),
        ({"scan__watermark__idle_timeout": "0 s"}, "write a duration above 0"),
        ({"scan__parallelism": "0"}, "a whole number of at least 1"),
        ({"sink__buffer_flush__max_rows": "1"}, "an option 'sink.buffer-flush.max-rows'"),
    ],
)
def test_wrong_options_of_kafka_are_errors_of_create_table(changed: dict[str, str | None], said: str) -> None:
    with pytest.raises(SqlError, match=said):
        create(environment(), BASE, **changed)


@pytest.mark.parametrize(
    ("columns", "changed", "said"),
    [
        (COLUMNS, {}, "has no PRIMARY KEY"),
        (KEYED, {"key__format": None}, "no option 'key.format'"),
        (KEYED, {"value__format": None}, "no option 'value.format'"),
        (KEYED, {"scan__startup__mode": "earliest-offset"}, "'upsert-kafka' does not know"),
        (KEYED, {"sink__buffer_flush__max_rows": "5"}, "set 'sink.buffer-flush.interval' above 0"),
        (KEYED, {"sink__buffer_flush__interval": "1 s"}, "set 'sink.buffer-flush.max-rows' above 0"),
        ("id INT, PRIMARY KEY (id) NOT ENFORCED", {"value__fields_include": "EXCEPT_KEY"}, "none is left"),
    ],
)
def test_wrong_options_of_upsert_kafka_are_errors(columns: str, changed: dict[str, str | None], said: str) -> None:
    with pytest.raises(SqlError, match=said):
        create(environment(), UPSERT, columns, **changed)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (KEYED, "has a PRIMARY KEY, and the messages of its format 'json' are rows"),
        (f"{COLUMNS}, o INT METADATA FROM 'offset'", "'offset' as column 'o' of type INT; declare .* BIGINT NOT NULL"),
        (f"{COLUMNS}, o BIGINT METADATA FROM 'offst'", "METADATA column"),
        (f"{COLUMNS}, h MAP<STRING, INT> METADATA FROM 'headers'", "MAP<STRING, BYTES>"),
    ],
)
def test_wrong_columns_of_kafka_are_errors_of_create_table(columns: str, said: str) -> None:
    with pytest.raises(SqlError, match=said):
        create(environment(), BASE, columns)


@pytest.mark.parametrize(
    ("columns", "changed", "said"),
    [
        (f"{COLUMNS}, o BIGINT METADATA FROM 'offset'", {}, "'offset'\\), which cannot be written"),
        (COLUMNS, {"topic": None, "topic_pattern": "b.*"}, "no topic to write to"),
        (COLUMNS, {"topic": "a;b"}, "no column says which one"),
    ],
)
def test_tables_that_only_can_be_read_refuse_insert(columns: str, changed: dict[str, str | None], said: str) -> None:
    t_env = environment()
    create(t_env, BASE, columns, **changed)
    values = "1, 'a'" + (", CAST(2 AS BIGINT)" if "METADATA" in columns else "")
    with pytest.raises(SqlError, match=said):
        t_env.explain_sql(f"INSERT INTO t VALUES ({values})")


def test_secrets_are_masked_in_show_create_table_and_in_plans() -> None:
    t_env = environment()
    create(t_env, BASE, properties__sasl__password="hunter2", properties__sasl__username="me")
    [row] = t_env.execute_sql("SHOW CREATE TABLE t").collect()
    assert "'properties.sasl.password' = '******'" in row[0] and "'properties.sasl.username' = 'me'" in row[0]
    plan = t_env.explain_sql("SELECT * FROM t")
    assert "hunter2" not in row[0] + plan + repr(t_env.from_path("t"))


def test_plans_show_projection_start_and_end() -> None:
    t_env = environment()
    create(t_env, BASE, f"{COLUMNS}, o BIGINT METADATA FROM 'offset' VIRTUAL", scan__bounded__mode="latest-offset")
    assert (
        t_env.explain_sql("SELECT o FROM t WHERE id > 1")
        .partition("== Optimized Physical Plan ==\n")[2]
        .startswith(
            "Calc(select=[o], where=[id > 1])\n+- TableSourceScan(table=[[default_catalog, default_database, t, "
            "project=[id, o], start=[group-offsets], end=[latest-offset]]], fields=[id, o])"
        )
    )


def test_plans_show_the_fields_of_rows_that_are_read() -> None:
    t_env = environment()
    create(t_env, BASE, "id INT, bid ROW<price BIGINT, url STRING>")
    assert "project=[bid.price], start" in t_env.explain_sql("SELECT bid.price FROM t")


def test_a_window_over_upserts_is_refused() -> None:
    t_env = environment()
    create(t_env, UPSERT, "id INT, name STRING, ts TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR ts AS ts")
    with pytest.raises(SqlError, match="doesn't support consuming update and delete changes"):
        t_env.explain_sql(
            "SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, "
            "window_end"
        )


@pytest.mark.parametrize(
    ("query", "is_normalized"),
    [
        ("SELECT name FROM t", True),
        ("INSERT INTO same SELECT id, UPPER(name) FROM t", False),
        ("INSERT INTO same SELECT id, name FROM t WHERE name = 'a'", True),
        ("INSERT INTO by_name SELECT * FROM t", True),
        ("INSERT INTO by_name SELECT id, name FROM t UNION ALL SELECT id, name FROM t", True),
        ("INSERT INTO printed SELECT * FROM t", True),
    ],
)
def test_upserts_are_normalized_where_more_than_their_key_is_needed(query: str, is_normalized: bool) -> None:
    t_env = environment()
    create(t_env, UPSERT, KEYED)
    t_env.execute_sql("CREATE TABLE same WITH ('topic' = 's') LIKE t (OVERWRITING OPTIONS)")
    t_env.execute_sql("CREATE TABLE by_name (PRIMARY KEY (name) NOT ENFORCED) WITH ('topic' = 'u') LIKE t (EXCLUDING "
                      "CONSTRAINTS OVERWRITING OPTIONS)")  # fmt: skip
    t_env.execute_sql("CREATE TABLE printed (id INT, name STRING) WITH ('connector' = 'print')")
    assert ("ChangelogNormalize(key=[id])" in t_env.explain_sql(query)) == is_normalized


def test_descriptors_make_tables_of_kafka() -> None:
    t_env = environment()
    schema = Schema.new_builder().column("id", DataTypes.INT()).column_by_metadata("o", "BIGINT", "offset", True)
    descriptor = TableDescriptor.for_connector("kafka").schema(schema.build()).option("topic", "a").format("json")
    with pytest.raises(SqlError, match="has no option 'properties.bootstrap.servers'"):
        t_env.create_temporary_table("t", descriptor.build())
    t_env.create_temporary_table("t", descriptor.option("properties.bootstrap.servers", "localhost:1").build())
    assert t_env.from_path("t").get_schema().get_field_names() == ["id", "o"]


def test_changes_of_a_row_stay_in_order_at_a_parallelism_of_the_sink() -> None:
    t_env = environment()
    changes = {**BASE, "format": "debezium-json"}
    create(t_env, changes, KEYED, sink__parallelism="3")
    t_env.execute_sql("CREATE TABLE changes WITH ('topic' = 'c') LIKE t (OVERWRITING OPTIONS)")
    plan = t_env.explain_sql("INSERT INTO t SELECT * FROM changes", ExplainDetail.JSON_EXECUTION_PLAN)
    assert '"ship_strategy": "HASH"' in plan
    t_env.execute_sql("CREATE TABLE keyless WITH ('topic' = 'k') LIKE changes (EXCLUDING CONSTRAINTS "
                      "OVERWRITING OPTIONS)")  # fmt: skip
    with pytest.raises(SqlError, match="'sink.parallelism' and no PRIMARY KEY, and the rows of the query change"):
        t_env.explain_sql("INSERT INTO keyless SELECT * FROM changes", ExplainDetail.JSON_EXECUTION_PLAN)
    t_env.explain_sql("INSERT INTO keyless VALUES (1, 'a')", ExplainDetail.JSON_EXECUTION_PLAN)
