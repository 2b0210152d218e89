"""Statements that define, change and show what there is."""

from __future__ import annotations

import pyarrow
import pytest

from rayflink.common import Row
from rayflink.table import DataTypes, EnvironmentSettings, SqlError, TableEnvironment


@pytest.fixture
def t_env() -> TableEnvironment:
    found = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    found.get_config().set_string("execution.target", "local")
    found.get_config().set_string("table.local-time-zone", "UTC")
    return found


def names(t_env: TableEnvironment, statement: str) -> list[str]:
    return [row[0] for row in t_env.execute_sql(statement).collect()]


CREATE = """CREATE TABLE bids (
  auction BIGINT COMMENT 'which', price DECIMAL(8, 2), cents AS price * 100,
  at TIMESTAMP(3), WATERMARK FOR at AS at - INTERVAL '5' SECOND, PRIMARY KEY (auction) NOT ENFORCED
) COMMENT 'offers' PARTITIONED BY (auction) WITH ('connector' = 'filesystem', 'path' = '/tmp', 'format' = 'csv')"""


def test_a_table_is_shown_as_it_was_created(t_env):
    t_env.execute_sql(CREATE)
    assert names(t_env, "SHOW CREATE TABLE bids") == [
        """CREATE TABLE `default_catalog`.`default_database`.`bids` (
  `auction` BIGINT NOT NULL COMMENT 'which',
  `price` DECIMAL(8, 2),
  `cents` AS price * 100,
  `at` TIMESTAMP(3),
  WATERMARK FOR `at` AS at - INTERVAL '5' SECOND,
  PRIMARY KEY (`auction`) NOT ENFORCED
) COMMENT 'offers'
PARTITIONED BY (`auction`)
WITH (
  'connector' = 'filesystem',
  'path' = '/tmp',
  'format' = 'csv'
)"""
    ]
    [again] = names(t_env, "SHOW CREATE TABLE bids")
    t_env.execute_sql("DROP TABLE bids")
    t_env.execute_sql(again)
    assert names(t_env, "SHOW CREATE TABLE bids") == [again]


def test_a_table_is_described(t_env):
    t_env.execute_sql(CREATE)
    assert [tuple(row) for row in t_env.execute_sql("DESCRIBE bids").collect()] == [
        ("auction", "BIGINT", False, "PRI(auction)", None, None, "which"),
        ("price", "DECIMAL(8, 2)", True, None, None, None, None),
        ("cents", "DECIMAL(19, 2)", True, None, "AS price * 100", None, None),
        ("at", "TIMESTAMP(3) *ROWTIME*", True, None, None, "at - INTERVAL '5' SECOND", None),
    ]


def test_a_table_like_another_takes_what_is_included(t_env):
    t_env.execute_sql(CREATE)
    t_env.execute_sql("CREATE TABLE copy (note STRING) WITH ('path' = '/tmp/copy') LIKE bids (EXCLUDING WATERMARKS)")
    [shown] = names(t_env, "SHOW CREATE TABLE copy")
    assert "`note` STRING" in shown and "'path' = '/tmp/copy'" in shown and "'format' = 'csv'" in shown
    assert "WATERMARK" not in shown and "PRIMARY KEY" in shown


def test_a_table_like_another_may_make_watermarks_of_its_columns(t_env):
    t_env.execute_sql(CREATE)
    t_env.execute_sql("CREATE TABLE late (WATERMARK FOR `at` AS `at`) LIKE bids (OVERWRITING WATERMARKS)")
    [shown] = names(t_env, "SHOW CREATE TABLE late")
    assert "WATERMARK FOR `at` AS `at`" in shown
    t_env.execute_sql("CREATE TABLE cheap (cents AS price * 10) LIKE bids (OVERWRITING GENERATED)")
    assert "price * 10" in names(t_env, "SHOW CREATE TABLE cheap")[0]


@pytest.mark.parametrize(
    ("own", "has", "remedy"),
    [
        ("WATERMARK FOR `at` AS `at`", "a watermark of 'at'", "OVERWRITING WATERMARKS"),
        ("cents AS price * 10", "a column 'cents'", "OVERWRITING GENERATED"),
        ("price INT", "a column 'price'", "leave it out"),
    ],
)
def test_what_both_tables_have_is_refused(t_env, own, has, remedy):
    t_env.execute_sql(CREATE)
    with pytest.raises(SqlError, match=f"bids has {has} already.*{remedy}"):
        t_env.execute_sql(f"CREATE TABLE late ({own}) LIKE bids")


def test_a_view_keeps_to_the_columns_that_it_was_made_of(t_env):
    t_env.execute_sql(CREATE)
    t_env.execute_sql("CREATE VIEW all_bids AS SELECT * FROM bids")
    before = names(t_env, "DESCRIBE all_bids")
    t_env.execute_sql("ALTER TABLE bids ADD (note STRING FIRST)")
    assert names(t_env, "DESCRIBE all_bids") == before
    t_env.execute_sql("ALTER TABLE bids DROP cents")
    with pytest.raises(SqlError, match="view 'all_bids' has a column 'cents', which its query no longer returns"):
        t_env.execute_sql("DESCRIBE all_bids")


