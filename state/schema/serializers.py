"""Versioned serializers: values to bytes and back, and whether stored bytes fit what is declared.

A serializer describes itself by ``snapshot()``, plain JSON that is stored beside the bytes. On restore the declared
serializer judges that snapshot: COMPATIBLE reads the bytes as they are, MIGRATE means read them with
``serializer_of(snapshot)`` and write them anew, INCOMPATIBLE is an error that names the remedy.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Protocol, runtime_checkable

from rayflink.user_types import UserValue

from ..binary import read_int, read_string, read_varint, take, write_int, write_string, write_varint
from ..classes.class_names import set_main_module
from ..classes.pickling import PICKLE_VERSION, pickled, unpickled
from ..errors import MalformedBytesError, SerializationError, SnapshotMismatch, VersionMismatch
from ..keys.key_encoding import KEY_ENCODING_VERSION, decode_key, encode_key

__all__ = [
    "BoolSerializer",
    "BytesSerializer",
    "Compatibility",
    "DoubleSerializer",
    "KeySerializer",
    "ListSerializer",
    "LongSerializer",
    "NullableSerializer",
    "PickleSerializer",
    "Serializer",
    "StringSerializer",
    "TupleSerializer",
    "Verdict",
    "check_restore",
    "read_int",
    "read_string",
    "read_versioned",
    "serializer_of",
    "set_main_module",
    "write_int",
    "write_string",
    "write_versioned",
]

Snapshot = Mapping[str, Any]
"""Snapshot of a serializer's configuration, JSON-able: ``{"serializer": name, "version": n, "of": [snapshots]}``."""


class Verdict(Enum):
    """The outcome of comparing a declared serializer with the one that wrote."""

    COMPATIBLE = "compatible"
    MIGRATE = "migrate"
    INCOMPATIBLE = "incompatible"


@dataclass(frozen=True, slots=True)
class Compatibility:
    """A verdict and, unless it is COMPATIBLE, the reason."""

    verdict: Verdict
    reason: str = ""


_COMPATIBLE = Compatibility(Verdict.COMPATIBLE)


@runtime_checkable
class Serializer(Protocol):
    """A converter of values of one kind to bytes and back; stateless, so one instance serves any number of states."""

    @property
    def version(self) -> int:
        """Return the version of the byte layout, at least 1; it grows when the layout changes."""
        ...

    def to_bytes(self, value: UserValue) -> bytes:
        """Convert a value to bytes. Raises: SerializationError: the value is not of the kind."""
        ...

    def from_bytes(self, data: bytes) -> Any:
        """Convert bytes back to a value. Raises: MalformedBytesError: they hold none."""
        ...

    def snapshot(self) -> Snapshot:
        """Return a JSON-able description, enough for ``serializer_of``."""
        ...

    def compatibility(self, written: Snapshot) -> Compatibility:
        """Return whether this serializer can take over bytes whose serializer had this snapshot."""
        ...


