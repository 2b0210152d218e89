"""JSON lines that differ in their values alone, as columns: whole blocks at once, without a Python object a line.

What writes JSON to a stream gives each object the same names in the same order. So what stands between the values, the
constants, is learnt from a line and compared in all lines that have as many quotes; between them are the values. A line
that differs is parsed alone.

Source: Li, Katsipoulakis, Chandramouli, Goldstein and Kossmann (2017), Mison: a fast JSON parser for data analytics,
whose speculation on the places of fields this is, by lines in place of fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from .json_numbers import look_like_numbers, parsed_numbers

if TYPE_CHECKING:
    import pyarrow
    from numpy.typing import NDArray

Path: TypeAlias = tuple[str, ...]
Known: TypeAlias = "int | bool | type | None"
Parse: TypeAlias = "Callable[[Sequence[bytes]], pyarrow.RecordBatch]"
"""Lines that are not blank -> their objects."""

LEAST_LINES = 200
"""Fewer lines are parsed one by one, which is quicker."""
_MOST_BYTES = 128
"""Bytes of a line for each value that is read; of longer lines the values are found more quickly one by one."""
_MOST_LAYOUTS = 16
"""Layouts that are remembered."""
_MOST_ODD = 0.25
"""Share of lines of no layout above which all are parsed one by one, as the next blocks are."""
_PAUSE = 15
"""Number of these next blocks."""
_SAMPLE = 1 << 15
"""Bytes by which the length of lines is estimated."""
_SCRATCH = 1 << 18
"""Bytes that are looked through at once, while the processor's cache has them."""
_QUOTE, _NEWLINE, _BLANK = 34, 10, 32
_TOKEN = re.compile(rb'"[^"]*"|-?[0-9.eE+-]+|true|false|null|[][{}:,]| +|\n')
_LITERALS = {b"true": True, b"false": False, b"null": None}


class JsonLayouts:
    """Makes columns of blocks of lines by the layouts that it has learnt from them.

    >>> import pyarrow
    >>> layouts = JsonLayouts(pyarrow.schema([("n", pyarrow.int64()), ("name", pyarrow.string())]))
    >>> block = b"".join(b'{"name": "a%d", "n": %d}\\n' % (number, number) for number in range(300))
    >>> layouts.columns(block, list).slice(298).to_pylist()
    [{'n': 298, 'name': 'a298'}, {'n': 299, 'name': 'a299'}]

    Args:
        schema: of the columns; see `has_layouts`.
    """

    def __init__(self, schema: pyarrow.Schema) -> None:
        self._schema = schema
        self._layouts: list[_Layout] = []
        self._values = _leaves(schema)
        self._scratch = np.empty(_SCRATCH, np.bool_), np.empty(_SCRATCH, np.bool_)
        self._pause = 0

    def columns(self, block: bytes, parse: Parse) -> pyarrow.RecordBatch | None:
        """Return the objects of whole lines, which are UTF-8; None: they are to be parsed one by one, as most lines
        have no layout, or few of the many bytes are read.

        Args:
            parse: called with the lines that have none.

        Raises: what `parse` raises, and pyarrow.ArrowInvalid: a number is too large for its column.
        """
        sample = block[:_SAMPLE]
        if len(sample) > _MOST_BYTES * self._values * (sample.count(b"\n") + 1):
            return None
        if self._pause:
            self._pause -= 1
            return None
        if not block.endswith(b"\n"):
            block += b"\n"
        lines = _Lines(block, *self._scratch)
        parts: list[tuple[NDArray[np.int64], pyarrow.RecordBatch]] = []
        is_odd = np.ones(len(lines.counts), np.bool_)
        counts, sizes = np.unique(lines.counts, return_counts=True)
        for count in counts[sizes >= LEAST_LINES].tolist():
            for rows, batch in self._with_quotes(lines, count):
                is_odd[rows] = False
                parts.append((rows, batch))
        odd = np.flatnonzero(is_odd)
        if len(odd) > _MOST_ODD * len(is_odd):
            self._pause = _PAUSE
            return None
        if len(odd):
            odd_lines = lines.of(odd)
            if any(map(bytes.isspace, odd_lines)):
                odd = odd[[not line.isspace() for line in odd_lines]]
                odd_lines = lines.of(odd)
            if odd_lines:
                parts.append((odd, parse(odd_lines)))
        return parts[0][1] if len(parts) == 1 else _in_order(parts, self._schema)

    def _with_quotes(self, lines: _Lines, count: int) -> list[tuple[NDArray[np.int64], pyarrow.RecordBatch]]:
        """Return lines with a number of quotes, those of each layout and their columns."""
        rows = np.flatnonzero((lines.counts == count) & lines.is_plain)
        parts: list[tuple[NDArray[np.int64], pyarrow.RecordBatch]] = []
        known = [layout for layout in self._layouts if layout.quotes == count]
        while len(rows) >= LEAST_LINES:
            if not known:
                layout = self._learnt(*lines.of(rows[:1]))
                if layout is None:
                    break
                known.append(layout)
            layout = known.pop(0)
            is_match, batch = layout.columns(lines, rows)
            if batch is not None:
                parts.append((rows[is_match], batch))
                rows = rows[~is_match]
        return parts

    def _learnt(self, line: bytes) -> _Layout | None:
        """Return the layout of a line, which is remembered; None: it has none, or the one is known."""
        layout = _layout_of(line, self._schema)
        if layout is None or any(layout.is_same(other) for other in self._layouts):
            return None
        del self._layouts[: -_MOST_LAYOUTS + 1]
        self._layouts.append(layout)
        return layout


