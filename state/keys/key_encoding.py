"""The canonical encoding of keys: equal keys give equal bytes, different keys different bytes.

``key_forms`` lists the types and the rule of equality. An encoded key is a tag byte and a body that ends itself, so
that anything may follow it in a longer RocksDB key:

| tag | key | body |
|---|---|---|
| 01 | None | |
| 02 | integral number in [-2**63, 2**63) | 8 bytes, big endian, plus 2**63: sorts by value |
| 03 | other float | 8 bytes IEEE 754, big endian |
| 04 | other int | varint size, two's complement, big endian |
| 05 | other Decimal | varint of minus the exponent, varint size, coefficient in two's complement |
| 06 | str | varint size, UTF-8 (lone surrogates kept) |
| 07 | bytes | varint size, the bytes |
| 08 | date | 4 bytes: proleptic ordinal |
| 09, 0a | time, naive and aware | 8 bytes: microseconds since midnight (aware: of UTC), plus 2**63 |
| 0b, 0c | datetime, naive and aware | 8 bytes: microseconds since 1970 (aware: in UTC), plus 2**63 |
| 0d | timedelta | 4 bytes days plus 2**31, 8 bytes microseconds of the day |
| 0e | UUID | 16 bytes |
| 0f | tuple | varint count, the items |
| 10 | Enum member | class name and member as str (Flag: number) |
| 11 | frozen dataclass | class name as str, 4 bytes schema, varint count, the compared fields |
| 12 | list | varint count, the items |

The encoding is version ``KEY_ENCODING_VERSION``; bytes of one version never change meaning.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag
from typing import Any
from uuid import UUID

from rayflink.user_types import UserKey

from ..binary import read_varint, take, write_varint
from ..classes.class_names import resolve_class
from ..classes.plain_classes import admits
from ..errors import InvalidKeyError, MalformedBytesError, UnresolvedClassError
from .key_forms import (
    FIELD_NAN,
    INT64_MIN,
    INT64_STOP,
    NAN,
    ObjectForm,
    describe,
    key_fields,
    number_form,
    plain_base,
    rebuild,
    unusual_form,
)
from .list_key import ListKey

__all__ = ["KEY_ENCODING_VERSION", "canonical_key", "decode_key", "encode_key", "key_end", "read_key", "write_key"]

KEY_ENCODING_VERSION = 1
"""Version of the key bytes and of the key hash; part of every snapshot with keyed state."""

_NONE, _INT, _FLOAT, _BIGINT, _DECIMAL, _STR, _BYTES, _DATE = range(1, 9)
_TIME, _TIME_UTC, _DATETIME, _DATETIME_UTC, _TIMEDELTA, _UUID, _TUPLE, _ENUM, _DATACLASS, _LIST = range(9, 19)

_TAGGED_LONG = struct.Struct(">BQ")
_TAGGED_SIZE = [bytes((_STR, size)) for size in range(0x80)]
_TAGGED_DOUBLE = struct.Struct(">Bd")
_TAGGED_DAYS = struct.Struct(">BIQ")
_BIAS = INT64_STOP
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1)
_DAY_US = 86_400_000_000
_FIRST_US = (datetime.min - _EPOCH) // _MICROSECOND
_LAST_US = (datetime.max - _EPOCH) // _MICROSECOND


def encode_key(key: UserKey) -> bytes:
    """Return the canonical bytes of a key.

    Raises: InvalidKeyError: the value, or a part of it, cannot be a key.

    >>> encode_key("user") == encode_key("user"), encode_key(1) == encode_key(True) == encode_key(1.0)
    (True, True)
    """
    cls = type(key)
    if cls is str:
        body: bytes = key.encode("utf-8", "surrogatepass")
        if len(body) < 0x80:
            return _TAGGED_SIZE[len(body)] + body
    elif cls is int and INT64_MIN <= key < INT64_STOP:
        return _TAGGED_LONG.pack(_INT, key + _BIAS)
    out = bytearray()
    write_key(out, key)
    return bytes(out)


def decode_key(data: bytes) -> Any:
    """Return a key equal to the one encoded: ``decode_key(encode_key(k)) == k``, except that NaN is never equal to
    itself.

    A number comes back as its standard form (True as 1, 1.0 as 1), a namedtuple as a tuple, an aware datetime in UTC.

    Raises:
        MalformedBytesError: the bytes are no encoded key, or more follows it.
        UnresolvedClassError: the class of an Enum or dataclass cannot be found.
    """
    key, end = read_key(data, 0)
    if end != len(data):
        raise MalformedBytesError("a key", f"{len(data) - end} bytes too many at {end}")
    return key


def canonical_key(key: UserKey) -> UserKey:
    """Return the object to use as dict key: the key itself wherever a dict distinguishes keys by the rule already.

    It differs for NaN (one shared object), numpy scalars (Python values), aware datetimes in a repeated or skipped
    hour (the instant in UTC), lists (a ``ListKey``), and whatever holds one of these.

    Raises: InvalidKeyError: the value, or a part of it, cannot be a key.

    >>> canonical_key("a"), canonical_key(float("nan")) is canonical_key(float("nan"))
    ('a', True)
    """
    cls = type(key)
    if cls in _SELF:
        return key
    if cls is float:
        return key if key == key else NAN
    if cls is tuple:
        return _canonical_parts(key)
    if cls is list or cls is ListKey:
        canonical = _canonical_parts(key)
        return key if canonical is key and cls is ListKey else ListKey(canonical)
    if cls is Decimal:
        number_form(key)
        return NAN if key.is_nan() else key
    if cls is datetime:
        return _canonical_datetime(key)
    if cls is time:
        time_us(key, key.utcoffset())
        return key
    form = unusual_form(key)
    if type(form) is ObjectForm:
        parts = _canonical_fields(form, cls)
        return key if parts is form.parts else rebuild(cls, parts)
    base = plain_base(cls)
    canonical = canonical_key(form)
    keeps = base is not None and cls.__hash__ is base.__hash__ and canonical is form
    return key if keeps and cls.__module__ != "numpy" else canonical


def _canonical_parts(parts: Sequence[Any]) -> Sequence[Any]:
    changed = False
    canonical = []
    for position, part in enumerate(parts):
        try:
            item = part if type(part) in _SELF else canonical_key(part)
        except InvalidKeyError as error:
            raise error.inside(f"[{position}]") from None
        changed = changed or item is not part
        canonical.append(item)
    return tuple(canonical) if changed else parts


def _canonical_fields(form: ObjectForm, cls: type) -> tuple[Any, ...]:
    if form.schema is None:
        return form.parts
    canonical = []
    for name, part in zip(key_fields(cls)[1], form.parts, strict=True):
        try:
            item = canonical_key(part)
        except InvalidKeyError as error:
            raise error.inside(f".{name}") from None
        canonical.append(FIELD_NAN if item is NAN else item)
    if all(new is old for new, old in zip(canonical, form.parts, strict=True)):
        return form.parts
    return tuple(canonical)


def _canonical_datetime(key: datetime) -> datetime:
    offset = key.utcoffset()
    if offset is None or key.replace(fold=1 - key.fold).utcoffset() == offset:
        return key
    return datetime_of_utc_us(datetime_us(key, offset))


def datetime_us(key: datetime, offset: timedelta | None) -> int:
    """Return the microseconds from 1970-01-01 to a datetime, less its UTC offset when it has one."""
    since = key.replace(tzinfo=None) - _EPOCH
    if offset is not None:
        since -= offset
    return since // _MICROSECOND


def time_us(key: time, offset: timedelta | None) -> int:
    """Return the microseconds from midnight to a time, less its UTC offset: in (-1 day, 2 days).

    Raises: InvalidKeyError: the offset has a part of a second; Python's ``==`` and ``hash`` disagree on such times.
    """
    since = ((key.hour * 60 + key.minute) * 60 + key.second) * 1_000_000 + key.microsecond
    if offset is None:
        return since
    if offset.microseconds:
        raise InvalidKeyError(f"a time with UTC offset {offset}", "", "use an offset of whole seconds, or a naive time")
    return since - offset // _MICROSECOND


def datetime_of_utc_us(us: int) -> datetime:
    """Return the aware datetime of an instant; in UTC unless the instant falls outside years 1 to 9999 there."""
    inside = min(max(us, _FIRST_US), _LAST_US)
    zone = timezone.utc if inside == us else timezone((inside - us) * _MICROSECOND)
    return (_EPOCH + inside * _MICROSECOND).replace(tzinfo=zone)


def time_of_utc_us(us: int) -> time:
    """Return the aware time of ``time_us``; in UTC unless it falls outside the day there."""
    seconds = 0
    if us < 0:
        seconds = -(us // 1_000_000)
    elif us >= _DAY_US:
        seconds = -((us - _DAY_US) // 1_000_000 + 1)
    zone = timezone(timedelta(seconds=seconds)) if seconds else timezone.utc
    return _time_of_day(us + seconds * 1_000_000).replace(tzinfo=zone)


def _time_of_day(us: int) -> time:
    return (_EPOCH + us * _MICROSECOND).time()


def write_key(out: bytearray, key: object) -> None:
    """Append the canonical bytes of a key.

    Raises: InvalidKeyError: the value, or a part of it, cannot be a key; ``out`` may hold a part of it then.
    """
    writer = _WRITERS.get(type(key))
    if writer is not None:
        writer(out, key)
    else:
        form = unusual_form(key)
        if type(form) is ObjectForm:
            _write_object(out, form, type(key))
        else:
            write_key(out, form)


def _write_none(out: bytearray, key: None) -> None:
    out.append(_NONE)


def _write_number(out: bytearray, key: int | float | Decimal) -> None:
    form = key if type(key) is int and INT64_MIN <= key < INT64_STOP else number_form(key)
    if type(form) is float:
        out += _TAGGED_DOUBLE.pack(_FLOAT, form)
    elif type(form) is Decimal:
        sign, digits, exponent = form.as_tuple()
        assert isinstance(exponent, int)
        out.append(_DECIMAL)
        write_varint(out, -exponent)
        _write_sized(out, int_bytes(int(Decimal((sign, digits, 0)))))
    elif INT64_MIN <= form < INT64_STOP:
        out += _TAGGED_LONG.pack(_INT, int(form) + _BIAS)
    else:
        out.append(_BIGINT)
        _write_sized(out, int_bytes(int(form)))


def int_bytes(value: int) -> bytes:
    """Return the shortest two's complement of an int, big endian."""
    size = (value.bit_length() if value >= 0 else (value + 1).bit_length()) // 8 + 1
    return value.to_bytes(size, "big", signed=True)


