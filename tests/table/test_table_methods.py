"""Methods of a Table are clauses of SQL: both give one plan."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rayflink.common import Instant, Types
from rayflink.common.errors import ConfigError, InvalidTypesError
from rayflink.common.types import Row
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.table import (
    DataTypes,
    EnvironmentSettings,
    Expression,
    ResultKind,
    Schema,
    SqlError,
    StreamTableEnvironment,
    Table,
    TableConfig,
    TableDescriptor,
    TableEnvironment,
    TableSchema,
    expressions,
)
from rayflink.table.expressions import CURRENT_RANGE, call, col, lit, row_interval
from rayflink.table.udf import udf, udtf
from rayflink.table.window import Over, Session, Slide, Tumble

ROWS = [(1, "tea", 2.5), (2, "cake", 4.0), (3, "tea", 2.75), (4, None, 1.0)]
COLUMNS = ["id", "product", "price"]


def environment(settings: EnvironmentSettings | None = None) -> TableEnvironment:
    t_env = TableEnvironment.create(settings or EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("execution.target", "local").set("table.local-time-zone", "UTC")
    return t_env


@pytest.fixture(scope="module")
def t_env() -> TableEnvironment:
    tables = environment()
    tables.create_temporary_view("t", tables.from_elements(ROWS, COLUMNS))
    tables.execute_sql(
        "CREATE TABLE s (id INT, product STRING, price DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts, "
        "p AS PROCTIME()) WITH ('connector' = 'datagen', 'number-of-rows' = '10')"
    )
    return tables


@pytest.fixture
def t(t_env) -> Table:
    return t_env.from_path("t")


def values(table: Table) -> list[tuple]:
    return [tuple(row) for row in table.execute().collect()]


@pytest.mark.spec("R07", "node")
@pytest.mark.parametrize(
    ("change", "query"),
    [
        (lambda t: t.select(col("id"), col("price") * 2), "SELECT id, price * 2 AS _c1 FROM t"),
        (lambda t: t.select("id"), "SELECT id FROM t"),
        (lambda t: t.group_by("product").select("product"), "SELECT product FROM t GROUP BY product"),
        (lambda t: t.where(col("price") > 2), "SELECT * FROM t WHERE price > 2"),
        (lambda t: t.filter(t.product.is_null), "SELECT * FROM t WHERE product IS NULL"),
        (lambda t: t.alias("a", "b"), "SELECT id AS a, product AS b, price FROM t"),
        (lambda t: t.add_columns((t.id + 1).alias("n")), "SELECT *, id + 1 AS n FROM t"),
        (lambda t: t.add_columns(t.id + 1), "SELECT *, id + 1 AS _c3 FROM t"),
        (lambda t: t.add_or_replace_columns((t.id + 1).alias("id")), "SELECT id + 1 AS id, product, price FROM t"),
        (lambda t: t.rename_columns(t.price.alias("cost")), "SELECT id, product, price AS cost FROM t"),
        (lambda t: t.drop_columns(t.product, col("id")), "SELECT price FROM t"),
        (lambda t: t.union_all(t), "SELECT * FROM t UNION ALL SELECT * FROM t"),
        (lambda t: t.where(t.id > 1).select(t.id), "SELECT id FROM (SELECT * FROM t WHERE id > 1)"),
    ],
)
def test_a_method_is_a_clause_of_sql(t_env, t, change, query):
    found = change(t)
    assert found._plan == t_env.sql_query(query)._plan
    assert sorted(values(found), key=repr) == sorted(values(t_env.sql_query(query)), key=repr)  # UNION has no order


@pytest.mark.spec("R07", "node", "kinds")
def test_each_call_is_a_node_above_that_of_the_table(t_env):
    table = t_env.from_path("s")
    dear = table.where(col("price") > 2)
    window = Tumble.over(lit(5).minutes).on(col("ts")).alias("w")
    grouped = dear.window(window).group_by(col("product"), col("w")).select(col("product"), col("price").sum)
    scan, filtered, aggregated = ([type(node).__name__ for node in one._plan.walk()] for one in (table, dear, grouped))
    assert scan == ["WatermarkAssigner", "Project", "Scan"]
    assert filtered == ["Filter", *scan]
    assert aggregated == ["Project", "WindowAggregate", "Project", *filtered]


@pytest.mark.spec("R04", "R07", "node", "R06", "logical")
@pytest.mark.parametrize(
    ("window", "written", "kind"),
    [
        (Tumble.over(lit(5).minutes).on(col("ts")), "TUMBLE(ts, INTERVAL '5' MINUTE)", "TUMBLE"),
        (
            Slide.over(lit(5).minutes).every(lit(2).minutes).on(col("ts")),
            "HOP(ts, INTERVAL '2' MINUTE, INTERVAL '5' MINUTE)",
            "HOP",
        ),
        (Session.with_gap(lit(1).hour).on(col("ts")), "SESSION(ts, INTERVAL '1' HOUR)", "SESSION"),
        (Tumble.over(lit(1).day).on(col("p")), "TUMBLE(p, INTERVAL '1' DAY)", "TUMBLE"),
    ],
)
def test_a_group_window_is_that_of_sql(t_env, window, written, kind):
    grouped = t_env.from_path("s").window(window.alias("w")).group_by("product", "w")
    found = grouped.select(
        col("product"), (col("price").sum + 1).alias("x"), col("id").count.distinct, col("w").start, col("w").end
    )
    bounds = [f"{written.replace(kind, f'{kind}_{part}')} AS `EXPR${at}`" for at, part in ((2, "START"), (3, "END"))]
    query = (
        f"SELECT product, SUM(price) + 1 AS x, COUNT(DISTINCT id) AS `EXPR$1`, {', '.join(bounds)} "
        f"FROM s GROUP BY product, {written}"
    )
    assert found._plan == t_env.sql_query(query)._plan
    assert found.explain().partition("== Optimized")[2] == t_env.explain_sql(query).partition("== Optimized")[2]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda t: t.alias("a", "b", "c", "d"), "4 names for 3 columns; the columns are id, product, price"),
        (lambda t: t.add_columns(lit(1).alias("id")), "there is a column 'id' already; give it another name"),
        (lambda t: t.rename_columns(t.id), "rename_columns takes columns with new names"),
        (lambda t: t.rename_columns(col("idd").alias("x")), r"there is no column 'idd' \(did you mean id\?\)"),
        (lambda t: t.drop_columns(t.id + 1), "drop_columns takes columns"),
        (lambda t: t.drop_columns(col("z")), "there is no column 'z'"),
        (lambda t: t.select("id, price"), "there is no column 'id, price'"),
        (lambda t: t.order_by("id.desc"), "there is no column 'id.desc'"),
        (lambda t: t.group_by("z").select(t.id.sum), "there is no column 'z'"),
        (lambda t: t.over_window(Over.partition_by("z").order_by("id").alias("w")).select(t.id.sum.over(col("w"))),
         "there is no column 'z'"),
        (lambda t: t.join(t, col("id") == col("id")), "both tables have a column 'id'; give one of them another name"),
        (lambda t: t.union_all(3), "3 is not a table"),
        (lambda t: t.union_all(environment().from_elements([(1,)])), "the tables belong to two TableEnvironments"),
        (lambda t: t.window(Tumble.over(lit(1).day).on(col("id")).alias("w")).group_by(col("w")).select(col("id").sum),
         "column 'id' of type BIGINT is not a time attribute"),
        (lambda t: t.window(Tumble.over(lit(1).day).on(col("id")).alias("w")).group_by(col("id")),
         r"group_by leaves out the window 'w'; write group_by\(col\('w'\), ...\)"),
        (lambda t: t.window(Tumble.over(row_interval(0)).on(t.id).alias("w")).group_by(col("w")).select(t.id.sum),
         "a window of rows has a length that is none; give row_interval"),
        (lambda t: t.over_window(Over.partition_by(t.id).order_by(t.id).preceding(lit(1).day).alias("w"))
         .select(t.id.sum.over(col("w"))),
         "RANGE has a length of type INTERVAL"),
        (lambda t: t.over_window(Over.order_by(t.id).alias("w")).select(t.id.sum.over(col("v"))),
         "there is no over window 'v'; the windows are w"),
        (lambda t: t.over_window(Over.order_by(t.id).preceding(row_interval(1)).following(CURRENT_RANGE).alias("w"))
         .select(t.id.sum.over(col("w"))), "begins with a length and ends with CURRENT_RANGE; give both in rows"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_reported_with_its_line(t, change, problem):
    with pytest.raises(SqlError, match=problem) as raised:
        change(t)
    assert f"\n  at {__file__}:" in str(raised.value)


def test_a_column_is_an_attribute_and_no_other_name_is(t):
    assert isinstance(t.price, Expression) and str(t.price) == "price"
    with pytest.raises(AttributeError, match=r"no column 'prise' \(did you mean price\?\), and Table no such method"):
        assert t.prise


def test_a_table_has_a_name_in_queries(t_env, t):
    assert f"{t}" == f"{t}" != f"{t.where(t.id > 1)}"
    assert values(t_env.sql_query(f"SELECT x.id FROM (SELECT * FROM {t} WHERE id > 3) AS x")) == [(4,)]


def test_batch_tables_are_sorted_and_cut():
    t = environment(EnvironmentSettings.in_batch_mode()).from_elements(ROWS, COLUMNS)
    assert [row[0] for row in values(t.order_by(t.price.desc))] == [2, 3, 1, 4]
    assert [row[0] for row in values(t.order_by(t.product, col("price").desc))] == [4, 2, 3, 1]
    assert [row[0] for row in values(t.order_by(t.price).limit(2, 1))] == [1, 3]
    assert [row[0] for row in values(t.order_by(t.price).offset(3))] == [2]
    assert len(values(t.fetch(3))) == len(values(t.offset(1))) == 3
    cut = t.order_by(t.price).limit(2, 1).explain()
    assert "\nSort(orderBy=[price ASC], offset=[1], fetch=[2])\n+- TableSource" in cut  # one step


class TestMap:
    RESULT = DataTypes.ROW([DataTypes.FIELD("what", DataTypes.STRING()), DataTypes.FIELD("n", DataTypes.BIGINT())])

    def test_a_function_is_given_the_row(self, t):
        mapped = t.map(udf(lambda row: (row.product or "none", row[0] * 10), result_type=self.RESULT))
        assert mapped.get_schema() == TableSchema(["what", "n"], [DataTypes.STRING(), DataTypes.BIGINT()])
        assert values(mapped) == [("tea", 10), ("cake", 20), ("tea", 30), ("none", 40)]

    def test_a_row_of_its_own_and_none_are_results(self, t):
        mapped = t.map(udf(lambda row: Row(what="x", n=row.id) if row.id > 2 else None, result_type=self.RESULT))
        assert values(mapped) == [(None, None), (None, None), ("x", 3), ("x", 4)]

    def test_a_single_value_is_a_column(self, t):
        assert values(t.map(udf(lambda row: row.id + 1, result_type=DataTypes.BIGINT()))) == [(2,), (3,), (4,), (5,)]

    @pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
    def test_a_vectorised_function_is_given_a_table(self, t, kind):
        def twice(frame):
            if kind == "arrow":
                return frame.select(["product", "id"])
            return frame[["product", "id"]]

        assert values(t.map(udf(twice, result_type=self.RESULT, func_type=kind))) == [(row[1], row[0]) for row in ROWS]

    def test_an_expression_does_too(self, t):
        assert values(t.map(call("ROW", t.id, t.price)))[0] == (1, 2.5)


class TestTableFunctions:
    TYPES = (DataTypes.STRING(), DataTypes.INT())

    @staticmethod
    def letters(text):
        for at, one in enumerate(text or ""):
            if one in "ae":
                yield one, at

    def test_rows_of_a_function_stand_beside_each_row(self, t):
        letters = udtf(self.letters, result_types=list(self.TYPES))
        found = t.join_lateral(letters(t.product).alias("letter", "at")).select("id", "letter", "at")
        assert values(found) == [(1, "e", 1), (1, "a", 2), (2, "a", 1), (2, "e", 3), (3, "e", 1), (3, "a", 2)]
        late = t.join_lateral(letters(t.product).alias("l", "at"), col("at") > 2)
        assert values(late.select("id", "l")) == [(2, "e")]
        outer = t.left_outer_join_lateral(letters(t.product).alias("l", "at")).where(col("l").is_null).select("id")
        assert values(outer) == [(4,)]

    def test_a_function_is_given_the_row(self, t):
        letters = udtf(lambda row: self.letters(row.product), result_types=list(self.TYPES))
        found = t.where(t.id == 2).join_lateral(letters.alias("letter", "at")).select("id", "letter", "at")
        assert values(found) == [(2, "a", 1), (2, "e", 3)]
        flat = t.where(t.id == 2).flat_map(letters)
        assert (flat.get_schema().get_field_names(), values(flat)) == (["f0", "f1"], [("a", 1), ("e", 3)])
        assert t.flat_map(letters.alias("x", "y")).get_schema().get_field_names() == ["x", "y"]

    def test_a_function_of_the_catalog_is_called_by_its_name(self, t_env, t):
        t_env.create_temporary_function("letters_of", udtf(self.letters, result_types=list(self.TYPES)))
        found = t.join_lateral(call("letters_of", t.product).alias("l", "at")).select("id", "l", "at")
        query = "SELECT id, l, `at` FROM t, LATERAL TABLE(letters_of(product)) AS u(l, `at`)"
        assert values(found) == values(t_env.sql_query(query))

    def test_what_is_no_table_function_is_refused(self, t):
        with pytest.raises(InvalidTypesError, match="3 is not a table function; pass a function made by udtf"):
            t.join_lateral(3)
        with pytest.raises(SqlError, match="UNNEST has the argument .* of type INT"):
            t.join_lateral(udf(len, result_type=DataTypes.INT())(t.product))


@pytest.mark.parametrize(
    ("method", "rows"),
    [
        ("join", [(1, "a", 1, 10)]),
        ("left_outer_join", [(1, "a", 1, 10), (2, "b", None, None)]),
        ("right_outer_join", [(1, "a", 1, 10), (None, None, 3, 30)]),
        ("full_outer_join", [(1, "a", 1, 10), (2, "b", None, None), (None, None, 3, 30)]),
    ],
)
def test_tables_are_joined_as_in_sql(method, rows):
    t_env = environment(EnvironmentSettings.in_batch_mode())
    left = t_env.from_elements([(1, "a"), (2, "b")], ["id", "w"])
    right = t_env.from_elements([(1, 10), (3, 30)], ["k", "n"])
    assert sorted(values(getattr(left, method)(right, left.id == right.k)), key=repr) == sorted(rows, key=repr)
    assert values(left.where(left.id.in_(right.select(right.k)))) == [(1, "a")]


class TestStatementSets:
    def sinks(self, t_env: TableEnvironment) -> None:
        for name in ("one", "two"):
            options = f"'connector' = 'print', 'print-identifier' = '{name}'"
            t_env.execute_sql(f"CREATE TABLE {name} (n BIGINT) WITH ({options})")

    def test_tables_strings_and_pipelines_are_one_job(self, capfd):
        t_env = environment()
        self.sinks(t_env)
        t = t_env.from_elements([(1,), (2,)], ["n"])
        statements = t_env.create_statement_set().add_insert("one", t.where(t.n > 1))
        statements.add(t.select(t.n * 10).insert_into("two")).add_insert_sql(f"INSERT INTO two SELECT n * 100 FROM {t}")
        assert statements.explain().count("Sink") >= 3
        result = statements.execute()
        result.wait()
        lines = sorted(capfd.readouterr().out.splitlines())
        assert lines == ["one> +I[2]", "two> +I[100]", "two> +I[10]", "two> +I[200]", "two> +I[20]"]
        assert result.get_result_kind() == ResultKind.SUCCESS_WITH_CONTENT
        with pytest.raises(SqlError, match="the statement set is empty; add queries with add_insert"):
            statements.execute()

    def test_they_become_part_of_a_stream_program(self, capfd):
        env = StreamExecutionEnvironment({"execution.target": "local"})
        t_env = StreamTableEnvironment.create(env)
        self.sinks(t_env)
        statements = t_env.create_statement_set().add_insert("one", t_env.from_elements([(1,)], ["n"]))
        statements.attach_as_datastream()
        env.from_collection([7]).print()
        env.execute()
        assert sorted(capfd.readouterr().out.splitlines()) == ["7", "one> +I[1]"]

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("SELECT 1", "this is no INSERT"),
            ("INSERT INTO one SELECT x FROM (VALUES (1)) AS v(n)", "line 1, column 24: .*'x'"),
        ],
    )
    def test_what_is_no_insert_is_refused_at_once(self, text, problem):
        t_env = environment()
        self.sinks(t_env)
        with pytest.raises(SqlError, match=problem):
            t_env.create_statement_set().add_insert_sql(text)


@pytest.mark.spec("R02", "columns")
def test_tables_of_descriptors_need_no_name(tmp_path, capfd):
    t_env = environment()
    schema = Schema.new_builder().column("n", "INT").column("w", "STRING").column("big", DataTypes.BIGINT()).build()
    (tmp_path / "in.csv").write_text(f"1,a,{2**40}\n2,b,\n")
    files = TableDescriptor.for_connector("filesystem").schema(schema).option("path", tmp_path / "in.csv").format("csv")
    t = t_env.from_descriptor(files.build())
    out = TableDescriptor.for_connector("print").schema(schema).build()
    t.execute_insert(out).wait()
    assert capfd.readouterr().out.splitlines() == [f"+I[1, a, {2**40}]", "+I[2, b, null]"]
    assert t_env.list_tables() == []
    with pytest.raises(SqlError, match="has the connector 'printt', which does not exist"):
        t_env.from_descriptor(TableDescriptor.for_connector("printt").schema(schema).build())


def test_rows_of_expressions_are_a_table():
    t_env = environment()
    found = t_env.from_elements([(lit(1), call("UPPER", "a")), (2, lit("b"))], ["n", "w"])
    assert values(found) == [(1, "A"), (2, "b")]
    kinds = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.BIGINT()), DataTypes.FIELD("w", DataTypes.STRING())])
    of_rows = t_env.from_elements([expressions.row(1, call("UPPER", "a")), expressions.row(lit(2), "b")], kinds)
    assert values(of_rows) == [(1, "A"), (2, "b")]
    typed = t_env.from_elements([(lit(1), lit("a"))], kinds).get_schema()
    assert [one.nullable() for one in typed.get_field_data_types()] == [DataTypes.BIGINT(), DataTypes.STRING()]


def test_frames_take_names_types_or_both():
    pandas = pytest.importorskip("pandas")
    t_env, frame = environment(), pandas.DataFrame({0: [1, 2], 1: ["a", "b"]})
    row = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.INT()), DataTypes.FIELD("w", DataTypes.STRING())])
    assert t_env.from_pandas(frame, row).get_schema() == TableSchema(["n", "w"], [DataTypes.INT(), DataTypes.STRING()])
    unnamed = t_env.from_pandas(frame, [DataTypes.INT(), DataTypes.STRING()])
    assert unnamed.get_schema().get_field_names() == ["f0", "f1"]
    with pytest.raises(InvalidTypesError, match="the DataFrame has 2 columns, and the schema 1 fields"):
        t_env.from_pandas(frame, [DataTypes.INT()])
    assert t_env.from_pandas(frame, ["n", "w"]).get_schema().get_field_data_type("n") == DataTypes.BIGINT()


def test_a_frame_has_dicts_for_maps():
    pandas = pytest.importorskip("pandas")
    prices = DataTypes.MAP(DataTypes.STRING(False), DataTypes.ARRAY(DataTypes.FLOAT()))
    frame = pandas.DataFrame({"n": [1, 2, 3], "m": [{"tea": [1.5]}, None, {}]})
    table = environment().from_pandas(frame, [DataTypes.SMALLINT(), prices])
    assert table.get_schema().get_field_data_types() == [DataTypes.SMALLINT(), prices]
    assert values(table) == [(1, {"tea": [1.5]}), (2, None), (3, {})]
    again = environment().from_pandas(table.to_pandas(), [DataTypes.SMALLINT(), prices])
    assert values(again) == values(table)


class TestStreams:
    TYPE = Types.ROW_NAMED(["at", "w", "n"], [Types.INSTANT(), Types.STRING(), Types.INT()])
    RECORDS = [(Instant.of_epoch_milli(1500), "a", 1), (Instant.of_epoch_milli(2500), "b", 2)]

    @pytest.fixture
    def s_env(self) -> StreamTableEnvironment:
        env = StreamExecutionEnvironment({"execution.target": "local", "table.local-time-zone": "UTC"})
        return StreamTableEnvironment.create(env)

    def stream(self, s_env):
        return s_env._queries.env.from_collection(self.RECORDS, self.TYPE)

    @pytest.mark.spec("R03")
    def test_a_schema_changes_types_and_order_of_the_streams_columns(self, s_env):
        schema = Schema.new_builder().column("n", "BIGINT").column_by_expression("ts", "CAST(`at` AS TIMESTAMP(3))")
        found = s_env.from_data_stream(self.stream(s_env), schema.watermark("ts", "ts").build())
        assert [str(one) for one in found.get_schema().get_field_data_types()] == ["BIGINT", "TIMESTAMP(3)"]
        assert values(found.select(found.n, found.ts.cast(DataTypes.STRING())))[0] == (1, "1970-01-01 00:00:01.500")

    @pytest.mark.parametrize(
        ("fields", "names"),
        [
            ([col("n"), col("w")], ["n", "w"]),
            ([col("w").alias("word"), col("n")], ["word", "n"]),
            ([col("x"), col("y")], ["x", "y"]),
            ([col("w"), col("now").proctime], ["w", "now"]),
        ],
    )
    def test_columns_are_named_or_taken_in_order(self, s_env, fields, names):
        found = s_env.from_data_stream(self.stream(s_env), *fields)
        assert found.get_schema().get_field_names() == names
        assert len(values(found)) == 2

    def test_event_time_of_a_stream_is_a_time_attribute(self, s_env, capsys):
        class At:
            def extract_timestamp(self, value, record_timestamp):
                return value[0].to_epoch_milli()

        from rayflink.common import WatermarkStrategy

        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(At())
        stream = self.stream(s_env).assign_timestamps_and_watermarks(strategy)
        found = s_env.from_data_stream(stream, col("w"), col("n"), col("ts").rowtime)
        found.print_schema()
        assert "`ts` TIMESTAMP_LTZ(3) *ROWTIME*" in capsys.readouterr().out
        counted = found.window(Tumble.over(lit(1).second).on(col("ts")).alias("v")).group_by(col("v"))
        assert values(counted.select(col("n").sum)) == [(1,), (2,)]

    def test_more_columns_than_the_stream_has_are_refused(self, s_env):
        with pytest.raises(SqlError, match="4 columns of a stream of 3; its columns are at, w, n"):
            s_env.from_data_stream(self.stream(s_env), *map(col, "abcd"))


class TestConfig:
    def test_it_is_the_environments_configuration(self):
        t_env = environment()
        config = t_env.get_config()
        config.set("table.local-time-zone", "Asia/Tokyo")
        assert t_env.get_config().get_local_timezone() == "Asia/Tokyo"
        t_env.execute_sql("SET 'table.local-time-zone' = 'Europe/Berlin'")
        assert config.get_local_timezone() == config.get("table.local-time-zone", "") == "Europe/Berlin"
        config.set_local_timezone("UTC")
        assert config.to_map()["table.local-time-zone"] == "UTC"

    def test_zones_that_are_none_are_refused(self):
        with pytest.raises(ConfigError, match="found Mars/Olympus, wanted a time zone"):
            TableConfig().set_local_timezone("Mars/Olympus")


def test_results_are_printed_as_flinks_client_does(capsys):
    t_env = environment()
    t_env.get_config().set_local_timezone("Asia/Tokyo")
    t_env.execute_sql(
        "SELECT TRUE AS b, x'01ff' AS h, ROW(1, CAST(NULL AS INT)) AS r, TIMESTAMP '2024-01-01 00:00:00.500' AS ts, "
        "TO_TIMESTAMP_LTZ(0, 3) AS z"
    ).print()
    row = capsys.readouterr().out.splitlines()[3]
    cells = ["+I", "TRUE", "x'01ff'", "(1, NULL)", "2024-01-01 00:00:00.500", "1970-01-01 09:00:00.000"]
    assert [one.strip() for one in row.strip("|").split("|")] == cells


def test_a_job_that_does_not_end_is_waited_for_no_longer_than_asked():
    t_env = environment()
    t_env.execute_sql("CREATE TABLE endless (n INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1')")
    t_env.execute_sql("CREATE TABLE nowhere (n INT) WITH ('connector' = 'blackhole')")
    result = t_env.from_path("endless").execute_insert("nowhere")
    with pytest.raises(TimeoutError, match="the job has not ended within 50 ms"):
        result.wait(50)
    result.get_job_client().cancel()


def test_names_of_temporary_tables_and_views():
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    for temporary in ("", "TEMPORARY "):
        name = temporary.strip().lower()
        t_env.execute_sql(f"CREATE {temporary}VIEW {name}v AS SELECT 1 AS n")
        t_env.execute_sql(f"CREATE {temporary}TABLE {name}t (n INT) WITH ('connector' = 'print')")
    assert t_env.list_tables() == ["t", "temporaryt", "temporaryv", "v"]
    assert t_env.list_temporary_tables() == ["temporaryt", "temporaryv"]
    assert t_env.list_temporary_views() == ["temporaryv"]


def test_intervals_are_of_units():
    day, second = DataTypes.DAY(), DataTypes.SECOND(6)
    assert DataTypes.INTERVAL(day, second) == DataTypes.INTERVAL_DAY_TIME(6)
    hours = DataTypes.INTERVAL(DataTypes.HOUR(), DataTypes.MINUTE())
    assert hours.resolution is hours.DayTimeResolution.HOUR_TO_MINUTE and hours.to_arrow() == pa.duration("ms")
    assert DataTypes.INTERVAL(DataTypes.YEAR(), DataTypes.MONTH()) == DataTypes.INTERVAL_YEAR_MONTH()
    for units in ((DataTypes.YEAR(), second), (second, day)):
        with pytest.raises(InvalidTypesError, match="from DAY down to SECOND"):
            DataTypes.INTERVAL(*units)
    with pytest.raises(InvalidTypesError, match="give units"):
        DataTypes.INTERVAL("DAY")
