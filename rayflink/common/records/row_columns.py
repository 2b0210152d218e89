"""Rows of one shape, stored as columns until the rows are asked for.

Tuples of the same width whose fields are plain strings, whole numbers, floats or truth values take, as columns, a tenth
of the memory that they take as Python objects, and are divided, sent and summed up without making an object a record.
Nothing of a value is lost on the way: fields of any other type, of mixed types, or whole numbers beyond 64 bits leave
the rows as they are.
"""

from __future__ import annotations

import marshal
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .batches import RowBatch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LARGEST_TABLE = 1 << 16
"""Distinct strings that a table of `Coded` holds at most."""
_SPARSE = 8
"""The factor by which a table may exceed its column and still be searched for the entries that occur."""


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of strings that recur: row i is `table[codes[i]]`; `codes` is uint16[n]."""

    table: list[str]
    codes: NDArray[np.uint16]

    def __len__(self) -> int:
        return len(self.codes)


Column = Any
"""A column of n rows: `Coded`, a list of str, or an int64[n], float64[n] or bool[n] array."""


class RowColumns(RowBatch):
    """A `RowBatch` of equally wide tuples as columns; `values` makes the rows when they are first asked for.

    Args:
        columns: at least one, all of the same length.
        stamps: int64[n] epoch milliseconds, or None where no timestamps were assigned.
        key_column: the column which holds what the key selector of the stream gives; None: not known.
    """

    __slots__ = ("_rows", "_times", "columns", "key_column", "stamps")

    def __init__(
        self, columns: Sequence[Column], stamps: NDArray[np.int64] | None = None, key_column: int | None = None
    ) -> None:
        self.columns = tuple(columns)
        self.stamps = stamps
        self.key_column = key_column
        self._rows: list[Any] | None = None
        self._times: list[int] | None = None

    def __len__(self) -> int:
        return len(self.columns[0])

    @property
    def values(self) -> list[Any]:  # type: ignore[override]
        """Return the rows as tuples; the same list every time."""
        if self._rows is None:
            self._rows = list(zip(*map(objects, self.columns), strict=True))
        return self._rows

    @property
    def timestamps(self) -> list[int] | None:  # type: ignore[override]
        """Return the timestamps as Python integers; the same list every time."""
        if self._times is None and self.stamps is not None:
            self._times = self.stamps.tolist()
        return self._times

    def slice(self, start: int, stop: int) -> RowColumns:
        """Return rows [start, stop) as a view on the same columns."""
        return self._with(lambda column: column[start:stop])

    def take(self, rows: NDArray[np.integer[Any]]) -> RowColumns:
        """Return the rows with these numbers, copied."""
        chosen: list[int] = []

        def pick(column: Any) -> Any:
            if not isinstance(column, list):
                return column[rows]
            if not chosen:
                chosen.extend(rows.tolist())
            return [column[row] for row in chosen]

        return self._with(pick)

    def unkeyed(self) -> RowColumns:
        """Return the same rows, on their way into a stream with another key or none."""
        return self if self.key_column is None else RowColumns(self.columns, self.stamps)

    def is_like(self, other: object) -> bool:
        """Return whether `concatenated` can put the two behind each other."""
        return (
            isinstance(other, RowColumns)
            and self.key_column == other.key_column
            and (self.stamps is None) == (other.stamps is None)
            and len(self.columns) == len(other.columns)
            and all(map(_alike, self.columns, other.columns))
        )

    def _with(self, choose: Callable[[Any], Any]) -> RowColumns:
        columns = [
            Coded(column.table, choose(column.codes)) if isinstance(column, Coded) else choose(column)
            for column in self.columns
        ]
        return RowColumns(columns, None if self.stamps is None else choose(self.stamps), self.key_column)


@dataclass(frozen=True, slots=True)
class Fields:
    """Rows turned by 90 degrees: of each field all values, and the type of the first."""

    values: list[tuple[Any, ...]]
    kinds: list[type]


def fields_of(rows: list[Any]) -> Fields | None:
    """Return the fields of tuples of one width, if `RowColumns` can hold the first; None for others and for no rows."""
    if not rows or type(rows[0]) is not tuple:
        return None
    kinds = list(map(type, rows[0]))
    if not kinds or not _PLAIN.issuperset(kinds) or not are_all(rows, tuple):
        return None
    try:
        return Fields(list(zip(*rows, strict=True)), kinds)
    except ValueError:  # not all of one width
        return None


def column_of(field: tuple[Any, ...], kind: type) -> Column | None:
    """Return a field's values as a column, strings as a list.

    None when they are not all of the type `kind`, subclasses left out, or a whole number is beyond 64 bits.
    """
    import numpy as np

    if kind is int and (small := _small_numbers(field)) is not None:
        return small
    if not are_all(field, kind):
        return None
    if kind is str:
        return list(field)
    try:
        return np.fromiter(field, _DTYPES[kind], len(field))
    except OverflowError:
        return None


def are_all(values: Sequence[Any], kind: type) -> bool:
    """Return whether all values are of this very type."""
    return list(map(type, values)).count(kind) == len(values)


def _small_numbers(field: tuple[Any, ...]) -> NDArray[np.int64] | None:
    """Return int64[n] when all values are whole numbers of 32 bits and of the type int itself; None otherwise.

    marshal writes such a number as an `i` and four bytes, and no other value begins with an `i`: where every fifth
    byte is one, all are such numbers. This is the fastest look at the types, and gives the numbers as well.
    """
    import numpy as np

    try:
        data = marshal.dumps(field, _MARSHAL_VERSION)
    except ValueError:  # a type that marshal does not know
        return None
    if len(data) != 5 * len(field) + 5 or data[5::5].count(b"i") != len(field):
        return None
    return np.frombuffer(data, [("", "S1"), ("n", "<i4")], len(field), 5)["n"].astype(np.int64)


def objects(column: Column) -> list[Any]:
    """Return a column's values as Python objects of the types they had in the rows."""
    if isinstance(column, Coded):
        return list(map(column.table.__getitem__, column.codes.tolist()))
    return column if isinstance(column, list) else column.tolist()