def _write_sized(out: bytearray, body: bytes) -> None:
    write_varint(out, len(body))
    out += body


def _write_str(out: bytearray, key: str) -> None:
    out.append(_STR)
    _write_sized(out, key.encode("utf-8", "surrogatepass"))


def _write_bytes(out: bytearray, key: bytes) -> None:
    out.append(_BYTES)
    _write_sized(out, key)


def _write_date(out: bytearray, key: date) -> None:
    out.append(_DATE)
    out += key.toordinal().to_bytes(4, "big")


def _write_time(out: bytearray, key: time) -> None:
    offset = key.utcoffset()
    out += _TAGGED_LONG.pack(_TIME if offset is None else _TIME_UTC, time_us(key, offset) + _BIAS)


def _write_datetime(out: bytearray, key: datetime) -> None:
    offset = key.utcoffset()
    out += _TAGGED_LONG.pack(_DATETIME if offset is None else _DATETIME_UTC, datetime_us(key, offset) + _BIAS)


def _write_timedelta(out: bytearray, key: timedelta) -> None:
    out += _TAGGED_DAYS.pack(_TIMEDELTA, key.days + (1 << 31), key.seconds * 1_000_000 + key.microseconds)


def _write_uuid(out: bytearray, key: UUID) -> None:
    out.append(_UUID)
    out += key.bytes


