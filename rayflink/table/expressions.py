"""Functions that make expressions for the methods of a `Table`, with PyFlink's names."""

from __future__ import annotations

import json as standard_json
from typing import Any

from sqlglot import exp

from rayflink.common.errors import InvalidTypesError

from .definitions import parts_of
from .dsl.expression_text import Operand, call_tree, column_tree, to_expression, tree_of
from .dsl.typed_literals import constant_tree
from .dsl.units import JsonOnNull, TimePointUnit
from .expression import Expression
from .parsing.dialect import Descriptor, PathCall, Typed
from .parsing.program_nodes import Applied, ColumnChoice, ColumnRange, RowInterval, keep_text
from .parsing.statement_parser import parse_expression
from .types import DataType
from .udf import UserFunction, udf

__all__ = [
    "CURRENT_RANGE", "CURRENT_ROW", "UNBOUNDED_RANGE", "UNBOUNDED_ROW", "and_", "array", "atan2", "call", "call_sql",
    "coalesce", "col", "concat", "concat_ws", "convert_tz", "current_database", "current_date", "current_time",
    "current_timestamp", "current_watermark", "date_format", "descriptor", "e", "from_unixtime", "if_then_else", "json",
    "json_array", "json_array_agg", "json_object", "json_object_agg", "json_string", "lag", "lead", "lit", "local_time",
    "local_timestamp", "log", "map_", "map_from_arrays", "negative", "not_", "null_of", "object_of", "or_", "pi",
    "rand", "rand_integer", "range_", "row", "row_interval", "source_watermark", "temporal_overlaps", "timestamp_diff",
    "to_date", "to_timestamp", "to_timestamp_ltz", "unix_timestamp", "uuid", "with_all_columns", "with_columns",
    "without_columns",
]  # fmt: skip


def _called(name: str, *args: Operand) -> Expression[Any]:
    return to_expression(call_tree(name, *args))


# columns and values


def col(name: str) -> Expression[Any]:
    """Return a column; "*" stands for all.

    >>> col("price") > 10
    (price > 10)
    """
    return to_expression(exp.Star() if name == "*" else column_tree(name))


def lit(v: Operand, data_type: DataType | None = None) -> Expression[Any]:
    """Return a constant.

    Args:
        v: None, a number, text, bytes, date, time, timedelta, `array.array`, or a list, dict or Row of such; an empty
            list or dict needs a type.
        data_type: of the constant; None: as the value says: int is INT or BIGINT, float DOUBLE, str CHAR.

    Raises:
        InvalidTypesError: there is no type for it; it is a TypeError or a ValueError, too, where a value within an
            array, a map or a row is none of its type.
    """
    return to_expression(constant_tree(v, data_type))


def null_of(data_type: DataType) -> Expression[Any]:
    """NULL of a type."""
    return to_expression(call_tree("CAST", exp.Null(), Typed(this=data_type)))


def range_(start: str | int, end: str | int) -> Expression[Any]:
    """Choose the columns from one to another for `with_columns` and `without_columns`; by name, or by number from 1."""
    return to_expression(ColumnRange(this=start, expression=end))


def with_columns(head: Operand, *tails: Operand) -> Expression[Any]:
    """Choose some columns: expressions, numbers from 1 and ranges."""
    return to_expression(ColumnChoice(expressions=[_column(column) for column in (head, *tails)]))


def without_columns(head: Operand, *tails: Operand) -> Expression[Any]:
    """Return all columns but some."""
    return to_expression(ColumnChoice(expressions=[_column(column) for column in (head, *tails)], inverted=True))


def with_all_columns() -> Expression[Any]:
    """Return all columns."""
    return to_expression(exp.Star())


def _column(column: Operand) -> Any:
    return ColumnRange(this=column, expression=column) if isinstance(column, (int, str)) else tree_of(column)


# conditions


