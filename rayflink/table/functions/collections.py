"""Arrays, maps and rows: made, read and changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy
import pyarrow
import pyarrow.compute as pc

from rayflink.table.functions.casts.casts import converted
from rayflink.table.functions.casts.nested_casts import lists_of, maps_of, nulls_of, rows_of
from rayflink.table.functions.declaring import (
    ANYTHING,
    ARRAY,
    BOOLEAN,
    INT,
    INTEGER,
    MAP,
    STRING,
    TEXT,
    TRUTH,
    Columns,
    Family,
    Kind,
    by_columns,
    by_values,
    constant,
    is_nullable,
    like_argument,
    takes,
)
from rayflink.table.functions.nested_equality import elements, equal_or_both_null, sizes
from rayflink.table.plan.type_rules import common_type, contains_raw
from rayflink.table.plan.typed import Arguments, Expr, Infer, RowError
from rayflink.table.types import DataType, DataTypes, Root

collections = Family("Collections")


def parents(counts: Any) -> Any:
    """Return the row of each element: int64[n]."""
    return numpy.repeat(numpy.arange(len(counts)), counts)


def _starts(counts: Any) -> Any:
    return numpy.cumsum(counts) - counts


def _without_objects(infer: Infer) -> Infer:
    """Return an inference that refuses arrays of pickled objects, whose elements are not compared."""

    def inferred(args: Sequence[Expr]) -> DataType | str:
        kind = infer(args)
        has_objects = any(contains_raw(arg.type) for arg in args)
        return kind if isinstance(kind, str) or not has_objects else "values that are compared, and no objects of RAW"

    return inferred


def _bools(mask: Any) -> Any:
    return mask.to_numpy(zero_copy_only=False)


def _codes(values: pyarrow.Array) -> Any:
    """Return a number for each element, the same for equal ones: int64[n]."""
    if pyarrow.types.is_nested(values.type):
        values = pyarrow.array([repr(value) for value in values.to_pylist()], pyarrow.string())
    return values.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False).astype(numpy.int64)


def _firsts(rows: Any, codes: Any) -> Any:
    """Places of the first of equal elements of a row, in order."""
    if not len(codes):
        return numpy.zeros(0, numpy.int64)
    _, first = numpy.unique(rows * (codes.max() + 1) + codes, return_index=True)
    return numpy.sort(first)


def _kept(values: pyarrow.Array, places: Any, rows: Any) -> Any:
    """Arrays with only the elements at some places."""
    counts = numpy.bincount(rows[places], minlength=len(values)).astype(numpy.int64)
    return lists_of(elements(values).take(pyarrow.array(places)), counts, nulls_of(values))


# Making.


def _infer_array(args: Sequence[Expr]) -> DataType | str:
    kind = common_type([arg.type for arg in args]) if args else None
    return "values of one kind" if kind is None else DataTypes.ARRAY(kind).not_null()


def _interleaved(columns: Sequence[Any], rows: int) -> Any:
    """Return the values of the first row, of the second row, and so on."""
    places = numpy.arange(len(columns) * rows).reshape(len(columns), rows).T.ravel()
    return pyarrow.concat_arrays(columns).take(pyarrow.array(places))


def _as(columns: Sequence[Any], arguments: Arguments, kind: DataType, step: int = 1, start: int = 0) -> list[Any]:
    args = arguments.call.args[start::step]
    return [
        converted(column, arg.type, kind, arguments.session)
        for column, arg in zip(columns[start::step], args, strict=True)
    ]


@collections("ARRAY[value1, value2, ...]", "An array of the values.", _infer_array, name="ARRAY")
@by_columns
def _array(arguments: Arguments, columns: Columns) -> Any:
    rows = len(columns[0])
    items = _interleaved(_as(columns, arguments, arguments.call.type.items[0]), rows)
    return lists_of(items, numpy.full(rows, len(columns)), numpy.zeros(rows, bool))


def _infer_map(args: Sequence[Expr]) -> DataType | str:
    key, value = common_type([arg.type for arg in args[::2]]), common_type([arg.type for arg in args[1::2]])
    if not args or len(args) % 2 or key is None or value is None or key.root is Root.NULL:
        return "keys of one kind, each with a value of one kind"
    return DataTypes.MAP(key, value).not_null()


@collections("MAP[key1, value1, key2, value2, ...]",
             "A map of these keys and values; of equal keys the last one counts.", _infer_map,
             name="MAP", raises=lambda call: any(argument.type.is_nullable for argument in call.args[::2]))  # fmt: skip
@by_columns
def _map(arguments: Arguments, columns: Columns) -> Any:
    rows = len(columns[0])
    key, value = arguments.call.type.items
    keys = _interleaved(_as(columns, arguments, key, 2), rows)
    values = _interleaved(_as(columns, arguments, value, 2, 1), rows)
    return made_maps(keys, values, numpy.full(rows, len(columns) // 2), numpy.zeros(rows, bool))


def made_maps(keys: pyarrow.Array, values: pyarrow.Array, counts: Any, nulls: Any) -> Any:
    """Maps of this many entries each; of equal keys the last one stays.

    Raises:
        RowError: a key is null, which Arrow's maps cannot have.
    """
    if keys.null_count:
        raise RowError("a key of a map is null", "give another key with COALESCE(key, ...)")
    rows = parents(counts)
    if len(keys) != len(_firsts(rows, _codes(keys))):
        last = len(keys) - 1 - _firsts(rows[::-1], _codes(keys)[::-1])[::-1]
        keys, values = keys.take(pyarrow.array(last)), values.take(pyarrow.array(last))
        counts = numpy.bincount(rows[last], minlength=len(counts))
    return maps_of(keys, values, counts, nulls)


def _infer_row(args: Sequence[Expr]) -> DataType:
    return DataTypes.ROW([DataTypes.FIELD(f"EXPR${index}", arg.type) for index, arg in enumerate(args)]).not_null()


@collections("ROW(value1, value2, ...)", "A row of the values.", _infer_row, name="ROW")
@by_columns
def _row(arguments: Arguments, columns: Columns) -> Any:
    return rows_of(list(columns), arguments.call.type)


# Reading.


def _infer_field(args: Sequence[Expr], options: tuple[Any, ...]) -> DataType | str:
    if len(args) != 1 or args[0].type.root is not Root.ROW or len(options) != 1:
        return "a row and the name of a field"
    field = args[0].type.field(options[0])
    if field is None:
        names = ", ".join(member.name for member in args[0].type.fields)
        return f"a row with the field {options[0]}; it has {names}"
    return field.type.as_nullable(field.type.is_nullable or args[0].type.is_nullable)


@collections("row.field", "A field of a row.", lambda args: "a row and the name of a field", name=".field",
             by_options=_infer_field)  # fmt: skip
@by_columns
def _field(arguments: Arguments, columns: Columns) -> Any:
    names = [field.name for field in arguments.call.args[0].type.fields]
    return pc.struct_field(columns[0], [names.index(arguments.call.options[0])])


def _infer_item(args: Sequence[Expr]) -> DataType | str:
    if len(args) == 2 and args[0].type.root is Root.ARRAY and INTEGER.accepts(args[1].type):
        index = constant(args[1])
        if index is not None and index < 1:
            return f"a place in the array, counted from 1, not {index}"
        return args[0].type.items[0].nullable()
    if len(args) == 2 and args[0].type.root is Root.MAP and common_type([args[0].type.items[0], args[1].type]):
        return args[0].type.items[1].nullable()
    return "an array and a place in it, or a map and a key"


@collections("array[index] or map[key]",
             "The element at a position, counted from 1, or the value of a key; null if there is none.",
             _infer_item, name="[]")  # fmt: skip
@by_columns
def _item(arguments: Arguments, columns: Columns) -> Any:
    values, key = columns
    if arguments.call.args[0].type.root is Root.MAP:
        return _of_key(arguments, values, key)
    counts, index = sizes(values), pc.fill_null(pc.cast(key, pyarrow.int64()), 0).to_numpy(zero_copy_only=False)
    inside = (index >= 1) & (index <= counts)
    return elements(values).take(pyarrow.array(_starts(counts) + index - 1, mask=~inside))


def _of_key(arguments: Arguments, maps: pyarrow.Array, needle_values: Any) -> Any:
    key, needle_type = arguments.call.args[0].type.items[0], arguments.call.args[1].type
    both = common_type([key, needle_type])
    assert both is not None
    entries, rows = elements(maps), parents(sizes(maps))
    keys = converted(entries.field(0), key, both, arguments.session)
    needles = converted(needle_values, needle_type, both, arguments.session).take(pyarrow.array(rows))
    positions = numpy.flatnonzero(_bools(equal_or_both_null(keys, needles)))
    places = numpy.full(len(maps), -1)
    places[rows[positions]] = positions
    return entries.field(1).take(pyarrow.array(places, mask=places < 0))


_ARRAY_OR_MAP = Kind(
    "an array or a map", lambda kind: kind.root in (Root.ARRAY, Root.MAP, Root.MULTISET), ARRAY.default
)


@collections("CARDINALITY(array) or CARDINALITY(map)", "The number of elements or entries.",
             takes(_ARRAY_OR_MAP, gives=INT), name="CARDINALITY")  # fmt: skip
@by_columns
def _cardinality(arguments: Arguments, columns: Columns) -> Any:
    return pyarrow.array(sizes(columns[0]).astype(numpy.int32), mask=nulls_of(columns[0]))


def _element_type(args: Sequence[Expr]) -> DataType:
    return args[0].type.items[0]


@collections("ELEMENT(array)", "The only element; null if the array is empty. More than one element is an error.",
             takes(ARRAY, gives=_element_type, null=True), raises=True)  # fmt: skip
@by_columns
def _element(arguments: Arguments, columns: Columns) -> Any:
    counts = sizes(columns[0])
    if (counts > 1).any():
        raise RowError("ELEMENT has an array of more than one element", "take one by its index: array[1]")
    return elements(columns[0]).take(pyarrow.array(_starts(counts), mask=counts == 0))


# Finding.


def _with_needle(gives: Any, null: bool | None = None) -> Infer:
    plain = takes(ARRAY, ANYTHING, gives=gives, null=null)

    def infer(args: Sequence[Expr]) -> DataType | str:
        kind = plain(args)
        if isinstance(kind, str) or args[0].type.root is Root.NULL:
            return kind
        return (
            kind if common_type([_element_type(args), args[1].type]) else "an array and a value of its elements' kind"
        )

    return _without_objects(infer)


def _matches(arguments: Arguments, columns: Columns) -> tuple[Any, Any]:
    """Return which elements are equal to the row's value, and the row of each."""
    values, needle = columns
    item, needle_type = arguments.call.args[0].type.items[0], arguments.call.args[1].type
    both = common_type([item, needle_type])
    assert both is not None
    rows = parents(sizes(values))
    candidates = converted(elements(values), item, both, arguments.session)
    needles = converted(needle, needle_type, both, arguments.session).take(pyarrow.array(rows))
    return _bools(equal_or_both_null(candidates, needles)), rows


