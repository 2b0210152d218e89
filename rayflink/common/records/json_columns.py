"""JSON objects as columns: one a line, or one a message.

The parser builds the fields of a schema alone, nested ones too, and checks the others without building them: a core
reads about 1 GB/s of events of which it needs a few fields. What it refuses may still be a value by rules that take
more, such as numbers in quotes; then the caller reads it otherwise. Blocks of lines that look alike are read by
`JsonLayouts`.
"""

from __future__ import annotations

import io
import operator
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, filterfalse
from typing import TYPE_CHECKING

from rayflink.user_types import UserValue

from .arrow_values import list_offsets
from .json_layouts import JsonLayouts, has_layouts

if TYPE_CHECKING:
    import pyarrow

Values = Sequence[UserValue]


class JsonParser:
    """Parses JSON objects to columns.

    It is strict: a value must be of the very type of its field, null, or missing, all objects must be JSON in UTF-8,
    and there is one of them a line or message. Of equal names in an object the last counts.

    >>> import pyarrow
    >>> schema = pyarrow.schema([("bid", pyarrow.struct([("price", pyarrow.int64())]))])
    >>> JsonParser(schema).lines(b'{"bid": {"price": 7, "url": "x"}}\\n{"more": 1}\\n').to_pylist()
    [{'bid': {'price': 7}}, {'bid': None}]

    Args:
        schema: of the columns. Booleans, numbers, decimals, strings, and structs, lists and maps by strings of them.
        requires_all: a field that is missing is an error, instead of null.

    Raises:
        UnreadableColumn: the parser does not make columns of a type or name.
    """

    def __init__(self, schema: pyarrow.Schema, requires_all: bool = False) -> None:
        import msgspec
        import pyarrow

        self.schema = schema
        self._refusals = (
            msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError, pyarrow.ArrowException,
        )  # fmt: skip
        self._objects = _Objects(list(schema), requires_all)
        self._decoder = msgspec.json.Decoder(self._objects.form)
        self._layouts = JsonLayouts(schema) if has_layouts(schema) and not requires_all else None

    def lines(self, block: bytes) -> pyarrow.RecordBatch | None:
        """Return the objects of whole lines; blank lines have none. None: a line is refused."""
        try:
            _check_characters(block)
            result = None if self._layouts is None else self._layouts.columns(block, self._parsed)
            if result is not None:
                return result
            lines = io.BytesIO(block).readlines()  # three times as fast as split()
            return self._parsed(filterfalse(bytes.isspace, lines))
        except self._refusals:
            return None

    def similar_lines(self, block: bytes) -> pyarrow.RecordBatch | None:
        """Return the objects of whole lines, most of which look alike; None: parse them by `lines`, part by part.

        Large blocks are worth it: what is rare in a small one, and parsed alone, has enough lines in a large one.
        """
        try:
            result = None if self._layouts is None else self._layouts.columns(block, self._parsed)
            if result is not None:
                _check_characters(block)
            return result
        except self._refusals:
            return None

    def messages(self, messages: Sequence[bytes]) -> pyarrow.RecordBatch | None:
        """Return the object of each message; None: one is refused."""
        try:
            if not all(map(bytes.isascii, messages)):
                _check_characters(b"\n".join(messages))
            return self._parsed(messages)
        except self._refusals:
            return None

    def _parsed(self, lines: Iterable[bytes]) -> pyarrow.RecordBatch:
        return self._batch(list(map(self._decoder.decode, lines)))

    def _batch(self, objects: Values) -> pyarrow.RecordBatch:
        import pyarrow

        if not self.schema.names:
            return rows_without_columns(len(objects))
        return pyarrow.RecordBatch.from_arrays(self._objects.arrays(objects), schema=self.schema)


class UnreadableColumn(ValueError):
    """The parser of JSON does not make columns of a type or name."""


def rows_without_columns(rows: int) -> pyarrow.RecordBatch:
    """Return a batch of rows that have no columns."""
    import pyarrow

    return pyarrow.RecordBatch.from_struct_array(pyarrow.array([{}] * rows, pyarrow.struct([])))


def _check_characters(block: bytes) -> None:
    """Check that bytes are UTF-8; the parser does not look at strings that it passes over.

    Raises:
        pyarrow.ArrowInvalid: they are not.
    """
    if block.isascii():
        return
    import numpy
    import pyarrow

    bounds = numpy.array([0, len(block)], numpy.int64)
    whole = pyarrow.LargeStringArray.from_buffers(1, pyarrow.py_buffer(bounds), pyarrow.py_buffer(block))
    whole.validate(full=True)