def _write_tuple(out: bytearray, key: Sequence[Any]) -> None:
    out.append(_TUPLE if isinstance(key, tuple) else _LIST)
    write_varint(out, len(key))
    for position, part in enumerate(key):
        try:
            write_key(out, part)
        except InvalidKeyError as error:
            raise error.inside(f"[{position}]") from None


def _write_object(out: bytearray, form: ObjectForm, cls: type) -> None:
    out.append(_ENUM if form.schema is None else _DATACLASS)
    _write_sized(out, form.class_name.encode())
    if form.schema is None:
        write_key(out, form.parts[0])
        return
    out += form.schema.to_bytes(4, "big")
    write_varint(out, len(form.parts))
    for name, part in zip(key_fields(cls)[1], form.parts, strict=True):
        try:
            write_key(out, part)
        except InvalidKeyError as error:
            raise error.inside(f".{name}") from None


def read_key(data: bytes, position: int) -> tuple[Any, int]:
    """Return the key whose bytes start at ``position``, and the position after it.

    Raises: MalformedBytesError, UnresolvedClassError: as ``decode_key``.
    """
    reader = _READERS.get(data[position]) if position < len(data) else None
    if reader is None:
        actual = (
            f"tag {data[position]:#04x} at {position}"
            if position < len(data)
            else f"the end of the bytes at {position}"
        )
        raise MalformedBytesError("a key", actual)
    return reader(data, position + 1)