def and_(predicate0: Operand, predicate1: Operand, *predicates: Operand) -> Expression[bool]:
    """Test whether all are true."""
    return _connect(exp.And, [predicate0, predicate1, *predicates])


def or_(predicate0: Operand, predicate1: Operand, *predicates: Operand) -> Expression[bool]:
    """Test whether one is true."""
    return _connect(exp.Or, [predicate0, predicate1, *predicates])


def _connect(kind: type[exp.Connector], predicates: list[Operand]) -> Expression[bool]:
    tree = tree_of(predicates[0])
    for predicate in predicates[1:]:
        tree = kind(this=tree, expression=tree_of(predicate))
    return to_expression(tree)


def not_(expression: Operand) -> Expression[bool]:
    """Test whether it is false."""
    return to_expression(exp.Not(this=tree_of(expression)))


def if_then_else(condition: Operand, if_true: Operand, if_false: Operand) -> Expression[Any]:
    """Choose one value where the condition is true, else another."""
    return _called("IF", condition, tree_of(if_true), tree_of(if_false))


def coalesce(*args: Operand) -> Expression[Any]:
    """Return the first that is not NULL."""
    return _called("COALESCE", *map(tree_of, args))


# calls


def call(f: Operand, *args: Operand) -> Expression[Any]:
    """Return a function by its name in SQL or the catalog, or one of the program's own.

    >>> call("UPPER", col("word"))
    UPPER(word)

    Args:
        f: a name, with catalog and database before it where it is not of the current ones; or what `udf` or `udtf`
            made, or a function that `udf` would take.
        args: expressions and values.

    Raises:
        InvalidTypesError: it is no function, or the type of its result is not known.
    """

    trees = [tree_of(arg) for arg in args]
    if isinstance(f, str):
        names = parts_of(f)
        return to_expression(
            PathCall(this=names, expressions=trees) if len(names) > 1 else exp.Anonymous(this=f, expressions=trees)
        )
    function = f if isinstance(f, UserFunction) else udf(f)
    return to_expression(Applied(this=function.registered(function.name), expressions=trees))


def call_sql(sql_expression: str) -> Expression[Any]:
    """Return an expression of SQL.

    Raises:
        SqlError: the text is none.
    """
    return to_expression(keep_text(parse_expression(sql_expression), sql_expression))


def descriptor(*column_names: str) -> Expression[Any]:
    """Return names of columns, as an argument."""
    return to_expression(Descriptor(expressions=[exp.to_identifier(name, quoted=True) for name in column_names]))


def row_interval(rows: int) -> Expression[int]:
    """Return a length in rows, for windows."""
    return to_expression(RowInterval(this=rows))


# times


def current_database() -> Expression[str]:
    """Return the name of the current database."""
    return _called("CURRENT_DATABASE")


def current_date() -> Expression[Any]:
    """Return the date of processing in the local time zone."""
    return _called("CURRENT_DATE")


def current_time() -> Expression[Any]:
    """Return the time of day of processing in the local time zone."""
    return _called("CURRENT_TIME")


def current_timestamp() -> Expression[Any]:
    """Return the time of processing, TIMESTAMP_LTZ(3)."""
    return _called("CURRENT_TIMESTAMP")


def current_watermark(rowtimeAttribute: Operand) -> Expression[Any]:
    """Return the watermark of a time attribute, where the row is looked at; NULL before the first one."""
    return _called("CURRENT_WATERMARK", tree_of(rowtimeAttribute))


def local_time() -> Expression[Any]:
    """Return the time of day of processing in the local time zone."""
    return _called("LOCALTIME")


def local_timestamp() -> Expression[Any]:
    """Return the time of processing in the local time zone, TIMESTAMP(3)."""
    return _called("LOCALTIMESTAMP")


def source_watermark() -> Expression[Any]:
    """Return the watermark that a source has of its own; for `Schema.Builder.watermark`."""
    return _called("SOURCE_WATERMARK")