class _Objects:
    """Structs of a list of fields, as the parser's objects and as columns."""

    def __init__(self, fields: Sequence[pyarrow.Field], requires_all: bool) -> None:
        import msgspec

        self._columns = [_Column(field.type, requires_all) for field in fields]
        names = [f"f{index}" for index in range(len(fields))]
        default = () if requires_all else (None,)
        self._get = [operator.attrgetter(name) for name in names]
        try:
            self.form: UserValue = msgspec.defstruct(
                "Object",
                [(name, column.form, *default) for name, column in zip(names, self._columns, strict=True)],
                rename=dict(zip(names, (field.name for field in fields), strict=True)),
                gc=False,
                eq=False,
            )
        except ValueError as error:  # names that are equal, or have quotes
            raise UnreadableColumn(str(error)) from error
        self.nothing = self.form(*[None] * len(names))

    def arrays(self, objects: Values) -> list[pyarrow.Array]:
        """Return a column for each field."""
        return [column.array(list(map(get, objects))) for get, column in zip(self._get, self._columns, strict=True)]


class _Column:
    """A type of the parser, and how its values become an array.

    Raises:
        UnreadableColumn: there is none.
    """

    def __init__(self, kind: pyarrow.DataType, requires_all: bool) -> None:
        from decimal import Decimal

        from pyarrow import types

        self._kind = kind
        self.array: Callable[[Values], pyarrow.Array] = self._plain
        form: UserValue
        if types.is_boolean(kind):
            form = bool
        elif types.is_integer(kind):
            form = int
        elif types.is_float32(kind) or types.is_float64(kind):
            form = float
        elif types.is_string(kind) or types.is_large_string(kind):
            form = str
        elif types.is_decimal128(kind):
            form = Decimal
        elif types.is_struct(kind):
            self._objects = _Objects(list(kind), requires_all)
            self.array, form = self._structs, self._objects.form
        elif types.is_list(kind):
            self._items = _Column(kind.value_type, requires_all)
            self.array, form = self._lists, list[self._items.form]  # type: ignore[name-defined]
        elif types.is_map(kind) and types.is_string(kind.key_type):
            self._items = _Column(kind.item_type, requires_all)
            self.array, form = self._maps, dict[str, self._items.form]  # type: ignore[name-defined]
        else:
            raise UnreadableColumn(f"JSON is not parsed to columns of {kind}")
        self.form: UserValue = form | None

    def _plain(self, values: Values) -> pyarrow.Array:
        import pyarrow

        return pyarrow.array(values, self._kind)

    def _structs(self, values: Values) -> pyarrow.Array:
        import pyarrow

        mask = _nulls(values)
        if mask is not None:
            nothing = self._objects.nothing
            values = [nothing if value is None else value for value in values]
        arrays = self._objects.arrays(values)
        if not arrays:
            return pyarrow.array([None if null else {} for null in mask or [False] * len(values)], self._kind)
        return pyarrow.StructArray.from_arrays(arrays, fields=list(self._kind), mask=mask)

    def _lists(self, values: Values) -> pyarrow.Array:
        import pyarrow

        items = self._items.array(list(chain.from_iterable(value for value in values if value)))
        return pyarrow.ListArray.from_arrays(_offsets(values), items, self._kind, mask=_nulls(values))

    def _maps(self, values: Values) -> pyarrow.Array:
        import pyarrow

        maps = [value for value in values if value]
        keys = pyarrow.array(list(chain.from_iterable(maps)), self._kind.key_type)
        items = self._items.array(list(chain.from_iterable(value.values() for value in maps)))
        return pyarrow.MapArray.from_arrays(_offsets(values), keys, items, self._kind, mask=_nulls(values))


def _nulls(values: Values) -> pyarrow.Array | None:
    """Return which values are null; None: none is."""
    if None not in values:
        return None
    import pyarrow

    return pyarrow.array([value is None for value in values])


def _offsets(values: Values) -> pyarrow.Array:
    return list_offsets([0 if value is None else len(value) for value in values])


__all__ = ["JsonParser", "UnreadableColumn", "rows_without_columns"]
