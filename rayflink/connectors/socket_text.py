"""Text from a TCP server, split at a delimiter."""

from __future__ import annotations

import codecs
import socket
from collections import deque
from dataclasses import dataclass
from typing import Any

from rayflink.common.connector_base.source import (
    END,
    PENDING,
    Boundedness,
    Polled,
    ReaderContext,
    SourceReader,
)
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.records.batches import RowBatch
from rayflink.common.records.charsets import charset
from rayflink.common.typeinfo import Types

from .single_split import SingleSplitSource

_CHUNK_BYTES = 8192
_CONNECT_TIMEOUT_SECONDS = 5.0
_IDLE_POLL_MS = 5


class LineSplitter:
    """Cuts text that arrives in pieces at a delimiter; for the delimiter `\\n` a `\\r` before it is dropped as well.

    Args:
        delimiter: not empty.
    """

    def __init__(self, delimiter: str = "\n") -> None:
        if not delimiter:
            raise ValueError("the delimiter must not be empty")
        self._delimiter = delimiter
        self._rest = ""

    def feed(self, text: str) -> list[str]:
        """Return the records that `text` completes."""
        *records, self._rest = (self._rest + text).split(self._delimiter)
        if self._delimiter == "\n":
            records = [record[:-1] if record.endswith("\r") else record for record in records]
        return records

    def finish(self) -> list[str]:
        """Return the record after the last delimiter, if it is not empty."""
        rest, self._rest = self._rest, ""
        return [rest] if rest else []


@dataclass(frozen=True)
class SocketSplit:
    """The one connection; it has no position, for a socket cannot be read again."""


class SocketTextSource(SingleSplitSource[str]):
    """Emits the text a server sends, record by record, from one reader; at most once.

    When the server ends the connection the reader connects again, up to `max_retries` times, and then ends. Text after
    the last delimiter is the last record; it is carried over a new connection, as in Flink. A server that cannot be
    reached when no retry is left is an error.

    Args:
        host: of the server.
        port: in [1, 65535].
        delimiter: between records.
        max_retries: new connections after an end; 0: none, -1: for ever.
        retry_ms: pause before each of them.
        encoding: of the text.

    Raises:
        ValueError: port or max_retries out of range, delimiter empty.
        UnknownCharset: there is no such encoding.
    """

    def __init__(
        self,
        host: str,
        port: int,
        delimiter: str = "\n",
        max_retries: int = 0,
        retry_ms: int = 500,
        encoding: str = "utf-8",
    ) -> None:
        if not 1 <= port <= 65535:
            raise ValueError(f"port must be in [1, 65535], found {port}")
        if max_retries < -1:
            raise ValueError(f"max_retries must be >= -1, found {max_retries}")
        LineSplitter(delimiter)
        charset(encoding)
        self.host, self.port, self.delimiter = host, port, delimiter
        self.max_retries, self.retry_ms, self.encoding = max_retries, retry_ms, encoding

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def produced_type(self) -> TypeInformation:
        return Types.STRING()

    def first_split(self) -> SocketSplit:
        return SocketSplit()

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        return SocketTextReader(self, ctx)


class SocketTextReader(SourceReader):
    """Reads the connection without blocking."""

    def __init__(self, source: SocketTextSource, ctx: ReaderContext) -> None:
        self._source, self._ctx = source, ctx
        self._splitter = LineSplitter(source.delimiter)
        self._records: deque[str] = deque()
        self._socket: socket.socket | None = None
        self._retries = 0
        self._retry_at_ms = 0
        self._split: SocketSplit | None = None
        self._no_more = self._ended = False

    def add_splits(self, splits: list[Any]) -> None:
        self._split = splits[-1]

    def notify_no_more_splits(self) -> None:
        self._no_more = True

    def needs_split(self) -> bool:
        return self._split is None and not self._no_more

    def poll(self, max_records: int) -> Polled:
        while not self._records:
            if self._ended or self._split is None:
                return END if self._ended or self._no_more else PENDING
            if self._socket is None and not self._connected():
                return PENDING
            if not self._received():
                return PENDING
        count = min(max_records, len(self._records))
        return RowBatch([self._records.popleft() for _ in range(count)])

    def _connected(self) -> bool:
        if self._ctx.now_ms() < self._retry_at_ms:
            return False
        source = self._source
        try:
            self._socket = socket.create_connection((source.host, source.port), _CONNECT_TIMEOUT_SECONDS)
        except OSError as error:
            if not self._may_retry():
                remedy = "start the server first, or set max_retries"
                raise ConnectionError(f"cannot connect to {source.host}:{source.port}: {error}; {remedy}") from error
            self._disconnected()
            return False
        self._socket.setblocking(False)
        self._decoder = codecs.getincrementaldecoder(source.encoding)()
        return True

    def _received(self) -> bool:
        """Read what is there; False when that is nothing."""
        assert self._socket is not None
        try:
            chunk = self._socket.recv(_CHUNK_BYTES)
        except BlockingIOError:
            return False
        except ConnectionError:
            chunk = b""
        if chunk:
            self._records.extend(self._splitter.feed(self._decoded(chunk)))
        else:
            self._records.extend(self._splitter.feed(self._decoded(b"", True)))
            self._disconnected()
        return True

    def _decoded(self, chunk: bytes, final: bool = False) -> str:
        try:
            return self._decoder.decode(chunk, final)
        except UnicodeDecodeError as error:
            source, wrong = self._source, error.object[error.start : error.start + 16]
            problem = f"{source.host}:{source.port} sent {wrong!r}, which is no {source.encoding} text ({error.reason})"
            raise ValueError(f"{problem}; pass the encoding= that the server writes") from error

    def _disconnected(self) -> None:
        self._hang_up()
        if self._may_retry():
            self._retries += 1
            self._retry_at_ms = self._ctx.now_ms() + self._source.retry_ms
        else:
            self._ended = True
            self._records.extend(self._splitter.finish())

    def _may_retry(self) -> bool:
        return self._source.max_retries == -1 or self._retries < self._source.max_retries

    def next_poll_ms(self) -> int | None:
        if self._split is None or self._ended:
            return None
        now = self._ctx.now_ms()
        return max(now + 1, self._retry_at_ms) if self._socket is None else now + _IDLE_POLL_MS

    def snapshot_state(self) -> list[Any]:
        return [] if self._split is None or self._ended else [self._split]

    def _hang_up(self) -> None:
        connection, self._socket = self._socket, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        self._hang_up()
