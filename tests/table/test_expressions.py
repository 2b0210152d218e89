"""Expressions of a program are what the same text of SQL is: one binder serves both."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from rayflink.common.errors import InvalidTypesError
from rayflink.common.types import Row
from rayflink.table import DataTypes, EnvironmentSettings, Schema, SqlError, Table, TableDescriptor, TableEnvironment
from rayflink.table.dsl.expression_text import Function, Property
from rayflink.table.expression import (
    Expression,
    JsonExistsOnError,
    JsonOnNull,
    JsonQueryOnEmptyOrError,
    JsonQueryWrapper,
    JsonType,
    JsonValueOnEmptyOrError,
    TimeIntervalUnit,
    TimePointUnit,
)
from rayflink.table.expressions import (
    and_,
    array,
    atan2,
    call,
    call_sql,
    coalesce,
    col,
    concat,
    concat_ws,
    convert_tz,
    current_date,
    current_time,
    current_timestamp,
    current_watermark,
    date_format,
    e,
    from_unixtime,
    if_then_else,
    json,
    json_array,
    json_array_agg,
    json_object,
    json_object_agg,
    json_string,
    lit,
    local_time,
    local_timestamp,
    log,
    map_,
    map_from_arrays,
    negative,
    not_,
    null_of,
    object_of,
    or_,
    pi,
    rand,
    rand_integer,
    range_,
    row,
    temporal_overlaps,
    timestamp_diff,
    to_date,
    to_timestamp,
    to_timestamp_ltz,
    unix_timestamp,
    uuid,
    with_all_columns,
    with_columns,
    without_columns,
)
from rayflink.table.udf import udf

FIELDS = [
    ("n", DataTypes.INT()),
    ("x", DataTypes.DOUBLE()),
    ("w", DataTypes.STRING()),
    ("b", DataTypes.BOOLEAN()),
    ("ts", DataTypes.TIMESTAMP(3)),
    ("d", DataTypes.DATE()),
    ("bytes", DataTypes.BYTES()),
    ("a", DataTypes.ARRAY(DataTypes.INT())),
    ("words", DataTypes.ARRAY(DataTypes.STRING())),
    ("m", DataTypes.MAP(DataTypes.STRING(), DataTypes.INT())),
    ("r", DataTypes.ROW([DataTypes.FIELD("p", DataTypes.INT()), DataTypes.FIELD("q", DataTypes.STRING())])),
]
n, x, w, b, ts, d, a, words, m, r = (col(name) for name in ("n", "x", "w", "b", "ts", "d", "a", "words", "m", "r"))
NULL, EMPTY_ERROR = JsonValueOnEmptyOrError.NULL, JsonValueOnEmptyOrError

SAME = [
    (w + "x", "w || 'x'"), ("x" + w, "'x' || w"), (n + w, "CAST(n AS STRING) || w"),
    (n + 1, "n + 1"),
    (1 + n, "1 + n"),
    (n - 1, "n - 1"),
    (10 - n, "10 - n"),
    (n * 2, "n * 2"),
    (2 * n, "2 * n"),
    (x / 2, "x / 2"),
    (2 / x, "2 / x"),
    (n % 3, "n % 3"),
    (7 % n, "7 % n"),
    (x**2, "POWER(x, 2)"),
    (2**x, "POWER(2, x)"),
    (-n, "-n"),
    (+n, "n"),
    (abs(n), "ABS(n)"),
    (negative(n), "-n"),
    (n == 1, "n = 1"),
    (n != 1, "n <> 1"),
    (n < 1, "n < 1"),
    (n <= 1, "n <= 1"),
    (n > 1, "n > 1"),
    (n >= 1, "n >= 1"),
    (b & (n > 1), "b AND n > 1"),
    (b | (n > 1), "b OR n > 1"),
    (~b, "NOT b"),
    (True & b, "TRUE AND b"),
    (False | b, "FALSE OR b"),
    (and_(b, n > 1, n < 5), "b AND n > 1 AND n < 5"),
    (or_(b, n > 1), "b OR n > 1"),
    (not_(b), "NOT b"),
    ((n + 1) * 2, "(n + 1) * 2"),
    (n.between(1, 5), "n BETWEEN 1 AND 5"),
    (n.not_between(1, 5), "NOT (n BETWEEN 1 AND 5)"),
    (n.in_(1, 2), "n IN (1, 2)"),
    (b.then(1, 2), "IF(b, 1, 2)"),
    (if_then_else(b, n, 0), "IF(b, n, 0)"),
    (n.if_null(0), "IFNULL(n, 0)"),
    (n.is_null, "n IS NULL"),
    (n.is_not_null, "n IS NOT NULL"),
    (b.is_true, "b IS TRUE"),
    (b.is_false, "b IS FALSE"),
    (b.is_not_true, "b IS NOT TRUE"),
    (b.is_not_false, "b IS NOT FALSE"),
    (coalesce(n, 0), "COALESCE(n, 0)"),
    (n.cast(DataTypes.BIGINT()), "CAST(n AS BIGINT)"),
    (w.try_cast(DataTypes.INT()), "TRY_CAST(w AS INT)"),
    (null_of(DataTypes.INT()), "CAST(NULL AS INT)"),
    (lit(1, DataTypes.BIGINT()), "CAST(1 AS BIGINT)"),
    # constants
    (lit(True), "TRUE"),
    (lit(5), "5"),
    (lit(-5), "-5"),
    (lit(2**40), str(2**40)),
    (lit(1.5), "1.5E0"),
    (lit("it's"), "'it''s'"),
    (lit(b"\x01\xff"), "x'01ff'"),
    (lit(Decimal("12.50")), "12.50"),
    (lit(None), "NULL"),
    (lit(datetime.date(2024, 2, 29)), "DATE '2024-02-29'"),
    (lit(datetime.time(12, 30)), "TIME '12:30:00'"),
    (lit(datetime.datetime(2024, 2, 29, 12, 30, 0, 500_000)), "TIMESTAMP '2024-02-29 12:30:00.500'"),
    (lit(datetime.timedelta(minutes=5)), "INTERVAL '5' MINUTE"),
    (lit([1, 2]), "ARRAY[1, 2]"),
    (lit({"a": 1}), "MAP['a', 1]"),
    (lit(Row(1, "a")), "ROW(1, 'a')"),
    (lit(5).minutes, "INTERVAL '5' MINUTE"),
    (lit(1).day, "INTERVAL '1' DAY"),
    (lit(2).hours, "INTERVAL '2' HOUR"),
    (lit(3).seconds, "INTERVAL '3' SECOND"),
    (lit(1500).millis, "INTERVAL '1.5' SECOND"),
    (lit(2).weeks, "INTERVAL '14' DAY"),
    (lit(2).years, "INTERVAL '2' YEAR"),
    (lit(1).quarter, "INTERVAL '3' MONTH"),
    (lit(4).month, "INTERVAL '4' MONTH"),
    (ts + lit(-1).seconds, "ts + INTERVAL -'1' SECOND"),
    (ts - lit(1).hour, "ts - INTERVAL '1' HOUR"),
    (n.minutes, "n * INTERVAL '1' MINUTE"),
    # numbers
    (x.round(2), "ROUND(x, 2)"),
    (x.truncate(1), "TRUNCATE(x, 1)"),
    (x.log(), "LOG(x)"),
    (x.log(2), "LOG(2, x)"),
    (log(x), "LOG(x)"),
    (log(x, 10), "LOG(10, x)"),
    (x.floor(), "FLOOR(x)"),
    (x.ceil(), "CEIL(x)"),
    (pi(), "PI()"),
    (e(), "E()"),
    (atan2(x, x), "ATAN2(x, x)"),
    (rand(), "RAND()"),
    (rand(3), "RAND(3)"),
    (rand_integer(5), "RAND_INTEGER(5)"),
    (rand_integer(5, 3), "RAND_INTEGER(3, 5)"),
    (uuid(), "UUID()"),
    # strings
    (w.like("a%"), "w LIKE 'a%'"),
    (w.like("a!%", "!"), "w LIKE 'a!%' ESCAPE '!'"),
    (w.similar("a+"), "w SIMILAR TO 'a+'"),
    (w.substring(2), "SUBSTRING(w, 2)"),
    (w.substring(2, 3), "SUBSTRING(w FROM 2 FOR 3)"),
    (w.substr(2, 3), "SUBSTR(w, 2, 3)"),
    (w.trim(), "TRIM(w)"),
    (w.trim("x"), "TRIM(BOTH 'x' FROM w)"),
    (w.trim_leading(), "TRIM(LEADING FROM w)"),
    (w.trim_trailing("x"), "TRIM(TRAILING 'x' FROM w)"),
    (w.ltrim(), "LTRIM(w)"),
    (w.rtrim("x"), "RTRIM(w, 'x')"),
    (w.btrim(), "BTRIM(w)"),
    (w.replace("a", "b"), "REPLACE(w, 'a', 'b')"),
    (w.translate("ab", "xy"), "TRANSLATE(w, 'ab', 'xy')"),
    (lit("a").position(w), "POSITION('a' IN w)"),
    (w.lpad(5, "x"), "LPAD(w, 5, 'x')"),
    (w.rpad(5, "x"), "RPAD(w, 5, 'x')"),
    (w.overlay("xx", 2), "OVERLAY(w PLACING 'xx' FROM 2)"),
    (w.overlay("xx", 2, 1), "OVERLAY(w PLACING 'xx' FROM 2 FOR 1)"),
    (w.regexp("a+"), "REGEXP(w, 'a+')"),
    (w.regexp_count("a"), "REGEXP_COUNT(w, 'a')"),
    (w.regexp_replace("a", "b"), "REGEXP_REPLACE(w, 'a', 'b')"),
    (w.regexp_extract("(a)", 1), "REGEXP_EXTRACT(w, '(a)', 1)"),
    (w.regexp_extract_all("a"), "REGEXP_EXTRACT_ALL(w, 'a')"),
    (w.regexp_instr("a"), "REGEXP_INSTR(w, 'a')"),
    (w.regexp_substr("a"), "REGEXP_SUBSTR(w, 'a')"),
    (col("bytes").decode("UTF-8"), "DECODE(`bytes`, 'UTF-8')"),
    (w.encode("UTF-8"), "ENCODE(w, 'UTF-8')"),
    (w.left(2), "LEFT(w, 2)"),
    (w.right(2), "RIGHT(w, 2)"),
    (w.instr("a"), "INSTR(w, 'a')"),
    (lit("a").locate(w), "LOCATE('a', w)"),
    (lit("a").locate(w, 2), "LOCATE('a', w, 2)"),
    (w.parse_url("HOST"), "PARSE_URL(w, 'HOST')"),
    (w.parse_url("QUERY", "k"), "PARSE_URL(w, 'QUERY', 'k')"),
    (w.printf(n), "PRINTF(w, n)"),
    (w.repeat(2), "REPEAT(w, 2)"),
    (w.split_index(",", 0), "SPLIT_INDEX(w, ',', 0)"),
    (w.split(","), "SPLIT(w, ',')"),
    (w.str_to_map(), "STR_TO_MAP(w)"),
    (w.str_to_map(",", "="), "STR_TO_MAP(w, ',', '=')"),
    (n.elt("a", "b"), "ELT(n, 'a', 'b')"),
    (w.sha2(256), "SHA2(w, 256)"),
    (w.concat("x"), "CONCAT(w, 'x')"),
    (concat(w, "a", w), "CONCAT(w, 'a', w)"),
    (concat_ws(",", w, w), "CONCAT_WS(',', w, w)"),
    (w.starts_with("a"), "STARTSWITH(w, 'a')"),
    (w.ends_with("a"), "ENDSWITH(w, 'a')"),
    # times
    (ts.extract(TimeIntervalUnit.YEAR), "EXTRACT(YEAR FROM ts)"),
    (ts.floor(TimeIntervalUnit.HOUR), "FLOOR(ts TO HOUR)"),
    (ts.ceil(TimeIntervalUnit.DAY), "CEIL(ts TO DAY)"),
    (w.to_date, "TO_DATE(w)"),
    (w.to_timestamp, "TO_TIMESTAMP(w)"),
    (w.to_time, "CAST(w AS TIME)"),
    (to_date(w, "yyyy"), "TO_DATE(w, 'yyyy')"),
    (to_timestamp(w), "TO_TIMESTAMP(w)"),
    (to_timestamp_ltz(n, 3), "TO_TIMESTAMP_LTZ(n, 3)"),
    (current_date(), "CURRENT_DATE"),
    (current_time(), "CURRENT_TIME"),
    (current_timestamp(), "CURRENT_TIMESTAMP"),
    (local_time(), "LOCALTIME"),
    (local_timestamp(), "LOCALTIMESTAMP"),
    (date_format(ts, "yyyy"), "DATE_FORMAT(ts, 'yyyy')"),
    (timestamp_diff(TimePointUnit.DAY, ts, ts), "TIMESTAMPDIFF(DAY, ts, ts)"),
    (convert_tz(w, "UTC", "Europe/Berlin"), "CONVERT_TZ(w, 'UTC', 'Europe/Berlin')"),
    (from_unixtime(n), "FROM_UNIXTIME(n)"),
    (unix_timestamp(), "UNIX_TIMESTAMP()"),
    (unix_timestamp(w, "yyyy"), "UNIX_TIMESTAMP(w, 'yyyy')"),
    (temporal_overlaps(ts, lit(1).hour, ts, ts), "(ts, INTERVAL '1' HOUR) OVERLAPS (ts, ts)"),
    # collections
    (r.get("p"), "t.r.p"),
    (r.get(1), "t.r.q"),
    (a.at(1), "a[1]"),
    (a[1], "a[1]"),
    (m["k"], "m['k']"),
    (a.array_append(1), "ARRAY_APPEND(a, 1)"),
    (a.array_contains(1), "ARRAY_CONTAINS(a, 1)"),
    (a.array_position(1), "ARRAY_POSITION(a, 1)"),
    (a.array_prepend(1), "ARRAY_PREPEND(a, 1)"),
    (a.array_remove(None), "ARRAY_REMOVE(a, NULL)"),
    (a.array_slice(1), "ARRAY_SLICE(a, 1)"),
    (a.array_sort(), "ARRAY_SORT(a)"),
    (a.array_sort(False, True), "ARRAY_SORT(a, FALSE, TRUE)"),
    (a.array_union(a), "ARRAY_UNION(a, a)"),
    (a.array_concat(a, a), "ARRAY_CONCAT(a, a, a)"),
    (words.array_join(","), "ARRAY_JOIN(words, ',')"),
    (a.array_except(a), "ARRAY_EXCEPT(a, a)"),
    (a.array_intersect(a), "ARRAY_INTERSECT(a, a)"),
    (m.map_union(m), "MAP_UNION(m, m)"),
    (array(1, n), "ARRAY[1, n]"),
    (row(1, w), "ROW(1, w)"),
    (map_("k", n), "MAP['k', n]"),
    (map_from_arrays(words, a), "MAP_FROM_ARRAYS(words, a)"),
    # JSON
    (w.is_json(), "w IS JSON"),
    (w.is_json(JsonType.ARRAY), "w IS JSON ARRAY"),
    (w.json_exists("$.a"), "JSON_EXISTS(w, '$.a')"),
    (w.json_exists("$.a", JsonExistsOnError.ERROR), "JSON_EXISTS(w, '$.a' ERROR ON ERROR)"),
    (w.json_value("$.a"), "JSON_VALUE(w, '$.a' RETURNING STRING NULL ON EMPTY NULL ON ERROR)"),
    (
        w.json_value("$.a", DataTypes.INT(), EMPTY_ERROR.DEFAULT, 3, EMPTY_ERROR.ERROR),
        "JSON_VALUE(w, '$.a' RETURNING INT DEFAULT 3 ON EMPTY ERROR ON ERROR)",
    ),
    (w.json_query("$.a"), "JSON_QUERY(w, '$.a' WITHOUT WRAPPER NULL ON EMPTY NULL ON ERROR)"),
    (
        w.json_query("$.a", JsonQueryWrapper.CONDITIONAL_ARRAY, JsonQueryOnEmptyOrError.EMPTY_ARRAY),
        "JSON_QUERY(w, '$.a' WITH CONDITIONAL WRAPPER EMPTY ARRAY ON EMPTY NULL ON ERROR)",
    ),
    (json(w), "JSON(w)"),
    (json_string(n), "JSON_STRING(n)"),
    (json_object(JsonOnNull.ABSENT, "k", n), "JSON_OBJECT(KEY 'k' VALUE n ABSENT ON NULL)"),
    (json_array(JsonOnNull.NULL, n, w), "JSON_ARRAY(n, w NULL ON NULL)"),
    (object_of("User", "name", w, "age", n), "OBJECT_OF('User', 'name', w, 'age', n)"),
    (object_of("User", "age", n).object_update("age", w), "OBJECT_UPDATE(OBJECT_OF('User', 'age', n), 'age', w)"),
    # by name and by text
    (call("UPPER", w), "UPPER(w)"),
    (call("greatest", n, 3), "GREATEST(n, 3)"),
    (call_sql("n + 1 > 2"), "n + 1 > 2"),
]
"""An expression, and the text of SQL that means the same."""


@pytest.fixture(scope="module")
def t_env() -> TableEnvironment:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("execution.target", "local").set("table.local-time-zone", "UTC")
    return t_env


@pytest.fixture(scope="module")
def table(t_env) -> Table:
    result = t_env.from_elements([], DataTypes.ROW([DataTypes.FIELD(*field) for field in FIELDS]))
    t_env.create_temporary_view("t", result)
    return result


@pytest.mark.spec("R04")
@pytest.mark.parametrize(("expression", "text"), SAME, ids=[text for _, text in SAME])
def test_an_expression_is_what_the_text_of_sql_is(t_env, table, expression, text):
    assert table.select(expression.alias("v"))._plan == t_env.sql_query(f"SELECT {text} AS v FROM t")._plan


KINDS = {"ARRAY": a, "MAP": m, "CARDINALITY": a, "ELEMENT": a}
NUMERIC = {"EXP", "LOG10", "LOG2", "LN", "SIN", "COS", "TAN", "COT", "SINH", "COSH", "TANH", "ASIN", "ACOS", "ATAN",
           "DEGREES", "RADIANS", "SQRT", "ABS", "SIGN", "BIN", "HEX", "CHR", "INET_NTOA"}  # fmt: skip
AGGREGATES = {"SUM", "SUM0", "MIN", "MAX", "COUNT", "AVG", "FIRST_VALUE", "LAST_VALUE", "STDDEV_POP", "STDDEV_SAMP",
              "VAR_POP", "VAR_SAMP", "COLLECT", "ARRAY_AGG"}  # fmt: skip


def plain() -> dict[str, str]:
    """Names of all methods that are a function alone -> its name in SQL."""
    named = {name: vars(cls)[name] for cls in Expression.__mro__ for name in vars(cls)}
    return {name: one._name for name, one in named.items() if isinstance(one, (Property, Function))}


@pytest.mark.parametrize(("name", "function"), sorted(one for one in plain().items() if one[1] not in AGGREGATES))
def test_a_function_of_one_value_is_that_of_sql(t_env, table, name, function):
    value = next((one for start, one in KINDS.items() if function.startswith(start)), n if function in NUMERIC else w)
    result = getattr(value, name)
    result = result if isinstance(result, Expression) else result()
    assert table.select(result.alias("v"))._plan == t_env.sql_query(f"SELECT {function}({value}) AS v FROM t")._plan


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (json_array_agg(JsonOnNull.NULL, col("n")), "JSON_ARRAYAGG(n NULL ON NULL)"),
        (json_object_agg(JsonOnNull.ABSENT, col("w"), col("n")), "JSON_OBJECTAGG(KEY w VALUE n ABSENT ON NULL)"),
        (col("n").percentile(0.5), "PERCENTILE(n, 0.5e0)"),
        (col("n").percentile([0.25, 0.5], col("n")), "PERCENTILE(n, ARRAY[0.25e0, 0.5e0], n)"),
    ],
)
def test_an_aggregate_is_what_the_text_of_sql_is(expression, text):
    batch = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    batch.create_temporary_view("t", batch.from_elements([(1, "a")], ["n", "w"]))
    grouped = batch.from_path("t").group_by(col("w")).select(expression.alias("v"))
    assert grouped.explain().replace(".0", "") == batch.sql_query(f"SELECT {text} AS v FROM t GROUP BY w").explain()


def test_the_watermark_of_a_time_attribute_is_asked_for(t_env):
    schema = Schema.new_builder().column("ts", DataTypes.TIMESTAMP(3)).watermark("ts", "ts").build()
    options = TableDescriptor.for_connector("datagen").schema(schema).build()
    t_env.create_temporary_table("timed", options)
    asked = t_env.from_path("timed").select(current_watermark(col("ts")).alias("v"))
    assert asked._plan == t_env.sql_query("SELECT CURRENT_WATERMARK(ts) AS v FROM timed")._plan


def test_functions_of_ones_own_are_called_with_expressions(t_env):
    @udf(result_type=DataTypes.STRING())
    def shout(word):
        return word.upper() + "!"

    table = t_env.from_elements([("a",), ("b",)], ["word"])
    found = table.select(shout(col("word")), call(shout, "c"), call(lambda_of_int, 1).alias("n"))
    assert [tuple(row) for row in found.execute().collect()] == [("A!", "C!", 2), ("B!", "C!", 2)]
    assert shout("x") == "X!"


def lambda_of_int(value: int) -> int:
    return value + 1


def test_two_functions_of_one_name_are_two(t_env):
    def append(word):
        @udf(result_type=DataTypes.STRING())
        def same(given):
            return given + word

        return same

    table = t_env.from_elements([("a",)], ["word"])
    found = table.select(append("1")(col("word")), append("2")(col("word")))
    assert [tuple(row) for row in found.execute().collect()] == [("a1", "a2")]


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (with_columns(range_("x", "b")), ["x", "w", "b"]),
        (with_columns(range_(1, 2), "d"), ["n", "x", "d"]),
        (with_columns(1, col("d")), ["n", "d"]),
        (without_columns(range_("x", "words"), "m"), ["n", "r"]),
        (with_all_columns(), [name for name, _ in FIELDS]),
        (col("*"), [name for name, _ in FIELDS]),
    ],
)
def test_columns_are_chosen(table, choice, names):
    assert table.select(choice).get_schema().get_field_names() == names


def test_choices_of_columns_are_arguments_too(table):
    found = table.select(call("CONCAT", with_columns("w", "w")).alias("v"))
    assert found._plan == table.select(concat(w, w).alias("v"))._plan


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda t: t.select(col("nn")), r"there is no column 'nn' \(did you mean n\?\)"),
        (lambda t: t.select(call("UPER", w)), r"there is no function UPER \(did you mean UPPER\?\)"),
        (lambda t: t.select(n - w), r"- does not take \(INT, STRING\)"),
        (lambda t: t.where(n), "the condition of WHERE is of type INT, not BOOLEAN"),
        (lambda t: t.where(n.sum > 1), "WHERE has an aggregate"),
        (lambda t: t.select(r.get("z")), "has no field 'z'"),
        (lambda t: t.select(r.get(2)), "has no field 2; its fields are p, q, counted from 0"),
        (lambda t: t.select(col("v").start), "v.start names no window of this query"),
        (lambda t: t.select(n.sum.over(col("v"))), "there is no over window 'v'; name it before select"),
        (lambda t: t.select(with_columns(range_("n", "zz"))), "there is no column 'zz'"),
        (lambda t: t.select(with_columns(12)), "there is no column 12; columns are numbered 1 to 11"),
        (lambda t: t.select(n.alias("v", "z")), "MoreNames is not supported here"),
    ],
)
@pytest.mark.spec("R05", "R09", "field", "function", "types", "R07", "validated")
def test_what_is_wrong_is_reported_with_the_line_of_the_program(table, make, problem):
    with pytest.raises(SqlError, match=problem) as raised:
        make(table)
    assert raised.value.call_site.startswith(__file__), str(raised.value)


def test_an_expression_is_neither_true_nor_false():
    with pytest.raises(TypeError, match=r"\(n > 1\) is neither true nor false yet; write &, \| and ~"):
        assert (n > 1) and b


def test_what_is_no_value_is_no_expression():
    with pytest.raises(InvalidTypesError, match=r"<object object at .*> of type object is not an expression"):
        lit(object())
    with pytest.raises(InvalidTypesError, match="n is not an aggregate; write distinct after one"):
        assert n.distinct
    with pytest.raises(InvalidTypesError, match="a key without a value"):
        json_object(JsonOnNull.NULL, "k")
    with pytest.raises(InvalidTypesError, match="NaN is not a DECIMAL"):
        lit(Decimal("nan"))
