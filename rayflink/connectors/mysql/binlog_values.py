"""Values in rows of the binary log, as columns of Arrow.

Source: MySQL Internals Manual, "Date and Time Data Type Representation", and `decimal2bin` of the server.
"""

from __future__ import annotations

import decimal
import json
from typing import TYPE_CHECKING

from .binlog_events import LogColumn
from .binlog_rows import BinlogRows, ValueLayout
from .mysql_session import MySqlError
from .mysql_values import BYTES, DATES, STRINGS, WHOLE, MySqlColumn, converted

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from numpy.typing import NDArray

_DIGITS = 9
_BYTES_OF_DIGITS = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_CODES = {
    "tinyint": {1}, "smallint": {2}, "mediumint": {9}, "int": {3}, "bigint": {8}, "float": {4}, "double": {5},
    "decimal": {246}, "date": {10}, "time": {19}, "datetime": {18}, "timestamp": {17}, "year": {13}, "bit": {16},
    "char": {254}, "varchar": {15, 253}, "binary": {254}, "varbinary": {15, 253}, "enum": {247}, "set": {248},
    "json": {245}, **dict.fromkeys(("tinytext", "text", "mediumtext", "longtext"), {252}),
    **dict.fromkeys(("tinyblob", "blob", "mediumblob", "longblob"), {252}),
}  # fmt: skip
"""Name of a type -> its numbers in the log; of geometries it is 255."""
_FIXED = {1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 7: 4, 8: 8, 9: 3, 10: 3, 11: 3, 12: 8, 13: 1}


def is_of_kind(code: int, kind: str) -> bool:
    """Return whether a column of the log with a number of a type can be of a type."""
    return code in _CODES.get(kind, {255})