def _array_nullable(args: Sequence[Expr]) -> DataType:
    return BOOLEAN


def _infer_contains(args: Sequence[Expr]) -> DataType | str:
    result = _with_needle(BOOLEAN)(args)
    return result if isinstance(result, str) else result.as_nullable(args[0].type.is_nullable)


@collections(
    "ARRAY_CONTAINS(array, value)", "Whether an element equals the value; null equals null here.", _infer_contains
)
@by_columns
def _contains(arguments: Arguments, columns: Columns) -> Any:
    matches, rows = _matches(arguments, columns)
    hits = numpy.zeros(len(columns[0]), bool)
    hits[rows[matches]] = True
    return pyarrow.array(hits, mask=nulls_of(columns[0]))


@collections("ARRAY_POSITION(array, value)", "The position of the first element that equals the value; 0 if none does.",
             _with_needle(INT))  # fmt: skip
@by_columns
def _position(arguments: Arguments, columns: Columns) -> Any:
    matches, rows = _matches(arguments, columns)
    places, counts = numpy.flatnonzero(matches), sizes(columns[0])
    first = numpy.zeros(len(counts), numpy.int32)
    first[rows[places][::-1]] = (places - _starts(counts)[rows[places]] + 1)[::-1]
    return pyarrow.array(first, mask=nulls_of(columns[0]) | nulls_of(columns[1]))