def in_use(column: Coded) -> tuple[list[str], NDArray[np.uint16]]:
    """Return only the strings that occur in a column, and each row's place among them."""
    import numpy as np

    table, codes = column.table, column.codes
    if len(table) > _SPARSE * len(codes):
        used_codes, back = np.unique(codes, return_inverse=True)
        return list(map(table.__getitem__, used_codes.tolist())), back.astype(np.uint16)
    present = np.flatnonzero(np.bincount(codes, minlength=len(table)))
    if len(present) == len(table):
        return table, codes
    place_of = np.empty(len(table), np.uint16)
    place_of[present] = np.arange(len(present), dtype=np.uint16)
    return list(map(table.__getitem__, present.tolist())), place_of[codes]


def concatenated(parts: list[RowColumns]) -> RowColumns:
    """Concatenate parts of which each `is_like` the first."""
    import numpy as np

    first = parts[0]
    if len(parts) == 1:
        return first
    columns = [_joined(list(pieces)) for pieces in zip(*(part.columns for part in parts), strict=True)]
    stamps = None if first.stamps is None else np.concatenate([part.stamps for part in parts])
    return RowColumns(columns, stamps, first.key_column)


def stamps_of(timestamps: list[int]) -> NDArray[np.int64]:
    """Return timestamps as int64[n].

    Raises:
        TypeError, OverflowError: one is no int of 64 bits.
    """
    import numpy as np

    return np.frombuffer(array("q", timestamps), np.int64)


_DTYPES = {int: "i8", float: "f8", bool: "?"}
_PLAIN = {str, *_DTYPES}
_MARSHAL_VERSION = 2
"""Without references to earlier objects."""


def _alike(column: Column, other: Column) -> bool:
    if isinstance(column, Coded):
        return isinstance(other, Coded) and column.table is other.table
    if isinstance(column, list) or isinstance(other, (list, Coded)):
        return isinstance(column, list) and isinstance(other, list)
    return bool(column.dtype == other.dtype)


def _joined(pieces: list[Column]) -> Column:
    import numpy as np

    first = pieces[0]
    if isinstance(first, Coded):
        return Coded(first.table, np.concatenate([piece.codes for piece in pieces]))
    if isinstance(first, list):
        return [text for piece in pieces for text in piece]
    return np.concatenate(pieces)