def key_end(data: bytes, position: int) -> int:
    """Return where the key ends whose bytes start at ``position``; its classes need not exist here.

    Raises: MalformedBytesError: as ``decode_key``.
    """
    tag, count = data[position] if position < len(data) else 0, 1
    if tag not in (_TUPLE, _LIST, _ENUM, _DATACLASS):
        return read_key(data, position)[1]
    position += 1
    if tag not in (_TUPLE, _LIST):
        _, position = _read_sized(data, position)
    if tag != _ENUM:
        count, position = read_varint(data, position + 4 if tag == _DATACLASS else position)
    for _ in range(count):
        position = key_end(data, position)
    return position


def _read_sized(data: bytes, position: int) -> tuple[bytes, int]:
    size, position = read_varint(data, position)
    return take(data, position, size)


def _read_long(data: bytes, position: int) -> tuple[int, int]:
    body, position = take(data, position, 8)
    return int.from_bytes(body, "big") - _BIAS, position


def _read_float(data: bytes, position: int) -> tuple[float, int]:
    body, position = take(data, position, 8)
    value: float = struct.unpack(">d", body)[0]
    return (value if value == value else NAN), position


def _read_bigint(data: bytes, position: int) -> tuple[int, int]:
    body, position = _read_sized(data, position)
    return int.from_bytes(body, "big", signed=True), position


def _read_decimal(data: bytes, position: int) -> tuple[Decimal, int]:
    scale, position = read_varint(data, position)
    coefficient, position = _read_bigint(data, position)
    sign, digits, _ = Decimal(coefficient).as_tuple()
    return Decimal((sign, digits, -scale)), position


def _read_str(data: bytes, position: int) -> tuple[str, int]:
    body, position = _read_sized(data, position)
    try:
        return body.decode("utf-8", "surrogatepass"), position
    except UnicodeDecodeError as cause:
        raise MalformedBytesError("a str key", f"{cause.reason} before byte {position}") from cause


def _read_date(data: bytes, position: int) -> tuple[date, int]:
    body, position = take(data, position, 4)
    return date.fromordinal(int.from_bytes(body, "big")), position


def _read_time(data: bytes, position: int) -> tuple[time, int]:
    us, position = _read_long(data, position)
    return _time_of_day(us), position


def _read_time_utc(data: bytes, position: int) -> tuple[time, int]:
    us, position = _read_long(data, position)
    return time_of_utc_us(us), position


