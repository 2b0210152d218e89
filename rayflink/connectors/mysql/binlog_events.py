"""Events of the binary log as the library python-mysql-replication gives them: the attributes that are used here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class LogPacket(Protocol):
    """The bytes of an event.

    Args:
        log_pos: offset in the file behind the event, of 32 bits; 0: the event is in no file.
        event_size: bytes of the event.
        read_bytes: how many of them are read.
    """

    log_pos: int
    event_size: int
    read_bytes: int

    def read(self, size: int) -> bytes: ...


class LogColumn(Protocol):
    """A column in a description of a table; which attributes it has depends on its type."""

    type: int
    max_length: int
    length_size: int
    precision: int
    decimals: int
    fsp: int
    size: int
    bytes: int
    enum_values: list[str] | None
    set_values: list[str] | None

    @property
    def data(self) -> dict[str, object]: ...


class LogMetadata(Protocol):
    """The part of a description of a table that `binlog_row_metadata` adds."""

    column_name_list: list[str]
    unsigned_column_list: list[bool]


class LogEvent(Protocol):
    """An event; which attributes it has depends on its kind."""

    event_type: int
    timestamp: int
    event_size: int
    packet: LogPacket
    flags: int
    gtid: str
    next_binlog: str
    position: int
    query: str
    schema: str | bytes
    table: str
    table_id: int
    columns: Sequence[LogColumn]
    optional_metadata: LogMetadata
    number_of_columns: int
    columns_present_bitmap: bytes


__all__ = ["LogColumn", "LogEvent", "LogMetadata", "LogPacket"]
