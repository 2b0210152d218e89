"""JSON values one by one as values of SQL's types, by Flink's rules; for what Arrow does not read."""

from __future__ import annotations

import base64
import datetime
import json
import re
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any, TypeAlias

import numpy

from rayflink.common.errors import shorten
from rayflink.common.records.json_strings import without_surrogates
from rayflink.common.records.print_form import floating_text

from ..types import DataType, IntType, Root

Convert: TypeAlias = Callable[[Any], Any]
"""A value as `json` reads it -> one that pyarrow takes for the type: times as whole numbers of their unit."""

_BITS = {Root.TINYINT: 7, Root.SMALLINT: 15, Root.INT: 31, Root.BIGINT: 63}
_WIDE = Context(prec=100)
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_STEPS = {"ms": 1_000_000, "us": 1000, "ns": 1}
_TIME = r"(\d\d):(\d\d):(\d\d)(?:\.(\d{0,9}))?"
_DATE = r"(\d{4})-(\d\d)-(\d\d)"


class BadValue(ValueError):
    """A value is not of the type of its field."""


class Number(str):
    """A number with a point or exponent, as it was written."""

    __slots__ = ()


class JsonValues:
    """Makes values of lines.

    Args:
        iso: times are written with a T instead of a blank.
        fails_on_missing: an object without a field is an error, in place of NULL.
        skips: a value that is not of its type becomes NULL; `skipped` counts them.
    """

    def __init__(self, iso: bool = False, fails_on_missing: bool = False, skips: bool = False) -> None:
        self._between = "T" if iso else " "
        self._fails_on_missing, self._skips = fails_on_missing, skips
        self.skipped = 0

    def parsed(self, line: str) -> list[Any]:
        """Return the objects of a line: one, or those of an array.

        Raises:
            ValueError: there is none.
        """
        value = json.loads(line, parse_float=Number, parse_constant=_no_constant)
        rows = value if isinstance(value, list) else [value]
        for row in rows:
            if not isinstance(row, dict):
                raise BadValue(f"{shorten(row, 80)} is found, an object is wanted")
        return rows

    def parsed_quickly(self, kinds: Sequence[DataType]) -> Callable[[str], list[Any]]:
        """Return a faster `parsed` for values of these types alone; others may lose how they were written."""
        exact = any(is_exact(kind) for kind in kinds)
        decode = json.JSONDecoder(parse_float=Number if exact else None, parse_constant=_no_constant).decode

        def rows(line: str) -> list[Any]:
            value = decode(line)
            return value if type(value) is list else [value]

        return rows

    def row(self, fields: list[tuple[str, Convert]], value: dict[str, Any]) -> list[Any]:
        """Return the values of an object's fields.

        Raises:
            BadValue: one is missing, or not of its type.
        """
        values: list[Any] = []
        for name, convert in fields:
            inner = value.get(name)
            if inner is None:
                if self._fails_on_missing and name not in value:
                    raise BadValue(f"field {name!r} is missing, which 'json.fail-on-missing-field' forbids")
                values.append(None)
                continue
            try:
                values.append(convert(inner))
            except (ValueError, TypeError, OverflowError, InvalidOperation) as error:
                if not self._skips:
                    raise BadValue(f"field {name!r}: {error}") from error
                self.skipped += 1
                values.append(None)
        return values

    def converter(self, kind: DataType) -> Convert:
        """Return the conversion to values of a type."""
        root = kind.root
        if root in _BITS:
            return _whole(_BITS[root], kind)
        if root in (Root.FLOAT, Root.DOUBLE):
            return _floating
        if root in (Root.DATE, Root.TIME, Root.TIMESTAMP, Root.TIMESTAMP_LTZ):
            return self._timed(kind)
        if root is Root.DECIMAL:
            return _decimal(kind)
        if root is Root.ARRAY:
            return _array(self._nullable(kind.items[0]), kind)
        if root in (Root.MAP, Root.MULTISET):
            return self._map(kind)
        if root is Root.ROW:
            return self._row(kind)
        plain: dict[Root, Convert] = {
            Root.BOOLEAN: _truth, Root.CHAR: _text, Root.VARCHAR: _text, Root.BINARY: _bytes, Root.VARBINARY: _bytes,
            Root.INTERVAL_YEAR_MONTH: _whole(31, kind), Root.INTERVAL_DAY_TIME: _whole(63, kind),
            Root.NULL: lambda value: None,
        }  # fmt: skip
        return plain[root]

    def _nullable(self, kind: DataType) -> Convert:
        convert = self.converter(kind)
        return lambda value: None if value is None else convert(value)

    def _row(self, kind: DataType) -> Convert:
        fields = [(field.name, self.converter(field.type)) for field in kind.fields]
        names = [field.name for field in kind.fields]

        def row(value: Any) -> dict[str, Any]:
            if not isinstance(value, dict):
                raise _unfit(value, kind)
            return dict(zip(names, self.row(fields, value), strict=True))

        return row

    def _map(self, kind: DataType) -> Convert:
        whole = IntType()
        key = self.converter(kind.items[0])
        convert = self._nullable(kind.items[1] if len(kind.items) > 1 else whole)

        def entries(value: Any) -> list[tuple[Any, Any]]:
            if not isinstance(value, dict):
                raise _unfit(value, kind)
            return [(key(name), convert(item)) for name, item in value.items()]

        return entries

    def _timed(self, kind: DataType) -> Convert:
        root = kind.root
        if root is Root.DATE:
            pattern = re.compile(_DATE)
        elif root is Root.TIME:
            pattern = re.compile(_TIME)
        else:
            pattern = re.compile(f"{_DATE}{self._between}{_TIME}{'Z' if root is Root.TIMESTAMP_LTZ else ''}")

        def moment(value: Any) -> int:
            match = pattern.fullmatch(value) if isinstance(value, str) else None
            if match is None:
                raise _unfit(value, kind)
            parts = list(match.groups())
            days = 0
            if root is not Root.TIME:
                days = datetime.date(*map(int, parts[:3])).toordinal() - _EPOCH
                if root is Root.DATE:
                    return days
                del parts[:3]
            hour, minute, second = map(int, parts[:3])
            time = datetime.time(hour, minute, second)
            seconds = days * 86_400 + time.hour * 3600 + time.minute * 60 + time.second
            fraction = int((parts[3] or "").ljust(9, "0"))
            cut = int(10 ** (9 - kind.precision))
            return (seconds * 1_000_000_000 + fraction // cut * cut) // _STEPS[kind.unit]

        return moment


def is_exact(kind: DataType) -> bool:
    """Return whether a number must be known as it was written."""
    inner = [*kind.items, *(field.type for field in kind.fields)]
    return kind.root is Root.DECIMAL or kind.is_text or any(map(is_exact, inner))


def _no_constant(name: str) -> Any:
    raise BadValue(f"{name} is no JSON")


def _unfit(value: Any, kind: DataType) -> BadValue:
    shown = json.dumps(value) if type(value) is str else shorten(_text(value), 80)
    return BadValue(f"{shorten(shown, 80)} is found, {kind} is wanted")


def _truth(value: Any) -> bool:
    return value if isinstance(value, bool) else _text(value).strip().lower() == "true"


def _whole(bits: int, kind: DataType) -> Convert:
    def whole(value: Any) -> int:
        if isinstance(value, (bool, dict, list)):
            raise _unfit(value, kind)
        try:
            if isinstance(value, Number):
                number = int(float(value))
            else:
                number = int(value.strip()) if isinstance(value, str) else int(value)
        except ValueError as error:
            raise _unfit(value, kind) from error
        if type(value) is str and not re.fullmatch(r"\s*[+-]?[0-9]+\s*", value):
            raise _unfit(value, kind)
        if not -(1 << bits) <= number < 1 << bits:
            raise BadValue(f"{number} is found, which {kind} does not hold")
        return number

    return whole


def _floating(value: Any) -> float:
    if isinstance(value, (bool, dict, list)):
        raise BadValue(f"{shorten(value, 80)} is found, a number is wanted")
    return float(value)


def _decimal(kind: DataType) -> Convert:
    quantum, limit = Decimal(1).scaleb(-kind.scale), Decimal(10) ** (kind.precision - kind.scale)

    def number(value: Any) -> Decimal | None:
        if isinstance(value, (bool, dict, list)):
            raise _unfit(value, kind)
        try:
            decimal = Decimal(value.strip() if isinstance(value, str) else value)
        except InvalidOperation as error:
            raise _unfit(value, kind) from error
        if not decimal.is_finite():
            raise _unfit(value, kind)
        if abs(decimal) >= limit * 10:
            return None  # as in Flink: what does not fit is NULL
        rounded = decimal.quantize(quantum, ROUND_HALF_UP, _WIDE)
        return rounded if abs(rounded) < limit else None

    return number


def _text(value: Any) -> str:
    if isinstance(value, str):
        return without_surrogates(value if type(value) is str else str(value))
    if isinstance(value, (dict, list)):
        return without_surrogates(_written(value))
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def _written(value: Any) -> str:
    """JSON of a value, its numbers as Java writes them."""
    if isinstance(value, dict):
        pairs = [f"{json.dumps(name, ensure_ascii=False)}:{_written(item)}" for name, item in value.items()]
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    if value is None:
        return "null"
    if isinstance(value, Number):
        return floating_text(numpy.float64(value))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else _text(value)


def _bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise BadValue(f"{shorten(_text(value), 80)} is found, bytes as base64 are wanted")
    try:
        return base64.b64decode(value, validate=True)
    except ValueError as error:
        raise BadValue(f"{shorten(value, 80)!r} is found, bytes as base64 are wanted") from error


def _array(convert: Convert, kind: DataType) -> Convert:
    def elements(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise _unfit(value, kind)
        return [convert(item) for item in value]

    return elements