def to_date(date_str: Operand, format: Operand = None) -> Expression[Any]:
    """Return the date of a text."""
    return _called("TO_DATE", date_str, format)


def to_timestamp(timestamp_str: Operand, format: Operand = None) -> Expression[Any]:
    """Return the timestamp of a text."""
    return _called("TO_TIMESTAMP", timestamp_str, format)


def to_timestamp_ltz(*args: Operand) -> Expression[Any]:
    """Return the instant of a number of seconds or milliseconds, or of a text in a zone."""
    return _called("TO_TIMESTAMP_LTZ", *args)


def temporal_overlaps(
    left_time_point: Operand, left_temporal: Operand, right_time_point: Operand, right_temporal: Operand
) -> Expression[bool]:
    """Test whether two periods, each of a time and a time or length, have a time in common."""
    sides = ((left_time_point, left_temporal), (right_time_point, right_temporal))
    left, right = (exp.Tuple(expressions=[tree_of(time) for time in side]) for side in sides)
    return to_expression(exp.Overlaps(this=left, expression=right))


def date_format(timestamp: Operand, format: Operand) -> Expression[str]:
    """Return a time as a text by a pattern."""
    return _called("DATE_FORMAT", timestamp, format)


def timestamp_diff(time_point_unit: TimePointUnit, time_point1: Operand, time_point2: Operand) -> Expression[int]:
    """Whole units from one time to another."""
    return _called("TIMESTAMPDIFF", exp.Var(this=time_point_unit.name), time_point1, time_point2)


def convert_tz(date_str: Operand, tz_from: Operand, tz_to: Operand) -> Expression[str]:
    """Return a time as a text in one zone as a text in another."""
    return _called("CONVERT_TZ", date_str, tz_from, tz_to)


def from_unixtime(unixtime: Operand, format: Operand = None) -> Expression[str]:
    """Seconds since 1970 as a text."""
    return _called("FROM_UNIXTIME", unixtime, format)


def unix_timestamp(date_str: Operand = None, format: Operand = None) -> Expression[int]:
    """Seconds since 1970, now or of a text."""
    return _called("UNIX_TIMESTAMP", date_str, format)


# collections and rows


def array(head: Operand, *tail: Operand) -> Expression[Any]:
    """Return an array of values."""
    return _called("ARRAY", *map(tree_of, (head, *tail)))


def row(head: Operand, *tail: Operand) -> Expression[Any]:
    """Return a row of values."""
    return _called("ROW", *map(tree_of, (head, *tail)))


def map_(key: Operand, value: Operand, *tail: Operand) -> Expression[Any]:
    """Return a map of keys and values in turn."""
    return _called("MAP", *map(tree_of, (key, value, *tail)))


def map_from_arrays(key: Operand, value: Operand) -> Expression[Any]:
    """Return a map of an array of keys and one of values."""
    return _called("MAP_FROM_ARRAYS", key, value)


# numbers and strings


def pi() -> Expression[float]:
    """Return the number pi."""
    return _called("PI")


def e() -> Expression[float]:
    """Return the number e."""
    return _called("E")


def rand(seed: Operand = None) -> Expression[float]:
    """Return a random number in [0, 1)."""
    return _called("RAND", seed)


def rand_integer(bound: Operand, seed: Operand = None) -> Expression[int]:
    """Return a random whole number in [0, bound)."""
    return _called("RAND_INTEGER", seed, bound)


def atan2(y: Operand, x: Operand) -> Expression[float]:
    """Return the arc tangent of a point."""
    return _called("ATAN2", y, x)


def negative(v: Operand) -> Expression[Any]:
    """Change the sign."""
    return to_expression(exp.Neg(this=tree_of(v)))


def log(v: Operand, base: Operand = None) -> Expression[float]:
    """Return the logarithm to a base, the natural one if none is given."""
    return _called("LOG", base, v)


