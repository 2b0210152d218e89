"""Functions that read and write JSON. Each different text is read once: neither Arrow nor polars has such paths."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow
import pyarrow.compute as pc

from rayflink.table.functions import json_paths
from rayflink.table.functions.casts.casts import converted
from rayflink.table.functions.casts.nested_casts import lists_of, nulls_of
from rayflink.table.functions.declaring import (
    ANYTHING,
    BOOLEAN,
    STRING,
    TEXT,
    Columns,
    Family,
    Kind,
    by_columns,
    by_values,
    constant,
    joined_present,
    takes,
)
from rayflink.table.functions.json_paths import JsonError
from rayflink.table.functions.nested_equality import elements, sizes
from rayflink.table.functions.number_format import number_strings
from rayflink.table.functions.regexes import each_distinct, strings_of
from rayflink.table.functions.times import time_format
from rayflink.table.plan.type_rules import contains_raw
from rayflink.table.plan.typed import Arguments, Call, Expr, RowError
from rayflink.table.types import DataType, DataTypes, Root

json_family = Family("JSON")
_PATH = Kind("a path such as '$.a'", TEXT.holds, STRING)


@dataclass(frozen=True)
class Behaviour:
    """The results for nothing and for errors: NULL, ERROR, DEFAULT, TRUE, EMPTY ARRAY and so on.

    Args:
        empty: for nothing.
        error: for an error.
        wrapper: whether JSON_QUERY makes arrays: "", CONDITIONAL or UNCONDITIONAL.
        returning: the type of the result.
    """

    empty: str = "NULL"
    error: str = "NULL"
    wrapper: str = ""
    returning: DataType = STRING


def behaviour(options: tuple[Any, ...], error: str = "NULL") -> Behaviour:
    """Return the meaning of the words after a path, in the order in which they are written."""
    empty, wrapper = "NULL", ""
    returning: DataType = STRING
    words: list[str] = []
    for option in options:
        if isinstance(option, DataType):
            returning = option
        elif option == "WRAPPER":
            wrapper = "" if "WITHOUT" in words else "UNCONDITIONAL" if "CONDITIONAL" not in words else "CONDITIONAL"
            words = []
        elif words and words[-1] == "ON":
            what = " ".join(words[:-1])
            empty, error, words = (what, error, []) if option == "EMPTY" else (empty, what, [])
        else:
            words.append(option)
    return Behaviour(empty, error, wrapper, returning)


def _by_options(args: Sequence[Expr], options: tuple[Any, ...]) -> DataType | str:
    result = takes(TEXT, _PATH, gives=STRING, more=ANYTHING, null=True)(args)
    return result if isinstance(result, str) else behaviour(options).returning.nullable()


def _failing(what: str, problem: str) -> Any:
    if what == "ERROR":
        raise RowError(problem, "write NULL ON EMPTY NULL ON ERROR to get null instead")
    return {"TRUE": True, "FALSE": False, "EMPTY ARRAY": "[]", "EMPTY OBJECT": "{}"}.get(what)


def _raises(call: Call) -> bool:
    return "ERROR" in call.options and call.options.count("ERROR") > call.options.count("ON") / 2


# JSON_VALUE


@json_family("JSON_VALUE(json, path [RETURNING type] [{NULL | ERROR | DEFAULT value} ON {EMPTY | ERROR}]*)",
             "The string, number or truth value at a path; of type STRING unless RETURNING names another.",
             takes(TEXT, _PATH, gives=STRING, more=ANYTHING, null=True), by_options=_by_options, raises=True,
             name="JSON_VALUE")  # fmt: skip
@by_values(1)
def _value(arguments: Arguments, columns: Columns, path: str) -> Any:
    behaviour_options = behaviour(arguments.call.options)
    where, strings = json_paths.path_of(path), strings_of(columns[0])
    kind = behaviour_options.returning

    def value(text: str | None) -> tuple[str, Any]:
        if text is None:
            return "", None
        try:
            result = json_paths.select(json_paths.parse_json(text), where)
            if result is not None and not json_paths.is_scalar(result) and where.is_strict:
                raise JsonError("the path leads to an object or an array")
            if result is None or not json_paths.is_scalar(result):
                return "EMPTY", None
            return "", _typed(result, kind)
        except JsonError:
            return "ERROR", None

    coded = strings.dictionary_encode()
    pairs = [value(text) for text in coded.dictionary.to_pylist()]
    result = pyarrow.array([item for _, item in pairs], kind.to_arrow()).take(coded.indices)
    states = pyarrow.array([state for state, _ in pairs], pyarrow.string()).take(coded.indices)
    defaults = list(range(2, len(columns)))
    for state, what in (("EMPTY", behaviour_options.empty), ("ERROR", behaviour_options.error)):
        is_state = pc.fill_null(pc.equal(states, state), False)
        if what == "DEFAULT":
            place = defaults.pop(0)
            if pc.any(is_state).as_py():
                other = _default(arguments, columns, place, kind)
                result = pc.if_else(is_state, other, result)
        elif pc.any(is_state).as_py():
            _failing(what, f"JSON_VALUE of {path!r} has {'nothing' if state == 'EMPTY' else 'an error'}")
    return result


def _default(arguments: Arguments, columns: Columns, index: int, kind: DataType) -> Any:
    arg = arguments.call.args[index].type
    default = converted(columns[index], arg, kind, arguments.session)
    return pc.utf8_lower(default) if arg.root is Root.BOOLEAN and kind.is_text else default


def _typed(value: Any, kind: DataType) -> Any:
    """Return a value of JSON in a type of SQL.

    Raises:
        JsonError: it is of another.
    """
    if kind.is_text:
        return json_paths.scalar_text(value)
    if kind.root is Root.BOOLEAN and isinstance(value, bool):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise JsonError(f"{value!r} is no {kind}")
    if kind.is_approximate:
        return float(value)
    if kind.is_integer and isinstance(value, int):
        return value
    raise JsonError(f"{value!r} is no {kind}")


# JSON_EXISTS, JSON_QUERY


@json_family("JSON_EXISTS(json, path [{TRUE | FALSE | UNKNOWN | ERROR} ON ERROR])", "Whether a path leads to a value.",
             takes(TEXT, _PATH, gives=BOOLEAN, null=True), raises=_raises, name="JSON_EXISTS")  # fmt: skip
@by_values(1)
def _exists(arguments: Arguments, columns: Columns, path: str) -> Any:
    behaviour_options, where = behaviour(arguments.call.options, "FALSE"), json_paths.path_of(path)

    def exists(text: str | None) -> bool | None:
        if text is None:
            return None
        try:
            values = json_paths.select(json_paths.parse_json(text), where)
            return values is not None and (where.is_definite or bool(values))
        except JsonError as error:
            return _failing(behaviour_options.error, str(error))  # type: ignore[no-any-return]

    return each_distinct(strings_of(columns[0]), exists, pyarrow.bool_())


def _query_type(args: Sequence[Expr], options: tuple[Any, ...]) -> DataType | str:
    result = _by_options(args, options)
    if isinstance(result, DataType) and not result.is_text and not (result.items and result.items[0].is_text):
        return "RETURNING STRING or ARRAY<STRING>"
    return result


@json_family("JSON_QUERY(json, path [RETURNING type] [wrapper] [{NULL | EMPTY {ARRAY | OBJECT}} ON {EMPTY | ERROR}]*)",
             "The object or array at a path as JSON; wrappers are WITHOUT and WITH [CONDITIONAL] [ARRAY] WRAPPER.",
             takes(TEXT, _PATH, gives=STRING, null=True), by_options=_query_type, raises=_raises,
             name="JSON_QUERY")  # fmt: skip
@by_values(1)
def _query(arguments: Arguments, columns: Columns, path: str) -> Any:
    behaviour_options, where = behaviour(arguments.call.options), json_paths.path_of(path)

    def queried(text: str | None) -> Any:
        if text is None:
            return None
        try:
            result = json_paths.select(json_paths.parse_json(text), where)
            if result is not None and (
                behaviour_options.wrapper == "UNCONDITIONAL"
                or behaviour_options.wrapper
                and not isinstance(result, list)
            ):
                result = [result]
            if result is not None and json_paths.is_scalar(result) and where.is_strict:
                raise JsonError("the path leads to no object or array")
        except JsonError as error:
            return _failing(behaviour_options.error, str(error))
        if result is None or json_paths.is_scalar(result):
            return _failing(behaviour_options.empty, f"JSON_QUERY of {path!r} has nothing")
        return json_paths.to_json(result)

    result = each_distinct(strings_of(columns[0]), queried, pyarrow.string())
    if behaviour_options.returning.is_text:
        return result

    def listed(text: str | None) -> Any:
        value = None if text is None else json_paths.parse_json(text)
        return [_listed(item) for item in value] if isinstance(value, list) else None

    return each_distinct(result, listed, arguments.result)


def _listed(value: Any) -> str | None:
    return json_paths.scalar_text(value) if json_paths.is_scalar(value) else json_paths.to_json(value)


# IS JSON


_KINDS: dict[str, Callable[[Any], bool]] = {
    "VALUE": lambda value: True,
    "SCALAR": json_paths.is_scalar,
    "ARRAY": lambda value: isinstance(value, list),
    "OBJECT": lambda value: isinstance(value, dict),
}


def _tested(kind: str, negative: bool) -> Any:
    def computed(arguments: Arguments, columns: Columns) -> Any:
        test = _KINDS[arguments.call.options[0] if arguments.call.options else kind]

        def tested(text: str | None) -> bool | None:
            try:
                return text is not None and test(json_paths.parse_json(text))
            except JsonError:
                return False

        result = pc.fill_null(each_distinct(strings_of(columns[0]), tested, pyarrow.bool_()), False)
        return pc.invert(result) if negative else result

    return by_columns(computed)


for _kind in ("", "VALUE", "SCALAR", "ARRAY", "OBJECT"):
    for _negative in (False, True):
        _name = f"IS {'NOT ' if _negative else ''}JSON {_kind}".strip()
        _about = f"Whether the text is {'no' if _negative else 'a'} JSON {_kind.lower() or 'value'}."
        json_family.add(f"text {_name}", _about,
                        takes(TEXT, gives=BOOLEAN, null=False), _tested(_kind or "VALUE", _negative),
                        name=_name)  # fmt: skip


# Writing.


def _escaped(strings: pyarrow.Array) -> Any:
    for character, escape in (("\\", "\\\\"), ('"', '\\"')):
        strings = pc.replace_substring(strings, character, escape)
    if pc.any(pc.match_substring_regex(strings, r"[\x00-\x1f]")).as_py():
        for code in range(32):
            strings = pc.replace_substring(strings, chr(code), json.dumps(chr(code))[1:-1])
    return pc.binary_join_element_wise('"', strings, '"', "")


def json_strings(values: pyarrow.Array, kind: DataType, zone: str) -> Any:
    """Format values as JSON, the string null for null."""
    if kind.root is Root.NULL:
        return pyarrow.array(["null"] * len(values), pyarrow.string())
    return pc.fill_null(_json_strings(values, kind, zone), "null")


def _json_strings(values: pyarrow.Array, kind: DataType, zone: str) -> Any:
    if kind.is_text:
        return _escaped(values)
    if kind.root is Root.BOOLEAN:
        return pc.cast(values, pyarrow.string())
    if kind.is_numeric:
        strings = number_strings(values, kind)
        if not kind.is_approximate:
            return strings
        strings = pc.replace_substring_regex(strings, "E([0-9])", r"E+\1")
        return pc.if_else(pc.is_finite(values), strings, pc.binary_join_element_wise('"', strings, '"', ""))
    if kind.is_timestamp:
        return _time(values, kind)
    if kind.is_bytes:
        import polars

        series: Any = polars.from_arrow(values)
        return _escaped(series.bin.encode("base64").to_arrow().cast(pyarrow.string()))
    if kind.root is Root.ARRAY:
        return _enclosed(json_strings(elements(values), kind.items[0], zone), values, "[", "]")
    if kind.root in (Root.MAP, Root.MULTISET):
        entries = elements(values)
        keys = _escaped(pc.cast(entries.field(0), pyarrow.string()))
        items = json_strings(entries.field(1), kind.items[1] if len(kind.items) > 1 else DataTypes.INT(), zone)
        return _enclosed(pc.binary_join_element_wise(keys, items, ":"), values, "{", "}")
    if kind.root is Root.ROW:
        parts = [
            pc.binary_join_element_wise(json.dumps(field.name, ensure_ascii=False), member, ":")
            for field, member in zip(kind.fields, _fields(values, kind, zone), strict=True)
        ]
        objects = pc.binary_join_element_wise("{", pc.binary_join_element_wise(*parts, ","), "}", "")
        return pc.if_else(pc.is_valid(values), objects, pyarrow.scalar(None, pyarrow.string()))
    return _escaped(pc.cast(values, pyarrow.string()))


def _fields(values: pyarrow.Array, kind: DataType, zone: str) -> list[Any]:
    return [json_strings(pc.struct_field(values, [index]), field.type, zone) for index, field in enumerate(kind.fields)]


def _time(values: pyarrow.Array, kind: DataType) -> Any:
    local = pc.cast(values, pyarrow.timestamp(values.type.unit))
    strings = pc.replace_substring(time_format.timestamp_strings(local, kind.precision), " ", "T")
    end = 'Z"' if kind.root is Root.TIMESTAMP_LTZ else '"'
    return pc.binary_join_element_wise('"', strings, end, "")


def _enclosed(items: pyarrow.Array, values: pyarrow.Array, left: str, right: str) -> Any:
    lists = lists_of(items, sizes(values), nulls_of(values))
    return pc.binary_join_element_wise(left, pc.binary_join(lists, ","), right, "")


def _refusal(args: Sequence[Expr]) -> str:
    """Return what is wanted where a value has pickled objects; "": nothing else."""
    return "values that JSON has, and no objects of RAW" if any(contains_raw(arg.type) for arg in args) else ""


def _infer_string(args: Sequence[Expr]) -> DataType | str:
    return _refusal(args) or takes(ANYTHING, gives=STRING)(args)


def _infer_array(args: Sequence[Expr]) -> DataType | str:
    return _refusal(args) or STRING.not_null()


@json_family("JSON_STRING(value)", "The value as JSON; null if the value is null.", _infer_string)
@by_columns
def _string(arguments: Arguments, columns: Columns) -> Any:
    kind = arguments.call.args[0].type
    strings = json_strings(columns[0], kind, arguments.session.zone)
    return pc.if_else(pc.is_valid(columns[0]), strings, pyarrow.scalar(None, pyarrow.string()))


_MAKERS = ("JSON_OBJECT", "JSON_ARRAY", "JSON")


def _part(arguments: Arguments, columns: Columns, index: int) -> Any:
    """Return a value as JSON; what another of these functions made is taken as it is."""
    arg = arguments.call.args[index]
    if isinstance(arg, Call) and arg.function.name in _MAKERS:
        return pc.fill_null(columns[index], "null")
    return json_strings(columns[index], arg.type, arguments.session.zone)


def _joined(parts: list[Any], present: list[Any], rows: int, ends: str) -> Any:
    """Return the parts that are there, with commas."""
    none = pyarrow.scalar(None, pyarrow.string())
    pieces = [
        pc.if_else(there, piece, none) if there is not None else piece
        for piece, there in zip(parts, present, strict=True)
    ]
    if not pieces:
        return pyarrow.array([ends] * rows, pyarrow.string())
    return pc.binary_join_element_wise(ends[0], joined_present(pieces, ","), ends[1], "")


def _infer_object(args: Sequence[Expr]) -> DataType | str:
    if len(args) % 2 or not all(constant(arg) is not None and arg.type.is_text for arg in args[::2]):
        return "keys that are literal strings, each with a value"
    return _infer_array(args)


def _object(arguments: Arguments, columns: Columns) -> Any:
    parts, present = [], []
    for index in range(1, len(arguments.call.args), 2):
        key = json.dumps(constant(arguments.call.args[index - 1]), ensure_ascii=False)
        parts.append(pc.binary_join_element_wise(key, _part(arguments, columns, index), ":"))
        present.append(pc.is_valid(columns[index]) if "ABSENT" in arguments.call.options else None)
    return _joined(parts, present, len(columns[0]) if columns else 1, "{}")


def _array(arguments: Arguments, columns: Columns) -> Any:
    parts = [_part(arguments, columns, index) for index in range(len(columns))]
    absent = "NULL" not in arguments.call.options
    present = [pc.is_valid(column) if absent else None for column in columns]
    return _joined(parts, present, len(columns[0]) if columns else 1, "[]")


def _maker(make: Callable[[Arguments, Any], Any]) -> Callable[[Arguments], Any]:
    kernel = by_columns(make)
    return lambda arguments: kernel(arguments) if arguments.values else make(arguments, [])[0]


json_family.add("JSON_OBJECT([[KEY] key VALUE value]* [{NULL | ABSENT} ON NULL])",
                "A JSON object; nulls stay unless ABSENT ON NULL is written.",
                _infer_object, _maker(_object), name="JSON_OBJECT")  # fmt: skip
json_family.add("JSON_ARRAY([value]* [{NULL | ABSENT} ON NULL])",
                "A JSON array; nulls are left out unless NULL ON NULL is written.",
                _infer_array, _maker(_array), name="JSON_ARRAY")  # fmt: skip
json_family.add("JSON(text)", "The text, which JSON_OBJECT and JSON_ARRAY insert as JSON, not as a string.",
                takes(TEXT, gives=STRING), lambda arguments: arguments.values[0])  # fmt: skip


@json_family("JSON_QUOTE(text)", "The text in quotes, as JSON writes it.", takes(TEXT, gives=STRING))
@by_columns
def _quote(arguments: Arguments, columns: Columns) -> Any:
    return pc.replace_substring(_escaped(strings_of(columns[0])), "/", "\\/")


def _unquoted(text: str | None) -> str | None:
    if text is None or len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return text
    try:
        value = json_paths.parse_json(text)
    except JsonError:
        return text
    return value if isinstance(value, str) else text


@json_family(
    "JSON_UNQUOTE(text)", "The content of a JSON string in quotes; any other text as it is.", takes(TEXT, gives=STRING)
)
@by_columns
def _unquote(arguments: Arguments, columns: Columns) -> Any:
    return each_distinct(strings_of(columns[0]), _unquoted, pyarrow.string())