def _read_datetime(data: bytes, position: int) -> tuple[datetime, int]:
    us, position = _read_long(data, position)
    return _EPOCH + us * _MICROSECOND, position


def _read_datetime_utc(data: bytes, position: int) -> tuple[datetime, int]:
    us, position = _read_long(data, position)
    return datetime_of_utc_us(us), position


def _read_timedelta(data: bytes, position: int) -> tuple[timedelta, int]:
    body, position = take(data, position, 12)
    days, us = struct.unpack(">IQ", body)
    return timedelta(days - (1 << 31), 0, us), position


def _read_uuid(data: bytes, position: int) -> tuple[UUID, int]:
    body, position = take(data, position, 16)
    return UUID(bytes=body), position


def _read_tuple(data: bytes, position: int) -> tuple[tuple[Any, ...], int]:
    count, position = read_varint(data, position)
    parts = []
    for _ in range(count):
        part, position = read_key(data, position)
        parts.append(part)
    return tuple(parts), position


def _read_list(data: bytes, position: int) -> tuple[ListKey, int]:
    parts, position = _read_tuple(data, position)
    return ListKey(parts), position


def _read_class(data: bytes, position: int) -> tuple[type, int]:
    body, position = _read_sized(data, position)
    name = body.decode()
    if not admits(name):
        raise UnresolvedClassError(name, "it is no plain class")
    return resolve_class(name), position


def _read_enum(data: bytes, position: int) -> tuple[Enum, int]:
    cls, position = _read_class(data, position)
    part, position = read_key(data, position)
    if not issubclass(cls, Enum):
        raise MalformedBytesError("an Enum key", f"{describe(cls)}, which is not an Enum any more")
    try:
        return (cls(part) if issubclass(cls, Flag) else cls[part]), position
    except (KeyError, ValueError) as cause:
        raise MalformedBytesError(
            f"a {describe(cls)} key", f"member {part!r}, which it does not have any more"
        ) from cause


def _read_dataclass(data: bytes, position: int) -> tuple[Any, int]:
    cls, position = _read_class(data, position)
    schema, position = take(data, position, 4)
    parts, position = _read_tuple(data, position)
    try:
        declared, names = key_fields(cls)
    except (AttributeError, InvalidKeyError) as cause:
        raise MalformedBytesError(f"a {describe(cls)} key", f"no frozen dataclass of that name: {cause}") from cause
    if declared != int.from_bytes(schema, "big") or len(names) != len(parts):
        raise MalformedBytesError(
            f"a {describe(cls)} key with fields {', '.join(names)}", f"{len(parts)} fields of another layout"
        )
    return rebuild(cls, parts), position


_SELF = frozenset({type(None), bool, int, str, bytes, date, timedelta, UUID})

_WRITERS: dict[type, Callable[[bytearray, Any], None]] = {
    type(None): _write_none,
    bool: _write_number,
    int: _write_number,
    float: _write_number,
    Decimal: _write_number,
    str: _write_str,
    bytes: _write_bytes,
    date: _write_date,
    time: _write_time,
    datetime: _write_datetime,
    timedelta: _write_timedelta,
    UUID: _write_uuid,
    tuple: _write_tuple,
    list: _write_tuple,
    ListKey: _write_tuple,
}

_READERS: dict[int, Callable[[bytes, int], tuple[Any, int]]] = {
    _NONE: lambda data, position: (None, position),
    _INT: _read_long,
    _FLOAT: _read_float,
    _BIGINT: _read_bigint,
    _DECIMAL: _read_decimal,
    _STR: _read_str,
    _BYTES: _read_sized,
    _DATE: _read_date,
    _TIME: _read_time,
    _TIME_UTC: _read_time_utc,
    _DATETIME: _read_datetime,
    _DATETIME_UTC: _read_datetime_utc,
    _TIMEDELTA: _read_timedelta,
    _UUID: _read_uuid,
    _TUPLE: _read_tuple,
    _ENUM: _read_enum,
    _DATACLASS: _read_dataclass,
    _LIST: _read_list,
}