def concat(first: Operand, *others: Operand) -> Expression[str]:
    """Concatenate strings; NULL where one is NULL."""
    return _called("CONCAT", *map(tree_of, (first, *others)))


def concat_ws(separator: Operand, first: Operand, *others: Operand) -> Expression[str]:
    """Concatenate strings with a separator between them; those that are NULL are left out."""
    return _called("CONCAT_WS", *map(tree_of, (separator, first, *others)))


def uuid() -> Expression[str]:
    """Return a random UUID."""
    return _called("UUID")


# other rows


def lag(expr: Operand, offset: Operand = 1, default: Operand = None) -> Expression[Any]:
    """Return a value of an earlier row, of those `over` a window.

    >>> lag(col("price"), 2, 0)
    LAG(price, 2, 0)

    Args:
        expr: of that row.
        offset: how many rows before.
        default: where there is no such row.
    """
    return _called("LAG", expr, offset, *(() if default is None else (default,)))


def lead(expr: Operand, offset: Operand = 1, default: Operand = None) -> Expression[Any]:
    """Return a value of a later row, of those `over` a window, in batch mode.

    >>> lead(col("price"))
    LEAD(price, 1)

    Args:
        expr: of that row.
        offset: how many rows behind.
        default: where there is no such row.
    """
    return _called("LEAD", expr, offset, *(() if default is None else (default,)))


# JSON


def json(value: Operand) -> Expression[str]:
    """Return a text that is JSON, for `json_object` and `json_array` to take as it is.

    It has the functions of Python's module `json`, too: a program that imports that module, and then everything from
    here, goes on to call `json.loads`.
    """
    return _called("JSON", value)


for _name in standard_json.__all__:
    setattr(json, _name, getattr(standard_json, _name))


def json_string(value: Operand) -> Expression[str]:
    """Return a value as JSON."""
    return _called("JSON_STRING", value)


def json_object(on_null: JsonOnNull = JsonOnNull.NULL, *args: Operand) -> Expression[str]:
    """Return an object of keys and values in turn.

    Raises:
        InvalidTypesError: a key has no value.
    """
    if len(args) % 2:
        raise InvalidTypesError("json_object has a key without a value", "give keys and values in turn")
    return _called("JSON_OBJECT", *map(tree_of, args), exp.Var(this=on_null.name))


def json_array(on_null: JsonOnNull = JsonOnNull.ABSENT, *args: Operand) -> Expression[str]:
    """Return an array of values."""
    return _called("JSON_ARRAY", *map(tree_of, args), exp.Var(this=on_null.name))


def json_array_agg(on_null: JsonOnNull, item_expr: Operand) -> Expression[str]:
    """Return an array of the values of all rows."""
    return _called("JSON_ARRAYAGG", tree_of(item_expr), exp.Var(this=on_null.name))


def json_object_agg(on_null: JsonOnNull, key_expr: Operand, value_expr: Operand) -> Expression[str]:
    """Return an object of the keys and values of all rows."""
    return _called("JSON_OBJECTAGG", tree_of(key_expr), tree_of(value_expr), exp.Var(this=on_null.name))


def object_of(class_name: str, *args: Operand) -> Expression[Any]:
    """Return a row of named fields; the name of the class is not kept.

    Args:
        args: names of fields and their values in turn.
    """
    return _called("OBJECT_OF", *map(tree_of, (class_name, *args)))


UNBOUNDED_ROW: Expression[Any] = to_expression(exp.Var(this="UNBOUNDED ROW"))
"""For over windows: all rows before."""
UNBOUNDED_RANGE: Expression[Any] = to_expression(exp.Var(this="UNBOUNDED RANGE"))
"""For over windows: all times before."""
CURRENT_ROW: Expression[Any] = to_expression(exp.Var(this="CURRENT ROW"))
"""For over windows: up to the row itself."""
CURRENT_RANGE: Expression[Any] = to_expression(exp.Var(this="CURRENT RANGE"))
"""For over windows: up to the row's time."""