def test_a_table_is_not_renamed_as_a_view(t_env):
    t_env.execute_sql(CREATE)
    with pytest.raises(SqlError, match="bids is no view"):
        t_env.execute_sql("ALTER VIEW bids RENAME TO offers")


def test_tables_are_altered(t_env):
    t_env.execute_sql(CREATE)
    for statement in [
        "ALTER TABLE bids ADD (note STRING FIRST, kind INT AFTER price)", "ALTER TABLE bids RENAME kind TO sort",
        "ALTER TABLE bids DROP note", "ALTER TABLE bids SET ('csv.field-delimiter' = ';')",
        "ALTER TABLE bids DROP WATERMARK", "ALTER TABLE bids RENAME TO offers",
    ]:  # fmt: skip
        t_env.execute_sql(statement)
    assert names(t_env, "SHOW TABLES") == ["offers"]
    assert names(t_env, "DESCRIBE offers") == ["auction", "price", "sort", "cents", "at"]
    [shown] = names(t_env, "SHOW CREATE TABLE offers")
    assert "'csv.field-delimiter' = ';'" in shown and "WATERMARK" not in shown
    with pytest.raises(SqlError, match="there is no column 'kind'"):
        t_env.execute_sql("ALTER TABLE offers DROP kind")


def test_views_databases_and_names_like_a_pattern(t_env):
    t_env.execute_sql("CREATE DATABASE shop")
    t_env.execute_sql("USE shop")
    t_env.execute_sql("CREATE VIEW small (n) AS SELECT 1")
    t_env.execute_sql("CREATE TEMPORARY VIEW large AS SELECT 2 AS n")
    assert names(t_env, "SHOW VIEWS") == ["large", "small"]
    assert names(t_env, "SHOW TABLES LIKE 's%'") == ["small"]
    assert names(t_env, "SHOW CURRENT DATABASE") == ["shop"]
    assert [tuple(row) for row in t_env.execute_sql("SELECT n FROM small UNION ALL SELECT n FROM large").collect()] == [
        (1,), (2,)
    ]  # fmt: skip
    with pytest.raises(SqlError, match="database 'shop' is not empty: it has small"):
        t_env.execute_sql("DROP DATABASE shop")
    t_env.execute_sql("USE default_database")
    t_env.execute_sql("DROP DATABASE shop CASCADE")
    assert names(t_env, "SHOW DATABASES") == ["default_database"]


def test_options_are_set_shown_and_reset(t_env):
    t_env.execute_sql("SET 'table.local-time-zone' = 'Asia/Tokyo'")
    t_env.execute_sql("SET 's3.secret-key' = 'abc'")
    shown = {row[0]: row[1] for row in t_env.execute_sql("SET").collect()}
    assert shown["table.local-time-zone"] == "Asia/Tokyo"
    assert "abc" not in shown["s3.secret-key"]
    t_env.execute_sql("RESET 'table.local-time-zone'")
    assert "table.local-time-zone" not in [row[0] for row in t_env.execute_sql("SET").collect()]


def test_rows_of_memory_go_in_and_come_out(t_env):
    given = pyarrow.table({"id": pyarrow.array([1, 2, None]), "tags": [["a"], [], None], "b": [True, None, False]})
    found = t_env.from_arrow(given).to_arrow()
    assert found.equals(given)
    people = t_env.from_elements([Row(name="ann", age=3), Row(name="bob", age=None)])
    t_env.create_temporary_view("people", people)
    assert list(t_env.execute_sql("SELECT name FROM people WHERE age IS NULL").collect()) == [Row("bob")]
    typed = t_env.from_elements([(1, "x")], DataTypes.ROW([("n", DataTypes.TINYINT()), ("w", DataTypes.STRING())]))
    assert typed.to_arrow().schema.field("n").type == pyarrow.int8()
    frame = t_env.from_path("people").to_pandas()
    assert list(frame["name"]) == ["ann", "bob"]
    assert t_env.from_pandas(frame).to_arrow().num_rows == 2
    assert t_env.from_polars(t_env.from_path("people").to_polars()).to_arrow().num_rows == 2


def test_rows_are_inserted_into_tables(t_env, capfd):
    t_env.execute_sql("CREATE TABLE out (n BIGINT, w STRING) WITH ('connector' = 'print', 'print-identifier' = 'got')")
    result = t_env.execute_sql("INSERT INTO out SELECT n, w FROM (VALUES (1, 'a'), (2, NULL)) AS t(n, w)")
    result.wait()
    t_env.execute_sql("INSERT INTO out (n) SELECT 7").wait()
    assert capfd.readouterr().out.splitlines() == ["got> +I[1, a]", "got> +I[2, null]", "got> +I[7, null]"]


