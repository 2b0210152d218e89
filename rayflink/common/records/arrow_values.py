"""Values of Arrow columns as a program's: rows of structs, dicts of maps, short floats, Instants; offsets of lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from rayflink.user_types import UserValue

from ..time import Instant
from ..types import Row

if TYPE_CHECKING:
    import pyarrow

Shape = Callable[[Any], Any]


def shape_of(
    kind: pyarrow.DataType, shortens_floats: bool = True, makes_instants: bool = False, is_key: bool = False
) -> Shape | None:
    """Return the function that turns a value of `to_pylist` into a program's value; None: the two are the same.

    A struct becomes a `Row` with the names of its fields, a map a dict, at any depth.

    >>> import pyarrow
    >>> kind = pyarrow.list_(pyarrow.struct([("who", pyarrow.string()), ("size", pyarrow.float32())]))
    >>> shape_of(kind)([{"who": "ann", "size": 1.2300000190734863}, None])
    [Row(who='ann', size=1.23), None]

    Args:
        kind: type of the value.
        shortens_floats: a float of 32 bits becomes the shortest decimal number that is the same in 32 bits; False:
            the float of 64 bits that has the same value.
        makes_instants: a moment in nanoseconds with a time zone, which is the Arrow type of INSTANT, becomes an
            `Instant`; False: a pandas.Timestamp, as pyarrow has it.
        is_key: the value is a key of a dict, in which lists become tuples, so that it has a hash.
    """
    from pyarrow import types

    inside = partial(shape_of, shortens_floats=shortens_floats, makes_instants=makes_instants, is_key=is_key)

    if types.is_struct(kind):
        shapes = [(field.name, inside(field.type)) for field in kind]
        named = Row(*(name for name, _ in shapes))
        return lambda value: named(*(shaped(shape, value[name]) for name, shape in shapes))
    if types.is_map(kind):
        key, item = inside(kind.key_type, is_key=True), inside(kind.item_type)
        return lambda value: {shaped(key, map_key): shaped(item, map_value) for map_key, map_value in value}
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inner = inside(kind.value_type)
        if is_key:
            return lambda value: tuple(shaped(inner, element) for element in value)
        return None if inner is None else lambda value: [shaped(inner, element) for element in value]
    if makes_instants and _is_instant(kind):
        return lambda moment: _instant(moment.value)
    return _short_float if shortens_floats and types.is_float32(kind) else None


def shaped(shape: Shape | None, value: UserValue) -> Any:
    """Return a value in that shape; None stays None."""
    return value if shape is None or value is None else shape(value)


def values_of(column: pyarrow.Array) -> list[Any]:
    """Return the values of a column as a program has them.

    >>> import pyarrow
    >>> values_of(pyarrow.array([1_000_000_005, None], pyarrow.timestamp("ns", "UTC")))
    [Instant<1, 5>, None]
    """
    import pyarrow

    if _is_instant(column.type):
        return [None if nanos is None else _instant(nanos) for nanos in column.cast(pyarrow.int64()).to_pylist()]
    if pyarrow.types.is_float32(column.type):
        shortest: list[Any] = column.cast(pyarrow.string()).cast(pyarrow.float64()).to_pylist()
        return shortest
    values: list[Any] = column.to_pylist()
    shape = shape_of(column.type, makes_instants=True)
    return values if shape is None else [None if value is None else shape(value) for value in values]


def plain_of(kind: pyarrow.DataType) -> Shape | None:
    """Return the function that turns a program's value into one that pyarrow takes; None: it takes all.

    A `Row`, tuple or list becomes a dict of the struct's fields by their places, a dict the pairs of a map, at any
    depth. Of other values pyarrow says what is wrong.
    """
    from pyarrow import types

    if types.is_struct(kind):
        fields = [(field.name, plain_of(field.type)) for field in kind]
        return lambda value: _plain_struct(value, fields)
    if types.is_map(kind):
        key, item = plain_of(kind.key_type), plain_of(kind.item_type)
        return lambda value: _plain_map(value, key, item)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inner = plain_of(kind.value_type)
        return None if inner is None else lambda value: _plain_list(value, inner)
    return None


def plain_guess(value: UserValue) -> Any:
    """Return a value whose type is not known, with dicts for Rows, as pyarrow infers a struct from them.

    >>> plain_guess([Row(a=1, b=Row(c=2))])
    [{'a': 1, 'b': {'c': 2}}]
    """
    if isinstance(value, Row):
        names = value._names or [f"f{index}" for index in range(len(value._values))]
        return {name: plain_guess(field) for name, field in zip(names, value._values, strict=True)}
    if isinstance(value, dict):
        return {key: plain_guess(element) for key, element in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_guess(element) for element in value]
    return value


def _plain_struct(value: UserValue, fields: list[tuple[str, Shape | None]]) -> Any:
    if isinstance(value, dict):
        return {name: shaped(plain, value[name]) for name, plain in fields if name in value}
    if isinstance(value, Row) and value._names is not None and set(value._names) == {name for name, _ in fields}:
        return {name: shaped(plain, value[name]) for name, plain in fields}
    values = value._values if isinstance(value, Row) else value
    if not isinstance(values, (tuple, list)) or len(values) != len(fields):
        return value
    return {name: shaped(plain, field) for (name, plain), field in zip(fields, values, strict=True)}


def _plain_map(value: UserValue, key: Shape | None, item: Shape | None) -> Any:
    if not isinstance(value, dict) and not isinstance(value, (list, tuple)):
        return value
    pairs = value.items() if isinstance(value, dict) else value
    return [(shaped(key, pair[0]), shaped(item, pair[1])) for pair in pairs]


def _plain_list(value: UserValue, inner: Shape) -> Any:
    return [shaped(inner, element) for element in value] if isinstance(value, (list, tuple)) else value


def _is_instant(kind: pyarrow.DataType) -> bool:
    from pyarrow import types

    return types.is_timestamp(kind) and kind.unit == "ns" and kind.tz is not None


def _instant(nanos: int) -> Instant:
    return Instant(*divmod(nanos, 1_000_000_000))


def _short_float(value: float) -> float:
    import numpy as np

    return float(str(np.float32(value)))


def list_offsets(sizes: Sequence[int] | pyarrow.Array) -> pyarrow.Array:
    """Return the positions at which lists of these sizes begin, one behind the other, and the end: int32[n + 1].

    The result has no validity map, beside which some versions of Arrow take no mask of null lists.
    """
    import numpy as np
    import pyarrow

    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(np.asarray(sizes), out=offsets[1:])
    return pyarrow.array(offsets)


__all__ = ["list_offsets", "plain_guess", "plain_of", "shape_of", "shaped", "values_of"]