def _infer_remove(args: Sequence[Expr]) -> DataType | str:
    result = _with_needle(like_argument(0))(args)
    return result if isinstance(result, str) else result.as_nullable(args[0].type.is_nullable)


@collections("ARRAY_REMOVE(array, value)", "The array without the elements that equal the value.", _infer_remove)
@by_columns
def _removed(arguments: Arguments, columns: Columns) -> Any:
    matches, rows = _matches(arguments, columns)
    return _kept(columns[0], numpy.flatnonzero(~matches), rows)


# Changing.


@collections("ARRAY_DISTINCT(array)", "The array without repetitions.",
             _without_objects(takes(ARRAY, gives=like_argument(0))))  # fmt: skip
@by_columns
def _distinct(arguments: Arguments, columns: Columns) -> Any:
    return _without_repetitions(columns[0])


def _without_repetitions(values: pyarrow.Array) -> Any:
    rows = parents(sizes(values))
    return _kept(values, _firsts(rows, _codes(elements(values))), rows)


@collections("ARRAY_REVERSE(array)", "The array in reverse order.", takes(ARRAY, gives=like_argument(0)))
@by_columns
def _reversed(arguments: Arguments, columns: Columns) -> Any:
    counts = sizes(columns[0])
    rows, starts = parents(counts), _starts(counts)
    places = 2 * starts[rows] + counts[rows] - 1 - numpy.arange(len(rows))
    return lists_of(elements(columns[0]).take(pyarrow.array(places)), counts, nulls_of(columns[0]))