class _Lines:
    """A block by its lines.

    Args:
        block: ends with an end of line.
        scratch, scratch_too: space for a part of it.
    """

    def __init__(self, block: bytes, scratch: NDArray[np.bool_], scratch_too: NDArray[np.bool_]) -> None:
        self.block = block
        self.data = np.frombuffer(block, np.uint8)
        parts = []
        for start in range(0, len(block), len(scratch)):
            part = self.data[start : start + len(scratch)]
            is_mark = np.equal(part, _QUOTE, out=scratch[: len(part)])
            is_mark |= np.less(part, _BLANK, out=scratch_too[: len(part)])
            parts.append(np.flatnonzero(is_mark) + start)
        marks = np.concatenate(parts)
        kinds = self.data.take(marks)
        ends = np.flatnonzero(kinds == _NEWLINE)
        self.marks = np.concatenate(([-1], marks))
        """Where quotes and ends of lines are, after the end of a line before the block."""
        self.before = np.concatenate(([0], ends[:-1] + 1))
        """For each line the number of the mark before it."""
        self.counts = np.diff(ends, prepend=-1) - 1
        """Marks within each line."""
        self.is_plain = np.ones(len(ends), np.bool_)
        """Which lines have neither escaped characters nor control characters."""
        if len(kinds) != len(ends) + np.count_nonzero(kinds == _QUOTE):
            self.is_plain[np.searchsorted(ends, np.flatnonzero((kinds < _BLANK) & (kinds != _NEWLINE)))] = False
        if b"\\" in block:
            self.is_plain[np.searchsorted(marks[ends], np.flatnonzero(self.data == ord("\\")))] = False

    def of(self, rows: NDArray[np.int64]) -> list[bytes]:
        """Return lines with their ends."""
        before = self.before[rows]
        starts, ends = self.marks[before] + 1, self.marks[before + self.counts[rows] + 1] + 1
        return [self.block[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


@dataclass
class _Constant:
    """The bytes between two values, or before the first or behind the last.

    Args:
        mark: the quote or end of line by which its place is known, counted from the mark before the line.
        offset: from there to its beginning.
    """

    mark: int
    offset: int
    text: bytes = b""


class _Layout:
    """The constants of a line, between its values.

    Args:
        constants: the first begins the line, the last ends it.
        quotes: of the line.
        numbers: of the values between constants, which are numbers; the others are strings.
        values: path -> number of the value, or a literal, or the class of what the path leads to.
        schema: of the columns.
    """

    def __init__(
        self,
        constants: Sequence[_Constant],
        quotes: int,
        numbers: Sequence[int],
        values: Mapping[Path, Known],
        schema: pyarrow.Schema,
    ) -> None:
        self.quotes, self._values, self._schema = quotes, values, schema
        self._whole = b"".join(constant.text for constant in constants)
        self._template = np.frombuffer(self._whole, np.uint8)
        self._marks = np.array([constant.mark for constant in constants])[:, None]
        self._offsets = np.array([constant.offset for constant in constants])[:, None]
        self._sizes = np.array([len(constant.text) for constant in constants])[:, None]
        self._is_number = set(numbers)
        whole: list[int] = []
        floating: list[int] = []
        self.is_fit = all([self._is_of(field.type, (field.name,), whole, floating) for field in schema])
        """Whether its values are of the types of the columns."""
        self._whole_values = np.array(whole, np.int64)
        self._floating_values = np.array(floating, np.int64)
        self._unread_numbers = np.array(sorted({*numbers} - {*whole, *floating}), np.int64)
        self._place_of = {value: index for values in (whole, floating) for index, value in enumerate(values)}

    def is_same(self, other: _Layout) -> bool:
        """Return whether another layout has the same constants."""
        return self._whole == other._whole and np.array_equal(self._sizes, other._sizes)

    def _is_of(self, kind: pyarrow.DataType, path: Path, whole: list[int], floating: list[int]) -> bool:
        """Return whether a value is of a type, and add it to those that are read as whole or other numbers."""
        from pyarrow import types

        value = self._values.get(path)
        if value is None:
            return True
        if types.is_struct(kind):
            return value is dict and all(
                [self._is_of(field.type, (*path, field.name), whole, floating) for field in kind]
            )
        if types.is_boolean(kind):
            return isinstance(value, bool)
        if type(value) is not int or types.is_string(kind) == (value in self._is_number):
            return False
        if not types.is_string(kind):
            (whole if types.is_integer(kind) else floating).append(value)
        return True

    def columns(
        self, lines: _Lines, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], pyarrow.RecordBatch | None]:
        """Return which lines have this layout, and their columns; None: none has."""
        import pyarrow

        before = lines.before[rows]
        starts = lines.marks.take(before + self._marks)
        starts += self._offsets
        ends = starts + self._sizes
        is_match: NDArray[np.bool_] = (starts[1:] >= ends[:-1]).all(axis=0)
        is_match &= ends[-1] == lines.marks.take(before + self.quotes + 1) + 1
        inside = np.flatnonzero(is_match)
        if not len(inside):
            return is_match, None
        if len(inside) < len(rows):
            starts, ends = starts[:, inside], ends[:, inside]
        pieces = _pieces(lines.block, starts, ends)
        good = self._has_constants(pieces, len(inside))
        places = np.arange(len(inside)) * (2 * len(self._marks)) + 1
        whole = self._whole_numbers(pieces, places, good)
        floating = self._numbers(pieces, places, self._floating_values, pyarrow.float64(), good)
        values = _Values(pieces, places, whole, floating, good)
        is_match[inside] = good
        if not good.any():
            return is_match, None
        arrays = [self._column(values, field.type, (field.name,)) for field in self._schema]
        return is_match, pyarrow.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _has_constants(self, pieces: pyarrow.Array, count: int) -> NDArray[np.bool_]:
        """Return which lines have the constants of this layout at its places."""
        import pyarrow

        constants = pieces.take(pyarrow.array(np.arange(0, len(pieces), 2)))
        data = np.frombuffer(constants.buffers()[2], np.uint8, count * len(self._template))
        differs = data.reshape(count, len(self._template)) != self._template
        return ~differs.any(axis=1) if differs.any() else np.ones(count, np.bool_)

    def _whole_numbers(
        self, pieces: pyarrow.Array, places: NDArray[np.int64], good: NDArray[np.bool_]
    ) -> pyarrow.Array:
        """Return whole numbers of lines, one value after the other, and clear in `good` the lines where one is none, or
        where a number that is not read is none.

        Raises:
            pyarrow.ArrowInvalid: a number is too large for its type.
        """
        import pyarrow

        count = len(self._whole_values) * len(places)
        both = np.concatenate((self._whole_values, self._unread_numbers))
        strings = pieces.take(pyarrow.array((2 * both[:, None] + places).ravel())).view(pyarrow.string())
        if look_like_numbers(strings, True):
            return strings.slice(0, count).cast(pyarrow.int64())
        _checked(strings.slice(count), pyarrow.float64(), good)
        return _checked(strings.slice(0, count), pyarrow.int64(), good)

    def _numbers(
        self,
        pieces: pyarrow.Array,
        places: NDArray[np.int64],
        values: NDArray[np.int64],
        kind: pyarrow.DataType,
        good: NDArray[np.bool_],
    ) -> pyarrow.Array:
        """Return numbers of lines, one value after the other, and clear in `good` the lines where one is none."""
        import pyarrow

        strings = pieces.take(pyarrow.array((2 * values[:, None] + places).ravel()))
        return _checked(strings.view(pyarrow.string()), kind, good)

    def _column(self, values: _Values, kind: pyarrow.DataType, path: Path) -> pyarrow.Array:
        import pyarrow
        from pyarrow import types

        value = self._values.get(path)
        if value is None:
            return pyarrow.nulls(values.count, kind)
        if types.is_struct(kind):
            inner = [self._column(values, field.type, (*path, field.name)) for field in kind]
            if not inner:
                return pyarrow.array([{}] * values.count, kind)
            return pyarrow.StructArray.from_arrays(inner, fields=list(kind))
        if types.is_boolean(kind):
            return pyarrow.repeat(pyarrow.scalar(value, kind), values.count)
        assert type(value) is int
        if types.is_string(kind):
            return values.strings(value).view(kind)
        place = self._place_of[value]
        return values.numbers(place, types.is_integer(kind)).cast(kind)


def _checked(strings: pyarrow.Array, kind: pyarrow.DataType, good: NDArray[np.bool_]) -> pyarrow.Array:
    """Return strings as numbers, values of all lines one after the other, and clear in `good` the lines with others."""
    numbers, are_numbers = parsed_numbers(strings, kind)
    if are_numbers is not None:
        good &= are_numbers.reshape(-1, len(good)).all(axis=0)
    return numbers


class _Values:
    """The values of lines of a layout.

    Args:
        pieces: constants and values of lines by turns, in bytes.
        places: for each line the number of the first value's piece.
        whole, floating: numbers, one value of all lines after the other.
        good: lines that have the layout.
    """

    def __init__(
        self,
        pieces: pyarrow.Array,
        places: NDArray[np.int64],
        whole: pyarrow.Array,
        floating: pyarrow.Array,
        good: NDArray[np.bool_],
    ) -> None:
        import pyarrow

        self._pieces, self._whole, self._floating, self._lines = pieces, whole, floating, len(places)
        self._good = None if good.all() else pyarrow.array(good)
        self._places = places if self._good is None else places[good]
        self.count = len(self._places)

    def strings(self, value: int) -> pyarrow.Array:
        """Return a value of all lines, in bytes."""
        import pyarrow

        return self._pieces.take(pyarrow.array(self._places + 2 * value))

    def numbers(self, place: int, is_whole: bool) -> pyarrow.Array:
        """Return a value of all lines by its place in the numbers."""
        numbers = (self._whole if is_whole else self._floating).slice(place * self._lines, self._lines)
        return numbers if self._good is None else numbers.filter(self._good)


def _pieces(block: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> pyarrow.Array:
    """Return the constants of lines, int64[constants, lines], and what lies behind each, by turns."""
    import pyarrow

    constants, lines = starts.shape
    bounds = np.empty(2 * constants * lines + 1, np.int32)
    bounds[:-1:2].reshape(lines, constants)[...] = starts.T
    bounds[1::2].reshape(lines, constants)[...] = ends.T
    bounds[-1] = bounds[-2]
    buffers = [None, pyarrow.py_buffer(bounds), pyarrow.py_buffer(block)]
    return pyarrow.BinaryArray.from_buffers(pyarrow.binary(), 2 * constants * lines, buffers)


def _in_order(
    parts: Sequence[tuple[NDArray[np.int64], pyarrow.RecordBatch]], schema: pyarrow.Schema
) -> pyarrow.RecordBatch:
    """Return the rows of batches by their numbers."""
    import pyarrow

    if not parts:
        return pyarrow.RecordBatch.from_arrays([pyarrow.nulls(0, field.type) for field in schema], schema=schema)
    order = pyarrow.array(np.argsort(np.concatenate([rows for rows, _ in parts])))
    columns = zip(*(batch.columns for _, batch in parts), strict=True)
    arrays = [pyarrow.concat_arrays(column).take(order) for column in columns]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


def has_layouts(schema: pyarrow.Schema) -> bool:
    """Return whether columns can be made by layouts: of booleans, numbers, strings, and structs of them."""
    from pyarrow import types

    def is_known(kind: pyarrow.DataType) -> bool:
        if types.is_struct(kind):
            return all(is_known(field.type) for field in kind)
        is_of_kind = types.is_boolean, types.is_integer, types.is_float64, types.is_string
        return any(check(kind) for check in is_of_kind)

    return len(schema) > 0 and all(is_known(field.type) for field in schema)


def _leaves(fields: Iterable[pyarrow.Field]) -> int:
    """Return the number of fields that are no structs."""
    from pyarrow import types

    return sum(_leaves(field.type) if types.is_struct(field.type) else 1 for field in fields)


def _layout_of(line: bytes, schema: pyarrow.Schema) -> _Layout | None:
    """Return the layout of a line that ends with an end of line; None: it has none that can be recognized, or its
    values are not of the types of the schema.
    """
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return None
    layout = _Tokens(line).layout(schema)
    return layout if layout is not None and layout.is_fit else None


class _Tokens:
    """Goes through the tokens of a line, which is JSON without escapes."""

    def __init__(self, line: bytes) -> None:
        self._line = line
        self._constants = [_Constant(0, 1)]
        self._marks = 0
        self._is_open = False
        """Whether the place of the last constant is not known yet, as no mark has followed the number before it."""
        self._numbers: list[int] = []
        self._values: dict[Path, Known] = {}
        self._within: list[type] = []
        self._path: list[str] = []
        """Names of the objects that the token is in, and of its field."""
        self._wants_name = False

    def layout(self, schema: pyarrow.Schema) -> _Layout | None:
        """Return the layout; None: there can be none."""
        place = 0
        while place < len(self._line):
            token = _TOKEN.match(self._line, place)
            if token is None or not self._take(token[0]):
                return None
            place = token.end()
        return _Layout(self._constants, self._marks - 1, self._numbers, self._values, schema)

    def _take(self, token: bytes) -> bool:
        """Add a token, and return whether there can be a layout."""
        if token[:1] == b'"':
            if self._wants_name:
                self._wants_name = False
                self._path[-1] = token[1:-1].decode()
                self._add(token, marks=2)
                return True
            is_new = self._note(len(self._constants) - 1)
            self._add(b'"', marks=1)
            self._constants.append(_Constant(self._marks + 1, 0))
            self._add(b'"', marks=1)
            return is_new
        if token in b"{[":
            is_new = self._note(dict if token == b"{" else list)
            self._within.append(dict if token == b"{" else list)
            self._path.append("")
            self._wants_name = token == b"{"
        elif token in b"}]":
            self._within.pop()
            self._path.pop()
            self._wants_name, is_new = False, True
        elif token == b",":
            self._wants_name, is_new = self._within[-1] is dict, True
        elif token in _LITERALS:
            is_new = self._note(_LITERALS[token])
        elif token[0] in b"-0123456789":
            return self._take_number(token)
        else:
            is_new = True
        self._add(token, marks=int(token == b"\n"))
        return is_new

    def _take_number(self, token: bytes) -> bool:
        if self._is_open:  # two numbers without a quote between them
            return False
        self._numbers.append(len(self._constants) - 1)
        is_new = self._note(len(self._constants) - 1)
        self._constants.append(_Constant(self._marks + 1, 0))
        self._is_open = True
        return is_new

    def _add(self, text: bytes, marks: int) -> None:
        """Add to the last constant; the first mark of `text` is its first byte."""
        last = self._constants[-1]
        if self._is_open and marks:
            last.offset = -len(last.text)
            self._is_open = False
        last.text += text
        self._marks += marks

    def _note(self, value: Known) -> bool:
        """Note the value of a field, and return whether it has the only one of this name."""
        if list in self._within:
            return True
        path = tuple(self._path)
        is_new = path not in self._values
        self._values[path] = value
        return is_new


__all__ = ["LEAST_LINES", "JsonLayouts", "has_layouts"]