class _BuiltIn:
    """The base of the built-in serializers: name, version, parts, and the judgement of a snapshot."""

    name: ClassVar[str]
    version: int = 1

    def parts(self) -> Sequence[Serializer]:
        return ()

    def snapshot(self) -> Snapshot:
        """Return a JSON-able description, enough for ``serializer_of``."""
        parts = [dict(part.snapshot()) for part in self.parts()]
        return {"serializer": self.name, "version": self.version, "of": parts}

    def compatibility(self, written: Snapshot) -> Compatibility:
        """Return COMPATIBLE when name, version and parts agree, MIGRATE from older versions, else INCOMPATIBLE."""
        if written["serializer"] != self.name:
            return Compatibility(Verdict.INCOMPATIBLE, f"{_text(written)} is not {_text(self.snapshot())}")
        if written["version"] > self.version:
            reason = f"{self.name} v{written['version']} is newer than v{self.version}, the newest known here"
            return Compatibility(Verdict.INCOMPATIBLE, reason)
        parts, snapshots = self.parts(), written.get("of", [])
        if len(parts) != len(snapshots):
            return Compatibility(
                Verdict.INCOMPATIBLE, f"{len(snapshots)} parts were written, {len(parts)} are declared"
            )
        verdicts = [part.compatibility(snapshot) for part, snapshot in zip(parts, snapshots, strict=True)]
        for verdict in (Verdict.INCOMPATIBLE, Verdict.MIGRATE):
            for position, part in enumerate(verdicts):
                if part.verdict is verdict:
                    return Compatibility(verdict, f"part {position}: {part.reason}")
        if written["version"] < self.version:
            return Compatibility(Verdict.MIGRATE, f"{self.name} v{written['version']} is older than v{self.version}")
        return _COMPATIBLE

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.snapshot() == other.snapshot()

    def __hash__(self) -> int:
        return hash((self.name, self.version, tuple(self.parts())))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.parts()))})"

    def _wanted(self, value: object, *types: type) -> None:
        if not isinstance(value, types):
            wanted = " or ".join(kind.__name__ for kind in types)
            raise _wrong_type(type(self).__name__, value, wanted)


class StringSerializer(_BuiltIn):
    """str or None in Flink's format: varint of length plus one (0 is None), then each UTF-16 unit as a varint."""

    name = "string"

    def to_bytes(self, value: str | None) -> bytes:
        """Return the string in Flink's format."""
        self._wanted(value, str, type(None))
        out = bytearray()
        write_string(out, value)
        return bytes(out)

    def from_bytes(self, data: bytes) -> str | None:
        """Return the string; None where the length is 0."""
        value, position = read_string(data, 0)
        _check_end(data, position, "a string")
        return value


class LongSerializer(_BuiltIn):
    """int in [-2**63, 2**63) as eight bytes, big endian."""

    name = "long"

    def to_bytes(self, value: int) -> bytes:
        """Return eight bytes."""
        self._wanted(value, int)
        return write_int(value, 8)

    def from_bytes(self, data: bytes) -> int:
        """Return the int."""
        _check_size(data, 8, "a long")
        return int.from_bytes(data, "big", signed=True)


class DoubleSerializer(_BuiltIn):
    """float (or int, as float) as eight bytes IEEE 754, big endian."""

    name = "double"

    def to_bytes(self, value: float) -> bytes:
        """Return eight bytes."""
        self._wanted(value, float, int)
        return struct.pack(">d", value)

    def from_bytes(self, data: bytes) -> float:
        """Return the float, bit for bit."""
        _check_size(data, 8, "a double")
        value: float = struct.unpack(">d", data)[0]
        return value


class BoolSerializer(_BuiltIn):
    """bool as one byte, 0 or 1."""

    name = "bool"

    def to_bytes(self, value: bool) -> bytes:
        """Return one byte."""
        self._wanted(value, bool)
        return b"\x01" if value else b"\x00"

    def from_bytes(self, data: bytes) -> bool:
        """Return the bool."""
        if data not in (b"\x00", b"\x01"):
            raise MalformedBytesError("a bool", f"{data[:8].hex() or 'nothing'}")
        return data == b"\x01"


class BytesSerializer(_BuiltIn):
    """bytes as they are."""

    name = "bytes"

    def to_bytes(self, value: bytes) -> bytes:
        """Return the same bytes."""
        self._wanted(value, bytes)
        return value

    def from_bytes(self, data: bytes) -> bytes:
        """Return the same bytes."""
        return bytes(data)


class KeySerializer(_BuiltIn):
    """Keys in their canonical encoding, the version of which is this serializer's: equal keys give equal bytes."""

    name = "key"
    version = KEY_ENCODING_VERSION

    def to_bytes(self, value: UserValue) -> bytes:
        """Return the canonical bytes. Raises: InvalidKeyError: the value cannot be a key."""
        return encode_key(value)

    def from_bytes(self, data: bytes) -> Any:
        """Return a key equal to the one written."""
        return decode_key(data)


