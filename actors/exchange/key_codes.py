"""Turns rows on their way into a keyed stream into columns: string keys become codes of a table, channels an array.

Worth it where keys recur and fields are plain (`RowColumns`); other rows stay rows, and are looked at again only after
a pause that doubles up to 63 batches.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from operator import itemgetter
from sys import getsizeof
from typing import TYPE_CHECKING, Any

from rayflink.common.records.batches import RowBatch
from rayflink.common.records.row_columns import (
    LARGEST_TABLE,
    Coded,
    Fields,
    RowColumns,
    are_all,
    column_of,
    fields_of,
    stamps_of,
)

from .key_channels import LARGEST_REMEMBERED, KeyChannels

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEAST_ROWS = 256
"""Batches of fewer records are not worth the arrays."""
MOST_ROWS = 1 << 14
"""A larger batch is divided first: turning it takes an iterator a row, all at once."""
_LONGEST_PAUSE = 63


class KeyedColumns:
    """Turns batches into columns with the channel of each row.

    Args:
        key_of: the user's key selector.
        channels_of: says the channel of a key.
    """

    def __init__(self, key_of: Callable[[Any], Any], channels_of: KeyChannels) -> None:
        self._channels_of = channels_of
        self._codes = KeyCodes(channels_of)
        self._position = _selected_field(key_of)
        self._pause = self._skips = 0

    def fields(self, batch: RowBatch) -> Fields | None:
        """Return the fields of the batch, or None where it should stay as it is."""
        if len(batch) < LEAST_ROWS:
            return None
        if self._skips:
            self._skips -= 1
            return None
        fields = fields_of(batch.values)
        if fields is None:
            self._back_off()
        return fields

    def keys(self, fields: Fields | None) -> Sequence[Any] | None:
        """Return the keys where the selector picks a field; None if it has to be called."""
        position = self._position
        if fields is None or position is None or not position < len(fields.values):
            return None
        return fields.values[position]

    def partition(
        self, fields: Fields, keys: Sequence[Any], timestamps: list[int] | None
    ) -> tuple[RowColumns, NDArray[np.uint16]] | None:
        """Return the rows as columns and the channel of each; None where that is impossible or not worth it."""
        result = self._partition_columns(fields, keys, timestamps)
        if result is None:
            self._back_off()
        else:
            self._pause = 0
        return result

    def _back_off(self) -> None:
        self._pause = self._skips = min(2 * self._pause + 1, _LONGEST_PAUSE)

    def _partition_columns(
        self, fields: Fields, keys: Sequence[Any], timestamps: list[int] | None
    ) -> tuple[RowColumns, NDArray[np.uint16]] | None:
        position = _position_of(fields, keys)
        if position is None:
            return None
        columns: list[Any] = []
        channels: NDArray[np.uint16] | None = None
        for index, (field, kind) in enumerate(zip(fields.values, fields.kinds, strict=True)):
            column: Any
            if index == position and kind is str:
                column = self._codes.encode(field)
                if column is None:
                    return None
                channels = self._codes.channels[column.codes]
            else:
                column = column_of(field, kind)
                if column is None:
                    return None
                if index == position:
                    channels = self._channels_of.numbers(column)
            columns.append(column)
        assert channels is not None, "the position is that of a column"
        try:
            stamps = None if timestamps is None else stamps_of(timestamps)
        except (TypeError, OverflowError):  # reported where rows are written
            return None
        return RowColumns(columns, stamps, position), channels


class KeyCodes:
    """Assigns codes to string keys as they come; starts over when the table is full.

    Args:
        channels_of: says the channel of a key.
        entries: most keys in the table, in [1, 65536].
    """

    def __init__(self, channels_of: KeyChannels, entries: int = LARGEST_TABLE) -> None:
        self._channels_of, self._entries = channels_of, entries
        self._reset()

    def _reset(self) -> None:
        import numpy as np

        self._codes: dict[str, bytes] = {}
        self._table: list[str] = []  # only ever appended to: what was coded with it stays true
        self.channels: NDArray[np.uint16] = np.empty(0, np.uint16)
        """The channel of each key in the table."""

    def encode(self, keys: Sequence[str]) -> Coded | None:
        """Encode the keys as a column; None when most are new, one is longer than 1 KB or no str itself."""
        import numpy as np

        if not are_all(keys, str):
            return None
        look_up = itemgetter(*keys)  # of at least two keys; a little faster than map
        try:
            codes = b"".join(look_up(self._codes))
        except KeyError:
            if not self._add_keys(keys):
                return None
            codes = b"".join(look_up(self._codes))
        return Coded(self._table, np.frombuffer(codes, np.uint16))

    def _add_keys(self, keys: Sequence[str]) -> bool:
        import numpy as np

        fresh = list(dict.fromkeys([key for key in keys if key not in self._codes]))
        if 2 * len(fresh) > len(keys) or len(fresh) > self._entries:
            return False
        if len(self._table) + len(fresh) > self._entries:
            self._reset()
            fresh = list(dict.fromkeys(keys))
        if len(fresh) > self._entries or max(map(getsizeof, fresh)) > LARGEST_REMEMBERED:
            return False
        channels = self._channels_of.strings(fresh)
        start = len(self._table)
        numbers = range(start, start + len(fresh))
        self._codes.update(zip(fresh, [number.to_bytes(2, sys.byteorder) for number in numbers], strict=True))
        self._table += fresh
        self.channels = np.concatenate((self.channels, channels))
        return True


def _selected_field(key_of: Callable[[Any], Any]) -> int | None:
    """Return the position of the field that a key selector picks, if it is an `operator.itemgetter` of one position."""
    if type(key_of) is not itemgetter:
        return None
    positions: Any = key_of.__reduce__()[1]
    return positions[0] if len(positions) == 1 and type(positions[0]) is int and positions[0] >= 0 else None


def _position_of(fields: Fields, keys: Sequence[Any]) -> int | None:
    """Return which field holds the keys, if they are strings or integers."""
    for position, (field, kind) in enumerate(zip(fields.values, fields.kinds, strict=True)):
        if kind is not str and kind is not int:
            continue
        if keys is field:
            return position
        # of one type first: a key that only equals the field (an Enum with text values, say) is not the field
        if type(keys[0]) is kind and keys[0] == field[0] and are_all(keys, kind) and keys == list(field):
            return position
    return None
