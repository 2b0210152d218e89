"""The messages of logical replication: the frames of the connection, and those of the plugin pgoutput, version 1.

Source: PostgreSQL documentation, "Streaming Replication Protocol" and "Logical Replication Message Formats".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TypeAlias

_EPOCH_MS = 946_684_800_000
"""1 January 2000, the zero of PostgreSQL's time, in epoch milliseconds."""
_FRAME = struct.Struct(">QQq")
_KEEPALIVE = struct.Struct(">QqB")
_STATUS = struct.Struct(">cQQQqB")
_BEGIN = struct.Struct(">QqI")
_COMMIT = struct.Struct(">BQQq")
_ID = struct.Struct(">I")
_COUNT = struct.Struct(">H")
_COLUMN = struct.Struct(">Ii")


@dataclass(frozen=True, slots=True)
class Keepalive:
    """The server has sent everything up to a position.

    Args:
        position: everything before is decoded and sent.
        wants_reply: the connection ends unless the client answers soon.
    """

    position: int
    wants_reply: bool


@dataclass(frozen=True, slots=True)
class Begin:
    """A transaction begins.

    Args:
        commit: position of its commit.
        moment_ms: of the commit, epoch milliseconds.
        xid: its number, 32 bits.
    """

    commit: int
    moment_ms: int
    xid: int


@dataclass(frozen=True, slots=True)
class Commit:
    """A transaction ends.

    Args:
        end: position behind its commit.
    """

    commit: int
    end: int


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column of a relation.

    Args:
        is_key: the replica identity contains it.
        type_oid: the type's number.
        modifier: the type's modifier, such as a length; -1: none.
    """

    name: str
    is_key: bool
    type_oid: int
    modifier: int


@dataclass(frozen=True, slots=True)
class Relation:
    """The description of a table, before its first change and after it was altered.

    Args:
        identity: `d`: the primary key; `n`: none; `f`: all columns; `i`: an index.
    """

    oid: int
    schema: str
    table: str
    identity: str
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class Truncate:
    """Tables whose rows are all deleted."""

    relations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Other:
    """A message without changes of rows: of types, of origins, or a user's own.

    Args:
        kind: its letter.
    """

    kind: str


Message: TypeAlias = Begin | Commit | Relation | Truncate | Other


class ProtocolError(ValueError):
    """The server sent something that is no message of this protocol."""


def changed_relation(frame: bytes) -> int | None:
    """Return the number of the relation of which a frame `w` changes a row; None: it is no such message.

    Raises:
        ProtocolError: it ends early.
    """
    if frame[25:26] not in (b"I", b"U", b"D"):
        return None
    if len(frame) < 30:
        raise ProtocolError(f"a change of a row ends early: {frame.hex()}")
    number: int = _ID.unpack_from(frame, 26)[0]
    return number


def parse_keepalive(frame: bytes) -> Keepalive:
    """Parse a frame `k`.

    >>> parse_keepalive(bytes.fromhex("6b 0000000001505788 000303fb0672a539 01"))
    Keepalive(position=22042504, wants_reply=True)
    """
    position, _, reply = _KEEPALIVE.unpack_from(frame, 1)
    return Keepalive(position, bool(reply))


def status_frame(written: int, flushed: int, now_ms: int, wants_reply: bool = False) -> bytes:
    """Return a standby status update.

    >>> status_frame(1, 1, 946_684_800_001).hex()
    '7200000000000000010000000000000001000000000000000100000000000003e800'

    Args:
        written: everything before this position has been received.
        flushed: everything before this position is needed no more.
        wants_reply: the server answers at once by a keepalive.
    """
    return _STATUS.pack(b"r", written, flushed, flushed, (now_ms - _EPOCH_MS) * 1000, wants_reply)


def parse_message(frame: bytes) -> Message:
    """Parse the message in a frame `w` that is no change of a row; see `LoggedRows` for those.

    Raises:
        ProtocolError: it is none.
    """
    kind = frame[25:26]
    try:
        if kind == b"B":
            commit, moment, xid = _BEGIN.unpack_from(frame, 26)
            return Begin(commit, moment // 1000 + _EPOCH_MS, xid)
        if kind == b"C":
            _, commit, end, _ = _COMMIT.unpack_from(frame, 26)
            return Commit(commit, end)
        if kind == b"R":
            return _relation(frame)
        if kind == b"T":
            (count,) = _ID.unpack_from(frame, 26)
            return Truncate(struct.unpack_from(f">{count}I", frame, 31))
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ProtocolError(f"a message of kind {kind!r} ends early ({error}): {frame[:80].hex()}") from error
    if kind in b"OYM" and kind:
        return Other(kind.decode())
    raise ProtocolError(f"a message of kind {kind!r}, which pgoutput version 1 does not have: {frame[:80].hex()}")


def _relation(frame: bytes) -> Relation:
    (oid,) = _ID.unpack_from(frame, 26)
    schema, position = _name(frame, 30)
    table, position = _name(frame, position)
    identity = chr(frame[position])
    (count,) = _COUNT.unpack_from(frame, position + 1)
    position += 3
    columns = []
    for _ in range(count):
        is_key = bool(frame[position] & 1)
        name, position = _name(frame, position + 1)
        columns.append(RelationColumn(name, is_key, *_COLUMN.unpack_from(frame, position)))
        position += 8
    return Relation(oid, schema or "pg_catalog", table, identity, tuple(columns))


def _name(frame: bytes, position: int) -> tuple[str, int]:
    end = frame.find(b"\0", position)
    if end < 0:
        raise ProtocolError(f"a name without an end: {frame[:80].hex()}")
    return frame[position:end].decode(), end + 1


def lsn_text(position: int) -> str:
    """Return a position of the log as PostgreSQL writes it.

    >>> lsn_text(22042504), position_of("0/1505788")
    ('0/1505788', 22042504)
    """
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


def position_of(lsn: str) -> int:
    """Return the position that an LSN such as `0/1505788` stands for."""
    high, low = lsn.split("/")
    return (int(high, 16) << 32) + int(low, 16)