def _concatenated(arrays: Sequence[Any], nulls: Any) -> Any:
    """Return the elements of the first array of a row, of the second, and so on."""
    counts = [sizes(array) for array in arrays]
    order = numpy.argsort(numpy.concatenate([parents(array) for array in counts]), kind="stable")
    items = pyarrow.concat_arrays([elements(array) for array in arrays]).take(pyarrow.array(order))
    total = sum(counts)
    if nulls.any():
        rows = parents(total)
        items, total = items.filter(pyarrow.array(~nulls[rows])), numpy.where(nulls, 0, total)
    return lists_of(items, total, nulls)


def _infer_arrays(args: Sequence[Expr]) -> DataType | str:
    kind = common_type([arg.type for arg in args]) if args else None
    if kind is None or not ARRAY.accepts(kind):
        return "arrays of one kind"
    return (kind if kind.root is Root.ARRAY else ARRAY.default).as_nullable(is_nullable(args))


def _any_null(columns: Sequence[Any]) -> Any:
    return numpy.logical_or.reduce([nulls_of(column) for column in columns])


@collections(
    "ARRAY_CONCAT(array1, array2, ...)", "All elements of the arrays; null if an array is null.", _infer_arrays
)
@by_columns
def _concat(arguments: Arguments, columns: Columns) -> Any:
    return _concatenated(_as(columns, arguments, arguments.call.type), _any_null(columns))


def _infer_added(args: Sequence[Expr]) -> DataType | str:
    if len(args) != 2 or args[0].type.root is not Root.ARRAY:
        return "an array and a value of its elements' kind"
    kind = common_type([args[0].type.items[0], args[1].type])
    if kind is None:
        return "an array and a value of its elements' kind"
    return DataTypes.ARRAY(kind).as_nullable(args[0].type.is_nullable)


def _added(at_end: bool) -> Any:
    def computed(arguments: Arguments, columns: Columns) -> Any:
        kind, rows = arguments.call.type, len(columns[0])
        values = converted(columns[0], arguments.call.args[0].type, kind, arguments.session)
        value = converted(columns[1], arguments.call.args[1].type, kind.items[0], arguments.session)
        single = lists_of(value, numpy.ones(rows, numpy.int64), numpy.zeros(rows, bool))
        return _concatenated([values, single] if at_end else [single, values], nulls_of(values))

    return by_columns(computed)


collections.add("ARRAY_APPEND(array, value)", "The array with the value at its end.", _infer_added, _added(True))
collections.add("ARRAY_PREPEND(array, value)", "The array with the value at its start.", _infer_added, _added(False))


