"""Errors as Flink's clients in Java read them.

They take the cause of a failure from a serialized object, not from the text beside it, and fail where there is none.

Source: Java Object Serialization Specification, version 6; apache/flink SerializedThrowable, whose fields these are.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence

import msgspec

__all__ = ["FailureCause", "failure_cause"]

_STREAM, _OBJECT, _NULL, _END_BLOCK = b"\xac\xed\x00\x05", b"s", b"p", b"x"
_SERIALIZABLE, _WRITES_ITSELF = 2, 3
_TEXT = "Ljava/lang/String;"
_TEXT_AGAIN = b"q" + struct.pack(">I", 0x7E0001)
"""The type of a string, by reference: it is the second object of the stream."""
_LONGEST_SHORT = 0xFFFF


class FailureCause(msgspec.Struct, rename="kebab", frozen=True):
    """The cause of a failure.

    Args:
        error_class: name of the error's class.
        stack_trace: the error with what it says, for people.
        serialized_throwable: the same as an object of Java, in base64.
    """

    error_class: str = msgspec.field(name="class")
    stack_trace: str
    serialized_throwable: str


def failure_cause(name: str, message: str) -> FailureCause:
    """Return an error as Flink's answers have it.

    >>> failure_cause("JobHasEnded", "job a has ended").stack_trace
    'JobHasEnded: job a has ended'

    Args:
        name: of its class.
        message: what it says.
    """
    text = f"{name}: {message}"
    return FailureCause(name, text, base64.b64encode(_serialized(name, text)).decode("ascii"))


def _serialized(name: str, text: str) -> bytes:
    """Return an object of `SerializedThrowable` that has no other object within it."""
    own = _class(
        "org.apache.flink.util.SerializedThrowable", "65169df51fa713f3", _SERIALIZABLE,
        [
            (b"L", "fullStringifiedStackTrace", _string(_TEXT)), (b"L", "originalErrorClassName", _TEXT_AGAIN),
            (b"[", "serializedException", _string("[B")),
        ],
    )  # fmt: skip
    exception = _class("java.lang.Exception", "d0fd1f3e1a3b1cc4", _SERIALIZABLE, [])
    throwable = _class(
        "java.lang.Throwable", "d5c635273977b8cb", _WRITES_ITSELF,
        [
            (b"L", "cause", _string("Ljava/lang/Throwable;")), (b"L", "detailMessage", _TEXT_AGAIN),
            (b"[", "stackTrace", _string("[Ljava/lang/StackTraceElement;")),
            (b"L", "suppressedExceptions", _string("Ljava/util/List;")),
        ],
    )  # fmt: skip
    values = _NULL + _string(text) + _NULL + _NULL + _END_BLOCK + _string(text) + _string(name) + _NULL
    return _STREAM + _OBJECT + own + exception + throwable + _NULL + values


def _class(name: str, version: str, flags: int, fields: Sequence[tuple[bytes, str, bytes]]) -> bytes:
    """Return the description of a class.

    Args:
        name: of the class.
        version: of its serialized form, 16 hex digits.
        flags: how its values are written.
        fields: kind, name and type, in the order in which their values follow.
    """
    described = b"".join(kind + _short(field) + type_name for kind, field, type_name in fields)
    return (
        b"r" + _short(name) + bytes.fromhex(version) + struct.pack(">BH", flags, len(fields)) + described + _END_BLOCK
    )


def _string(text: str) -> bytes:
    data = _modified_utf_8(text)
    return b"t" + _short(text) if len(data) <= _LONGEST_SHORT else b"|" + struct.pack(">Q", len(data)) + data


def _short(text: str) -> bytes:
    data = _modified_utf_8(text)
    return struct.pack(">H", len(data)) + data


def _modified_utf_8(text: str) -> bytes:
    """Return a text as Java writes it: NUL in two bytes, and characters beyond 16 bits as two halves."""
    units = text.encode("utf-16-be", "surrogatepass")
    halves = "".join(map(chr, struct.unpack(f">{len(units) // 2}H", units)))
    return halves.encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")
