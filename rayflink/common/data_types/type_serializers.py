"""Values to bytes and back, as their type directs.

The format is big-endian and holds no type information: the reader knows the type. Strings have Flink's format (a
varint of length plus one, then UTF-16 units as varints). A field, element or value of a map that may be None has a
bit or byte that says whether it is.
"""

from __future__ import annotations

import datetime
import pickle
import struct
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, cast

from rayflink.state.binary import read_string, read_varint, take, write_string, write_varint
from rayflink.state.errors import MalformedBytesError, SerializationError
from rayflink.user_types import UserValue

from ..errors import TypeMismatch, shorten
from ..time import Instant
from ..types import RowKind, _create_row
from .basic_types import BasicType, BasicTypeInfo, DateTypeInfo
from .composite_types import ElementsTypeInfo, MapTypeInfo, RowTypeInfo, TupleTypeInfo
from .type_base import TypeInformation

__all__ = ["TypeSerializer"]

_FIXED = {
    BasicType.BOOLEAN: struct.Struct(">?"),
    BasicType.BYTE: struct.Struct(">b"),
    BasicType.SHORT: struct.Struct(">h"),
    BasicType.INT: struct.Struct(">i"),
    BasicType.LONG: struct.Struct(">q"),
    BasicType.FLOAT: struct.Struct(">f"),
    BasicType.DOUBLE: struct.Struct(">d"),
}
_INSTANT = struct.Struct(">qi")
_KINDS = list(RowKind)


class TypeSerializer:
    """Serializer of the values of one type; equal types give equal bytes and equal snapshots.

    >>> from rayflink.common.typeinfo import Types
    >>> serializer = Types.TUPLE([Types.STRING(), Types.INT()]).serializer()
    >>> serializer.from_bytes(serializer.to_bytes(("a", 1)))
    ('a', 1)
    """

    version = 1
    """Version of the format; bytes of another version are not read."""

    def __init__(self, type_info: TypeInformation) -> None:
        self.type_info = type_info

    def to_bytes(self, value: UserValue) -> bytes:
        """Return the bytes of a value, which is converted to the type's form first.

        Raises: SerializationError: the value is not of the type, or does not pickle where the type says pickled.
        """
        try:
            converted = self.type_info.convert(value)
        except TypeMismatch as error:
            raise SerializationError(str(self), f"{error.actual} at value{error.path}", error.remedy) from None
        out = bytearray()
        _write_nullable(self.type_info, out, converted)
        return bytes(out)

    def from_bytes(self, data: bytes) -> Any:
        """Return the value whose bytes these are. Raises: MalformedBytesError: they are too short or too long."""
        value, end = _read_nullable(self.type_info, data, 0)
        if end != len(data):
            raise MalformedBytesError(f"a value of {self.type_info} in {end} bytes", f"{len(data)} bytes")
        return value

    def snapshot(self) -> str:
        """Return the facts that a snapshot records: name, version and type; a restore compares it with the job's."""
        return f"{type(self).__name__} v{self.version} {self.type_info}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeSerializer) and self.type_info == other.type_info

    def __hash__(self) -> int:
        return hash(self.type_info)

    def __repr__(self) -> str:
        return f"TypeSerializer<{self.type_info}>"


def _write_nullable(kind: TypeInformation, out: bytearray, value: UserValue) -> None:
    out.append(value is not None)
    if value is not None:
        _write(kind, out, value)


def _read_nullable(kind: TypeInformation, data: bytes, position: int) -> tuple[Any, int]:
    present, position = take(data, position, 1)
    if present not in (b"\0", b"\1"):
        raise MalformedBytesError("0 (None) or 1 (a value)", repr(present))
    return _read(kind, data, position) if present == b"\1" else (None, position)


def _write(kind: TypeInformation, out: bytearray, value: UserValue) -> None:
    """Append a value that is not None and has the type's own form."""
    if isinstance(kind, BasicTypeInfo):
        _write_basic(kind.basic_type, out, value)
    elif isinstance(kind, RowTypeInfo):
        out.append(value.get_row_kind().value)
        _write_fields(kind.field_types, out, value)
    elif isinstance(kind, TupleTypeInfo):
        _write_fields(kind.field_types, out, value)
    elif isinstance(kind, MapTypeInfo):
        write_varint(out, len(value))
        for key, item in value.items():
            _write(kind.key_type, out, key)
            _write_nullable(kind.value_type, out, item)
    elif isinstance(kind, ElementsTypeInfo):
        if isinstance(value, bytes):
            _write_sized(out, value)
            return
        write_varint(out, len(value))
        for item in value:
            _write_nullable(kind.element_type, out, item)
    elif type(kind) is DateTypeInfo:
        out += value.toordinal().to_bytes(4, "big")
    else:
        _write_sized(out, _pickled(value))