def layout_of(column: LogColumn) -> ValueLayout | None:
    """Return how many bytes the values of a column of the log have; None: its type is unknown.

    Args:
        column: as python-mysql-replication describes it.
    """
    code = column.type
    if code in _FIXED:
        return ValueLayout(_FIXED[code])
    if code == 246:
        whole, fraction = column.precision - column.decimals, column.decimals
        parts = whole // _DIGITS * 4 + _BYTES_OF_DIGITS[whole % _DIGITS]
        return ValueLayout(parts + fraction // _DIGITS * 4 + _BYTES_OF_DIGITS[fraction % _DIGITS])
    if code in (17, 18, 19):
        return ValueLayout({17: 4, 18: 5, 19: 3}[code] + (column.fsp + 1) // 2)
    if code in (247, 248):
        return ValueLayout(column.size)
    if code == 16:
        return ValueLayout(column.bytes)
    if code in (15, 253, 254):
        return ValueLayout(2 if column.max_length > 255 else 1, has_length=True)
    if code in (245, 252, 255):
        return ValueLayout(column.length_size, has_length=True)
    return None


class LoggedColumn:
    """A column of the log whose values are decoded.

    Args:
        column: as the server describes it.
        logged: as python-mysql-replication describes it.
        place: its number in the log.
    """

    def __init__(self, column: MySqlColumn, logged: LogColumn, place: int) -> None:
        self.column, self.place = column, place
        self._code = logged.type
        self._fsp = getattr(logged, "fsp", 0)
        self._size = getattr(layout_of(logged), "size", 0)
        self._precision, self._scale = getattr(logged, "precision", 0), getattr(logged, "decimals", 0)
        names = logged.enum_values[1:] if logged.enum_values else logged.set_values
        self._members = tuple(names) if names else column.members
        self.zeros = 0
        """Dates such as `0000-00-00` that became NULL."""

    def values(self, rows: BinlogRows, chosen: NDArray[np.int64]) -> pyarrow.Array:
        """Return the values of some rows in the column's Arrow type.

        Raises:
            MySqlError: a value has no counterpart in the type.
        """
        kind = self.column.kind
        if kind in WHOLE or kind in ("year", "bit"):
            natural = self._whole(rows, chosen)
        elif kind in ("float", "double"):
            natural = self._floating(rows, chosen)
        elif kind == "decimal":
            natural = self._decimals(rows, chosen)
        elif kind in DATES:
            natural = self._dates(rows, chosen)
        elif kind == "time":
            natural = self._times(rows, chosen)
        else:
            natural = self._strings(rows, chosen)
        return converted(self.column, natural)

    def _number(self, rows: BinlogRows, chosen: NDArray[np.int64], size: int, offset: int = 0) -> NDArray[np.int64]:
        """Return whole numbers whose first byte is the largest."""
        import numpy

        start = rows.starts[self.place, chosen] + offset
        numbers = numpy.zeros(chosen.size, numpy.int64)
        for byte in range(size):
            numbers = numbers << 8 | rows.data[start + byte]
        return numbers

    def _mask(self, rows: BinlogRows, chosen: NDArray[np.int64]) -> NDArray[np.bool_]:
        mask: NDArray[np.bool_] = rows.is_null[self.place, chosen]
        return mask

    def _raw(self, rows: BinlogRows, chosen: NDArray[np.int64], size: int) -> NDArray[np.uint8]:
        """Return the bytes of values that all have one size, uint8[n, size]."""
        import numpy

        raw: NDArray[np.uint8] = rows.data[rows.starts[self.place, chosen][:, None] + numpy.arange(size)]
        return raw

    def _whole(self, rows: BinlogRows, chosen: NDArray[np.int64]) -> pyarrow.Array:
        import numpy
        import pyarrow

        mask, kind = self._mask(rows, chosen), self.column.kind
        if kind == "bit":
            return pyarrow.array(self._number(rows, chosen, self._size).view(numpy.uint64), mask=mask)
        raw = self._raw(rows, chosen, self._size)
        full = numpy.zeros((chosen.size, 8), numpy.uint8)
        full[:, : self._size] = raw
        if not self.column.is_unsigned and kind != "year":
            full[:, self._size :] = numpy.where(raw[:, -1:] & 0x80, 0xFF, 0)
            return pyarrow.array(full.view(numpy.int64)[:, 0], mask=mask)
        numbers = full.view(numpy.uint64)[:, 0]
        if kind == "year":
            numbers = numpy.where(numbers == 0, numbers, numbers + numpy.uint64(1900))
        return pyarrow.array(numbers, mask=mask)

    def _floating(self, rows: BinlogRows, chosen: NDArray[np.int64]) -> pyarrow.Array:
        import numpy
        import pyarrow

        raw = numpy.ascontiguousarray(self._raw(rows, chosen, self._size))
        numbers = raw.view(numpy.float32 if self._size == 4 else numpy.float64)[:, 0].astype(numpy.float64)
        return pyarrow.array(numbers, mask=self._mask(rows, chosen), from_pandas=False)

    def _decimals(self, rows: BinlogRows, chosen: NDArray[np.int64]) -> pyarrow.Array:
        """Return decimals: groups of 9 digits in 4 bytes each, inverted if negative, and the sign in the first bit."""
        import numpy
        import pyarrow

        raw, mask = self._raw(rows, chosen, self._size), self._mask(rows, chosen)
        is_negative = raw[:, 0] < 0x80
        raw = numpy.where(is_negative[:, None], ~raw, raw)
        raw[:, 0] ^= 0x80
        whole, fraction = self._precision - self._scale, self._scale
        digits = [whole % _DIGITS, *[_DIGITS] * (whole // _DIGITS), *[_DIGITS] * (fraction // _DIGITS),
                  fraction % _DIGITS]  # fmt: skip
        is_small = self._precision <= 18
        total: NDArray[np.int64] = numpy.zeros(chosen.size, numpy.int64 if is_small else object)
        byte = 0
        for count in digits:
            group = numpy.zeros(chosen.size, numpy.int64)
            for _ in range(_BYTES_OF_DIGITS[count]):
                group = group << 8 | raw[:, byte]
                byte += 1
            total = total * 10**count + (group if is_small else group.astype(object))
        total = numpy.where(is_negative, -total, total)
        if is_small and not self.column.is_shown:
            parts = numpy.stack([total, total >> 63], axis=1)
            plain = pyarrow.array(mask)
            buffers = [None, pyarrow.py_buffer(numpy.ascontiguousarray(parts))]
            kind = pyarrow.decimal128(self._precision, self._scale)
            whole_values = pyarrow.Array.from_buffers(kind, chosen.size, buffers)
            return pyarrow.compute.if_else(plain, pyarrow.scalar(None, whole_values.type), whole_values)
        values = [
            None if null else decimal.Decimal((number < 0, tuple(map(int, str(abs(number)))), -self._scale))
            for number, null in zip(total.tolist(), mask.tolist(), strict=True)
        ]
        if self.column.is_shown:
            return pyarrow.array([None if value is None else f"{value:f}" for value in values], pyarrow.string())
        make = pyarrow.decimal128 if self._precision <= 38 else pyarrow.decimal256
        return pyarrow.array(values, make(self._precision, self._scale))

    def _fraction(self, rows: BinlogRows, chosen: NDArray[np.int64], offset: int) -> NDArray[np.int64]:
        """Return the microseconds of times."""
        size = (self._fsp + 1) // 2
        micros: NDArray[np.int64] = self._number(rows, chosen, size, offset) * 10 ** (6 - 2 * size)
        return micros

    def _dates(self, rows: BinlogRows, chosen: NDArray[np.int64]) -> pyarrow.Array:
        import numpy
        import pyarrow

        mask, kind = self._mask(rows, chosen), self.column.kind
        if kind == "timestamp":
            seconds = self._number(rows, chosen, 4)
            moments = seconds * 1_000_000 + self._fraction(rows, chosen, 4)
            is_zero = moments == 0
            if self.column.is_shown:
                return self._shown_moments(moments.astype("datetime64[us]"), mask, is_zero)
            self.zeros += int((is_zero & ~mask).sum())
            return pyarrow.array(moments.astype("datetime64[us]"), pyarrow.timestamp("us"), mask=mask | is_zero)
        if kind == "date":
            number = self._number(rows, chosen, 3)
            number = (number & 0xFF) << 16 | number & 0xFF00 | number >> 16
            years, months, days = number >> 9, number >> 5 & 15, number & 31
            clock = micros = numpy.zeros(chosen.size, numpy.int64)
        else:
            number = self._number(rows, chosen, 5) - (1 << 39)
            year_month, days = number >> 22, number >> 17 & 31
            years, months = year_month // 13, year_month % 13
            clock = (number >> 12 & 31) * 3600 + (number >> 6 & 63) * 60 + (number & 63)
            micros = self._fraction(rows, chosen, 5)
        if self.column.is_shown:
            return self._shown_dates(years, months, days, clock, micros, mask)
        is_zero = (years == 0) | (months == 0) | (days == 0)
        self.zeros += int((is_zero & ~mask).sum())
        month = ((years - 1970) * 12 + months - 1).astype("datetime64[M]")
        day = month.astype("datetime64[D]") + (days - 1).astype("timedelta64[D]")
        if kind == "date":
            return pyarrow.array(day, pyarrow.date32(), mask=mask | is_zero)
        moments = day.astype("datetime64[us]") + (clock * 1_000_000 + micros).astype("timedelta64[us]")
        return pyarrow.array(moments, pyarrow.timestamp("us"), mask=mask | is_zero)

    def _shown_moments(
        self, moments: NDArray[np.datetime64], mask: NDArray[np.bool_], is_zero: NDArray[np.bool_]
    ) -> pyarrow.Array:
        import pyarrow

        strings = [
            None if null else self._with_fraction("0000-00-00 00:00:00" if zero else f"{text[:10]} {text[11:19]}",
                                                  0 if zero else int(text[20:26]))
            for text, null, zero in zip(moments.astype(str).tolist(), mask.tolist(), is_zero.tolist(), strict=True)
        ]  # fmt: skip
        return pyarrow.array(strings, pyarrow.string())

    def _shown_dates(
        self, years: NDArray[np.int64], months: NDArray[np.int64], days: NDArray[np.int64], clock: NDArray[np.int64],
        micros: NDArray[np.int64], mask: NDArray[np.bool_],
    ) -> pyarrow.Array:  # fmt: skip
        import pyarrow

        parts = zip(*(part.tolist() for part in (years, months, days, clock, micros, mask)), strict=True)
        has_clock = self.column.kind != "date"
        strings = []
        for year, month, day, second, micro, null in parts:
            text = f"{year:04d}-{month:02d}-{day:02d}"
            if has_clock:
                text = f"{text} {second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
            strings.append(None if null else self._with_fraction(text, micro))
        return pyarrow.array(strings, pyarrow.string())

    def _with_fraction(self, text: str, micros: int) -> str:
        return f"{text}.{micros:06d}"[: len(text) + 1 + self._fsp] if self._fsp else text

    def _times(self, rows: BinlogRows, chosen: NDArray[np.int64]) -> pyarrow.Array:
        import numpy
        import pyarrow

        size, mask = (self._fsp + 1) // 2, self._mask(rows, chosen)
        number = self._number(rows, chosen, 3 + size) - (0x800000 << 8 * size)
        magnitude = numpy.abs(number)
        clock, micros = magnitude >> 8 * size, (magnitude & (1 << 8 * size) - 1) * 10 ** (6 - 2 * size)
        hours, minutes, seconds = clock >> 12 & 0x3FF, clock >> 6 & 63, clock & 63
        if not self.column.is_shown:
            total = numpy.sign(number) * ((hours * 3600 + minutes * 60 + seconds) * 1_000_000 + micros)
            return pyarrow.array(total, mask=mask)
        strings = [
            None if null else self._with_fraction(f"{'-' * negative}{h:02d}:{m:02d}:{s:02d}", micro)
            for negative, h, m, s, micro, null in zip(
                *(part.tolist() for part in (number < 0, hours, minutes, seconds, micros, mask)), strict=True
            )
        ]
        return pyarrow.array(strings, pyarrow.string())

    def _strings(self, rows: BinlogRows, chosen: NDArray[np.int64]) -> pyarrow.Array:
        import pyarrow

        kind, column = self.column.kind, self.column
        if kind in ("enum", "set"):
            return self._chosen_members(rows, chosen)
        values = self._slices(rows, chosen)
        if kind in BYTES:
            if kind == "binary":  # zeros at the end are not in the log
                full = [None if value is None else value.ljust(column.length, b"\0") for value in values.to_pylist()]
                values = pyarrow.array(full, pyarrow.binary())
            return values
        assert kind in STRINGS, kind
        if kind == "json":
            return pyarrow.array([_json_of(value) for value in values.to_pylist()], pyarrow.string())
        if column.encoding in ("utf-8", "ascii"):
            return values.cast(pyarrow.string())
        return pyarrow.array([_text_of(value, column) for value in values.to_pylist()], pyarrow.string())

    def _slices(self, rows: BinlogRows, chosen: NDArray[np.int64]) -> pyarrow.Array:
        """Return the bytes of values of different lengths, binary[n]."""
        import numpy
        import pyarrow

        count = len(rows)
        edges = numpy.empty(2 * count, numpy.int32)
        edges[0::2], edges[1::2] = rows.starts[self.place], rows.stops[self.place]
        buffers = [None, pyarrow.py_buffer(edges), pyarrow.py_buffer(rows.data)]
        values_and_gaps = pyarrow.Array.from_buffers(pyarrow.binary(), max(2 * count - 1, 0), buffers)
        return values_and_gaps.take(pyarrow.array(2 * chosen, mask=self._mask(rows, chosen)))

    def _chosen_members(self, rows: BinlogRows, chosen: NDArray[np.int64]) -> pyarrow.Array:
        import numpy
        import pyarrow

        start, numbers = rows.starts[self.place, chosen], numpy.zeros(chosen.size, numpy.uint64)
        for byte in range(self._size):
            numbers |= rows.data[start + byte].astype(numpy.uint64) << numpy.uint64(8 * byte)
        mask = self._mask(rows, chosen)
        numbers[mask] = 0
        distinct, places = numpy.unique(numbers, return_inverse=True)
        names = pyarrow.array([self._name_of(int(number)) for number in distinct], pyarrow.string())
        return names.take(pyarrow.array(places, mask=mask))

    def _name_of(self, number: int) -> str:
        if self.column.kind == "enum":
            if number > len(self._members):
                raise self._unknown_member()
            return self._members[number - 1] if number else ""
        if number >> len(self._members):
            raise self._unknown_member()
        return ",".join(name for place, name in enumerate(self._members) if number >> place & 1)

    def _unknown_member(self) -> MySqlError:
        problem = f"column {self.column.name!r} of type {self.column.shown_type} has a value that was added later"
        return MySqlError(problem, "set binlog_row_metadata = FULL on the server, or start the job anew")


def _text_of(value: bytes | None, column: MySqlColumn) -> str | None:
    if value is None:
        return None
    try:
        return value.decode(column.encoding)
    except UnicodeDecodeError:
        if column.charset == "latin1":
            return value.decode("latin-1")  # MySQL's latin1 has a character for each byte
        raise


def _json_of(value: bytes | None) -> str | None:
    """Return a document of MySQL's binary form as the server shows it."""
    if value is None:
        return None
    if not value:
        return "null"
    from pymysqlreplication.json_binary import parse_json

    return json.dumps(_plain(parse_json(value[0], value[1:])), ensure_ascii=False, default=str)


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, list) else value


__all__ = ["LoggedColumn", "is_of_kind", "layout_of"]