def _members(arguments: Arguments, columns: Columns) -> tuple[Any, Any, Any]:
    """Return the first array without repetitions, the row of each element, and whether the second array has it too."""
    kind = arguments.call.type
    left, right = _as(columns, arguments, kind)
    left = _without_repetitions(left)
    rows, others = parents(sizes(left)), parents(sizes(right))
    codes = _codes(pyarrow.concat_arrays([elements(left), elements(right)]))
    size = codes.max() + 1 if len(codes) else 1
    inside = numpy.isin(rows * size + codes[: len(rows)], others * size + codes[len(rows) :])
    return left, rows, inside


def _combined(keep: bool) -> Any:
    def computed(arguments: Arguments, columns: Columns) -> Any:
        left, rows, inside = _members(arguments, columns)
        result = _kept(left, numpy.flatnonzero(inside if keep else ~inside), rows)
        return _concatenated([result], _any_null(columns))

    return by_columns(computed)


_two_arrays = _without_objects(takes(ARRAY, ARRAY, gives=_infer_arrays))
collections.add("ARRAY_EXCEPT(array1, array2)", "The elements of array1 that are not in array2, without repetitions.",
                _two_arrays, _combined(False))  # fmt: skip
collections.add("ARRAY_INTERSECT(array1, array2)",
                "The elements of array1 that are also in array2, without repetitions.",
                _two_arrays, _combined(True))  # fmt: skip


@collections("ARRAY_UNION(array1, array2)", "The elements of both arrays, without repetitions.", _two_arrays)
@by_columns
def _union(arguments: Arguments, columns: Columns) -> Any:
    both = _concatenated(_as(columns, arguments, arguments.call.type), _any_null(columns))
    return _without_repetitions(both)


def _sorted_places(values: pyarrow.Array, ascending: bool, nulls_first: bool) -> Any:
    items = elements(values)
    rows = parents(sizes(values))
    table = pyarrow.table({"row": rows, "null": pc.cast(pc.is_null(items), pyarrow.int8()), "item": items})
    keys = [("row", "ascending"), ("null", "descending" if nulls_first else "ascending")]
    keys.append(("item", "ascending" if ascending else "descending"))
    return pc.sort_indices(table, keys)


def _extreme(ascending: bool) -> Any:
    def computed(arguments: Arguments, columns: Columns) -> Any:
        counts = sizes(columns[0])
        order = _sorted_places(columns[0], ascending, False)
        return elements(columns[0]).take(order.take(pyarrow.array(_starts(counts), mask=counts == 0)))

    return by_columns(computed)


_one_element = _without_objects(takes(ARRAY, gives=_element_type, null=True))
collections.add("ARRAY_MAX(array)", "The greatest element.", _one_element, _extreme(False))
collections.add("ARRAY_MIN(array)", "The least element.", _one_element, _extreme(True))


@collections("ARRAY_SORT(array[, ascending[, nulls_first]])",
             "The sorted array; by default ascending, with nulls first if ascending and last if descending.",
             _without_objects(takes(ARRAY, TRUTH, TRUTH, gives=like_argument(0), least=1)))  # fmt: skip
@by_values(1, 2)
def _sorted(arguments: Arguments, columns: Columns, ascending: bool = True, nulls_first: bool | None = None) -> Any:
    order = _sorted_places(columns[0], ascending, ascending if nulls_first is None else nulls_first)
    return lists_of(elements(columns[0]).take(order), sizes(columns[0]), nulls_of(columns[0]))


@collections("ARRAY_SLICE(array, start[, end])",
             "The elements from position start to position end; negative positions count from the end.",
             takes(ARRAY, INTEGER, INTEGER, gives=like_argument(0), least=2))  # fmt: skip
@by_columns
def _slice(arguments: Arguments, columns: Columns) -> Any:
    values = columns[0]
    counts = sizes(values)

    def place(index: int) -> Any:
        numbers = pc.fill_null(pc.cast(columns[index], pyarrow.int64()), 0).to_numpy(zero_copy_only=False)
        return numpy.where(numbers < 0, counts + numbers + 1, numbers)

    first = numpy.maximum(place(1), 1)
    last = numpy.minimum(place(2) if len(columns) > 2 else counts, counts)
    nulls = _any_null(columns)
    size = numpy.where(nulls, 0, numpy.maximum(last - first + 1, 0))
    rows = parents(size)
    offsets = numpy.arange(len(rows)) - _starts(size)[rows]
    places = _starts(counts)[rows] + first[rows] - 1 + offsets
    return lists_of(elements(values).take(pyarrow.array(places)), size, nulls)