class TupleSerializer(_BuiltIn):
    """Tuples of fixed length, each field by a serializer of its own: varint size, then the field."""

    name = "tuple"

    def __init__(self, *fields: Serializer) -> None:
        self._fields = fields

    def parts(self) -> Sequence[Serializer]:
        """Return the serializers of the fields, in order."""
        return self._fields

    def to_bytes(self, value: tuple[Any, ...]) -> bytes:
        """Return the fields in order. Raises: SerializationError: no tuple of that length."""
        self._wanted(value, tuple)
        if len(value) != len(self._fields):
            raise _wrong_type(f"TupleSerializer of {len(self._fields)} fields", value, f"{len(self._fields)}-tuple")
        out = bytearray()
        for field, part in zip(self._fields, value, strict=True):
            _write_sized(out, field.to_bytes(part))
        return bytes(out)

    def from_bytes(self, data: bytes) -> tuple[Any, ...]:
        """Return the tuple."""
        position, values = 0, []
        for field in self._fields:
            body, position = _read_sized(data, position)
            values.append(field.from_bytes(body))
        _check_end(data, position, f"a tuple of {len(self._fields)} fields")
        return tuple(values)


class ListSerializer(_BuiltIn):
    """Lists of one element kind: varint count, then varint size and bytes of each element."""

    name = "list"

    def __init__(self, element: Serializer) -> None:
        self._element = element

    def parts(self) -> Sequence[Serializer]:
        """Return the serializer of the elements."""
        return (self._element,)

    def to_bytes(self, value: list[Any]) -> bytes:
        """Return the elements in order."""
        self._wanted(value, list)
        out = bytearray()
        write_varint(out, len(value))
        for element in value:
            _write_sized(out, self._element.to_bytes(element))
        return bytes(out)

    def from_bytes(self, data: bytes) -> list[Any]:
        """Return the list."""
        count, position = read_varint(data, 0)
        values = []
        for _ in range(count):
            body, position = _read_sized(data, position)
            values.append(self._element.from_bytes(body))
        _check_end(data, position, f"a list of {count} elements")
        return values


class NullableSerializer(_BuiltIn):
    """None as the byte 0, all else as the byte 1 and the inner serializer's bytes."""

    name = "nullable"

    def __init__(self, inner: Serializer) -> None:
        self._inner = inner

    def parts(self) -> Sequence[Serializer]:
        """Return the serializer of values that are not None."""
        return (self._inner,)

    def to_bytes(self, value: UserValue) -> bytes:
        """Return one byte for None, else one byte more than the inner serializer's."""
        return b"\x00" if value is None else b"\x01" + self._inner.to_bytes(value)

    def from_bytes(self, data: bytes) -> Any:
        """Return the value or None."""
        if data == b"\x00":
            return None
        if data[:1] != b"\x01":
            raise MalformedBytesError("a nullable value", f"{data[:8].hex() or 'nothing'}")
        return self._inner.from_bytes(data[1:])

    def compatibility(self, written: Snapshot) -> Compatibility:
        """Compare like every serializer; also MIGRATE from the inner serializer alone."""
        if written["serializer"] != self.name and self._inner.compatibility(written).verdict is Verdict.COMPATIBLE:
            return Compatibility(Verdict.MIGRATE, f"{_text(written)} becomes nullable")
        return super().compatibility(written)


class PickleSerializer(_BuiltIn):
    """Any picklable value by pickle 5, classes by module and name; see ``pickling``."""

    name = "pickle"
    version = PICKLE_VERSION

    def to_bytes(self, value: UserValue) -> bytes:
        """Return a version byte and the pickle."""
        return pickled(value)

    def from_bytes(self, data: bytes) -> Any:
        """Return the value."""
        return unpickled(data)

    def compatibility(self, written: Snapshot) -> Compatibility:
        """Compare like every serializer; also MIGRATE from every other built-in one, for pickle holds any value."""
        if written["serializer"] != self.name and written["serializer"] in _BUILT_IN:
            return Compatibility(Verdict.MIGRATE, f"{_text(written)} becomes pickle")
        return super().compatibility(written)