def _read(kind: TypeInformation, data: bytes, position: int) -> tuple[Any, int]:
    if isinstance(kind, BasicTypeInfo):
        return _read_basic(kind.basic_type, data, position)
    if isinstance(kind, RowTypeInfo):
        row_kind, position = take(data, position, 1)
        fields, position = _read_fields(kind.field_types, data, position)
        return _create_row(kind._names, fields, _KINDS[row_kind[0]]), position
    if isinstance(kind, TupleTypeInfo):
        fields, position = _read_fields(kind.field_types, data, position)
        return tuple(fields), position
    if isinstance(kind, MapTypeInfo):
        size, position = read_varint(data, position)
        pairs = {}
        for _ in range(size):
            key, position = _read(kind.key_type, data, position)
            pairs[key], position = _read_nullable(kind.value_type, data, position)
        return pairs, position
    if isinstance(kind, ElementsTypeInfo):
        if getattr(kind, "is_bytes", False):
            return _read_sized(data, position)
        size, position = read_varint(data, position)
        items = []
        for _ in range(size):
            item, position = _read_nullable(kind.element_type, data, position)
            items.append(item)
        return items, position
    if type(kind) is DateTypeInfo:
        ordinal, position = take(data, position, 4)
        return datetime.date.fromordinal(int.from_bytes(ordinal, "big")), position
    body, position = _read_sized(data, position)
    return pickle.loads(body), position


def _write_basic(basic: BasicType, out: bytearray, value: UserValue) -> None:
    fixed = _FIXED.get(basic)
    if fixed is not None:
        out += fixed.pack(value)
    elif basic is BasicType.BIG_INT:
        _write_sized(out, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))
    elif basic is BasicType.INSTANT:
        out += _INSTANT.pack(value.seconds, value.nanos)
    else:
        write_string(out, str(value))


def _read_basic(basic: BasicType, data: bytes, position: int) -> tuple[Any, int]:
    fixed = _FIXED.get(basic)
    if fixed is not None:
        body, position = take(data, position, fixed.size)
        return fixed.unpack(body)[0], position
    if basic is BasicType.BIG_INT:
        body, position = _read_sized(data, position)
        return int.from_bytes(body, "big", signed=True), position
    if basic is BasicType.INSTANT:
        body, position = take(data, position, _INSTANT.size)
        return Instant(*_INSTANT.unpack(body)), position
    text, position = read_string(data, position)
    return (Decimal(cast(str, text)) if basic is BasicType.BIG_DEC else text), position


def _write_fields(types: tuple[TypeInformation, ...], out: bytearray, values: Iterable[UserValue]) -> None:
    """Write a bit a field, lowest first, set where it is None; then the others."""
    fields = list(values)
    mask = sum(1 << index for index, field in enumerate(fields) if field is None)
    out += mask.to_bytes((len(fields) + 7) // 8, "little")
    for kind, field in zip(types, fields, strict=True):
        if field is not None:
            _write(kind, out, field)


def _read_fields(types: tuple[TypeInformation, ...], data: bytes, position: int) -> tuple[list[Any], int]:
    mask_bytes, position = take(data, position, (len(types) + 7) // 8)
    mask = int.from_bytes(mask_bytes, "little")
    fields: list[Any] = []
    for index, kind in enumerate(types):
        field = None
        if not mask >> index & 1:
            field, position = _read(kind, data, position)
        fields.append(field)
    return fields, position


def _write_sized(out: bytearray, body: bytes) -> None:
    write_varint(out, len(body))
    out += body


def _read_sized(data: bytes, position: int) -> tuple[bytes, int]:
    size, position = read_varint(data, position)
    return take(data, position, size)


def _pickled(value: UserValue) -> bytes:
    try:
        return pickle.dumps(value, protocol=5)
    except Exception as error:  # a user's __reduce__ may raise anything
        remedy = f"it does not pickle ({error}); keep only data in it, or give its class __reduce__"
        raise SerializationError("PickledByteArrayTypeInfo", shorten(value), remedy) from error