def test_a_statement_set_is_one_job(t_env, capfd):
    t_env.execute_sql("CREATE TABLE one (n INT) WITH ('connector' = 'print', 'print-identifier' = 'one')")
    t_env.execute_sql("CREATE TABLE two (n INT) WITH ('connector' = 'print', 'print-identifier' = 'two')")
    result = t_env.execute_sql("EXECUTE STATEMENT SET BEGIN INSERT INTO one SELECT 1; INSERT INTO two SELECT 2; END")
    result.wait()
    assert sorted(capfd.readouterr().out.splitlines()) == ["one> +I[1]", "two> +I[2]"]
    assert result.get_table_schema().get_field_names() == [
        "default_catalog.default_database.one", "default_catalog.default_database.two"
    ]  # fmt: skip


def test_results_are_printed_as_flink_prints_them(t_env, capsys):
    t_env.execute_sql("CREATE TABLE out (n BIGINT) WITH ('connector' = 'blackhole')").print()
    t_env.execute_sql("SHOW TABLES").print()
    t_env.execute_sql("SELECT 1 AS n, 'x' AS w").print()
    assert capsys.readouterr().out.splitlines() == [
        "OK",
        "+------------+",
        "| table name |",
        "+------------+",
        "|        out |",
        "+------------+",
        "1 row in set",
        "+----+-------------+--------------------------------+",
        "| op |           n |                              w |",
        "+----+-------------+--------------------------------+",
        "| +I |           1 |                              x |",
        "+----+-------------+--------------------------------+",
        "1 row in set",
    ]


def test_a_plan_and_a_definition_are_printed_as_they_are(t_env, capsys):
    t_env.execute_sql("CREATE TABLE out (n BIGINT) WITH ('connector' = 'blackhole')")
    t_env.execute_sql("EXPLAIN SELECT 1 AS n").print()
    assert capsys.readouterr().out.startswith("== Abstract Syntax Tree ==\nProject(")
    t_env.execute_sql("SHOW CREATE TABLE out").print()
    assert capsys.readouterr().out.startswith("CREATE TABLE `default_catalog`.`default_database`.`out` (\n")


def test_printed_strings_are_as_wide_as_wanted(t_env, capsys):
    t_env.execute_sql("SET 'table.display.max-column-width' = '5'")
    t_env.execute_sql("SELECT 'abcde' AS w UNION ALL SELECT 'abcdef'").print()
    assert sorted(capsys.readouterr().out.splitlines()[3:5]) == ["| +I | ab... |", "| +I | abcde |"]


def test_a_hint_gives_a_table_other_options_for_one_use(t_env, tmp_path):
    (tmp_path / "bids.csv").write_text("1;2.50;2020-01-01 00:00:00\n", encoding="utf-8")
    t_env.execute_sql(CREATE.replace("PARTITIONED BY (auction) ", "").replace("'/tmp'", f"'{tmp_path}'"))
    hint = "/*+ OPTIONS('csv.field-delimiter' = ';', 'csv.null-literal' = 'it''s') */"
    for query in (
        f"SELECT auction FROM bids {hint} AS b WHERE price > 1",
        f"SELECT auction FROM TABLE(TUMBLE(TABLE bids {hint}, DESCRIPTOR(`at`), INTERVAL '1' HOUR))",
        f"SELECT /*+ BROADCAST(b) */ auction FROM (SELECT * FROM bids{hint}) b",
    ):
        assert [list(row) for row in t_env.execute_sql(query).collect()] == [[1]], query
    t_env.execute_sql(f"CREATE VIEW hinted AS SELECT auction FROM bids {hint}")
    assert [list(row) for row in t_env.execute_sql("SELECT * FROM hinted").collect()] == [[1]]
    with pytest.raises(SqlError, match="OPTIONS of 'hinted', which is a view"):
        t_env.execute_sql(f"SELECT * FROM hinted {hint}")
    with pytest.raises(SqlError, match="line 1, column 18: the hint OPTIONS belongs to no table that is read"):
        t_env.execute_sql("INSERT INTO bids /*+ OPTIONS('path' = '/x') */ SELECT 1, 1, NULL")
    with pytest.raises(SqlError, match="OPTIONS cannot be read"):
        t_env.execute_sql("SELECT auction FROM bids /*+ OPTIONS(path = '/x') */")


def test_two_tables_of_one_name_are_refused(t_env):
    t_env.execute_sql(CREATE)
    for tables in ("bids, bids", "bids b JOIN bids b ON b.auction = b.auction"):
        with pytest.raises(SqlError, match="two tables of FROM have the name 'b"):
            t_env.sql_query(f"SELECT 1 FROM {tables}")