_BUILT_IN: dict[str, Callable[..., Serializer]] = {
    kind.name: kind
    for kind in (
        StringSerializer,
        LongSerializer,
        DoubleSerializer,
        BoolSerializer,
        BytesSerializer,
        KeySerializer,
        TupleSerializer,
        ListSerializer,
        NullableSerializer,
        PickleSerializer,
    )
}


def serializer_of(snapshot: Snapshot) -> Serializer:
    """Return the built-in serializer that a snapshot describes.

    Raises: VersionMismatch: no built-in serializer of that name and version exists here.
    """
    name, version = snapshot["serializer"], snapshot["version"]
    make = _BUILT_IN.get(name)
    if make is not None:
        serializer = make(*map(serializer_of, snapshot.get("of", [])))
        if serializer.version == version:
            return serializer
    readable = ", ".join(sorted(_BUILT_IN)) if make is None else f"{name} v{serializer.version}"
    raise VersionMismatch(f"{name} v{version}", readable, f"serializer {name}", "")


def check_restore(declared: Serializer, written: Snapshot, state: str, operator_uid: str) -> Serializer:
    """Return the serializer that reads what was written: the declared one, or the old one when values must migrate.

    Raises: SnapshotMismatch: the declared serializer cannot take over.
    """
    judged = declared.compatibility(written)
    if judged.verdict is Verdict.COMPATIBLE:
        return declared
    if judged.verdict is Verdict.MIGRATE:
        return serializer_of(written)
    raise SnapshotMismatch(state, operator_uid, _text(written), _text(declared.snapshot()), judged.reason)


def write_versioned(serializer: Serializer, value: UserValue) -> bytes:
    """Return a value's bytes behind a varint of the serializer's version, to be stored on their own."""
    out = bytearray()
    write_varint(out, serializer.version)
    return bytes(out) + serializer.to_bytes(value)


def read_versioned(serializer: Serializer, data: bytes, state: str, operator_uid: str) -> Any:
    """Return the value that ``write_versioned`` wrote.

    Args:
        state: name of the state, for the error.
        operator_uid: uid of the operator that owns it, for the error.
    Raises: VersionMismatch: another version of the serializer wrote it; the error names state and operator.
    """
    version, position = read_varint(data, 0)
    name = serializer.snapshot()["serializer"]
    if version != serializer.version:
        raise VersionMismatch(f"{name} v{version}", f"{name} v{serializer.version}", state, operator_uid)
    try:
        return serializer.from_bytes(data[position:])
    except VersionMismatch as inner:
        raise VersionMismatch(inner.written, inner.readable, state, operator_uid) from inner


def _text(snapshot: Snapshot) -> str:
    parts = ", ".join(map(_text, snapshot.get("of", [])))
    return f"{snapshot['serializer']} v{snapshot['version']}" + (f" of ({parts})" if parts else "")


def _wrong_type(serializer: str, value: object, wanted: str) -> SerializationError:
    problem = f"a {type(value).__qualname__}" + (f" of length {len(value)}" if isinstance(value, tuple) else "")
    return SerializationError(serializer, problem, f"give it a {wanted}, or declare the type that flows")


def _write_sized(out: bytearray, body: bytes) -> None:
    write_varint(out, len(body))
    out += body


def _read_sized(data: bytes, position: int) -> tuple[bytes, int]:
    size, position = read_varint(data, position)
    return take(data, position, size)


def _check_size(data: bytes, wanted: int, what: str) -> None:
    if len(data) != wanted:
        raise MalformedBytesError(f"{what} of {wanted} bytes", f"{len(data)} bytes")


def _check_end(data: bytes, position: int, what: str) -> None:
    if position != len(data):
        raise MalformedBytesError(what, f"{len(data) - position} bytes too many at {position}")