@collections("ARRAY_JOIN(array, separator[, null_text])",
             "The strings with a separator between them; null_text replaces nulls, which are else left out.",
             takes(Kind("an array of strings", lambda kind: kind.root is Root.ARRAY and kind.items[0].is_text,
                        DataTypes.ARRAY(STRING)), TEXT, TEXT, gives=STRING, least=2))  # fmt: skip
@by_values(1, 2)
def _join(arguments: Arguments, columns: Columns, separator: str, null_text: str | None = None) -> Any:
    values = columns[0]
    if null_text is None:
        rows = parents(sizes(values))
        values = _kept(values, numpy.flatnonzero(_bools(pc.is_valid(elements(values)))), rows)
    else:
        values = lists_of(pc.fill_null(elements(values), null_text), sizes(values), nulls_of(values))
    return pc.binary_join(values, separator)


# Maps.


def _entry_types(index: int) -> Callable[[Sequence[Expr]], DataType]:
    return lambda args: DataTypes.ARRAY(args[0].type.items[index])


def _part(index: int) -> Any:
    def computed(arguments: Arguments, columns: Columns) -> Any:
        return lists_of(elements(columns[0]).field(index), sizes(columns[0]), nulls_of(columns[0]))

    return by_columns(computed)


collections.add("MAP_KEYS(map)", "The keys.", takes(MAP, gives=_entry_types(0)), _part(0))
collections.add("MAP_VALUES(map)", "The values.", takes(MAP, gives=_entry_types(1)), _part(1))


def _entries_type(args: Sequence[Expr]) -> DataType:
    key, value = args[0].type.items
    return DataTypes.ARRAY(DataTypes.ROW([("key", key), ("value", value)]))


@collections("MAP_ENTRIES(map)", "The entries as rows of key and value.", takes(MAP, gives=_entries_type))
@by_columns
def _entries(arguments: Arguments, columns: Columns) -> Any:
    entries = elements(columns[0])
    rows = rows_of([entries.field(0), entries.field(1)], arguments.call.type.items[0])
    return lists_of(rows, sizes(columns[0]), nulls_of(columns[0]))


@collections("MAP_FROM_ARRAYS(keys, values)", "A map from an array of keys and an array of values of the same length.",
             takes(ARRAY, ARRAY, gives=lambda args: DataTypes.MAP(args[0].type.items[0], args[1].type.items[0])),
             raises=True)  # fmt: skip
@by_columns
def _from_arrays(arguments: Arguments, columns: Columns) -> Any:
    nulls = _any_null(columns)
    keys, values = (_concatenated([column], nulls) for column in columns)
    if (sizes(keys) != sizes(values)).any():
        raise RowError("the arrays of MAP_FROM_ARRAYS have different lengths", "give as many values as keys")
    return made_maps(elements(keys), elements(values), sizes(keys), nulls)


def _infer_maps(args: Sequence[Expr]) -> DataType | str:
    kind = common_type([arg.type for arg in args]) if args else None
    if kind is None or kind.root is not Root.MAP:
        return "maps of one kind"
    return kind.as_nullable(is_nullable(args))


@collections("MAP_UNION(map1, map2, ...)", "The entries of all maps; of equal keys the last one counts.", _infer_maps)
@by_columns
def _map_union(arguments: Arguments, columns: Columns) -> Any:
    maps = _as(columns, arguments, arguments.call.type)
    counts = [sizes(map_) for map_ in maps]
    order = numpy.argsort(numpy.concatenate([parents(map_) for map_ in counts]), kind="stable")
    nulls = _any_null(columns)
    total = sum(counts)
    order = order[~nulls[parents(total)]]
    parts = [
        pyarrow.concat_arrays([elements(map_).field(index) for map_ in maps]).take(pyarrow.array(order))
        for index in (0, 1)
    ]
    return made_maps(parts[0], parts[1], numpy.where(nulls, 0, total), nulls)
