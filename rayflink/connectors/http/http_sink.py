"""A sink that sends records to an HTTP service, at least once."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

from rayflink.common.connector_base.sink import Committer, Sink, SinkWriter, WriterContext, all_or_named
from rayflink.common.errors import shorten
from rayflink.common.functions.type_variables import Input
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import Batch, RowBatch, rows_of
from rayflink.common.serialization import SerializationSchema
from rayflink.user_types import UserRecord

from .http_client import HttpClient, HttpError, HttpTarget, Refusal, library

QUEUED_PER_CONNECTION = 2
"""Requests that wait for each connection, at most, before the writer waits."""


@dataclass(frozen=True)
class RefusedRecord:
    """A record that a service refused, as it goes to the dead letters.

    Args:
        record: the record.
        status: of HTTP.
        answer: the beginning of the answer.
    """

    record: UserRecord
    status: int
    answer: str


@dataclass(frozen=True)
class HttpSinkSettings:
    """The way in which records become requests.

    Args:
        records_per_request: their bytes are joined to one body.
        linger_ms: time after which fewer records are sent as well; a checkpoint sends them too.
        separator: follows each record in a body of several.
        requests_at_once: of each writer, at most.

    Raises:
        HttpError: a number is below 1.
    """

    records_per_request: int = 1
    linger_ms: int = 100
    separator: bytes = b"\n"
    requests_at_once: int = 8

    def __post_init__(self) -> None:
        if self.records_per_request < 1 or self.requests_at_once < 1:
            problem = f"{self.records_per_request} records a request, {self.requests_at_once} requests at once"
            raise HttpError(problem, "use at least 1 of each")


class HttpSink(Sink[Input]):
    """Sends records to an HTTP service, and repeats what meets an outage; each record arrives at least once.

    A checkpoint waits until the service has taken all records before it. The requests of one writer may overtake each
    other, unless `requests_at_once` is 1.

    A request that is refused (a status of 4xx other than 408, 425 and 429) fails the job, or its records go to
    another sink as `RefusedRecord` objects.

    >>> from rayflink.common.serialization import SimpleStringSchema
    >>> HttpSink("https://me:secret@example.org/events?key=1", SimpleStringSchema())
    HttpSink(https://example.org/events)

    Args:
        target: a URL, or an `HttpTarget` with method, headers, timeout and retries.
        schema: encodes the records.
        settings: records of a request, and requests at once.
        dead_letters: takes refused records; None: a refusal fails the job.

    Raises:
        HttpError: the URL is none, or urllib3 is not installed.
    """

    name = "Sink: HTTP"

    def __init__(
        self,
        target: str | HttpTarget,
        schema: SerializationSchema,
        settings: HttpSinkSettings | None = None,
        dead_letters: Sink[RefusedRecord] | None = None,
    ) -> None:
        library()
        self._target = HttpTarget(target) if isinstance(target, str) else target
        self._schema, self._settings, self._dead_letters = schema, settings or HttpSinkSettings(), dead_letters

    def __repr__(self) -> str:
        return f"HttpSink({self._target.place})"

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        dead_letters = None if self._dead_letters is None else self._dead_letters.create_writer(ctx)
        return HttpWriter(self._target, self._schema, self._settings, dead_letters, ctx)

    def create_committer(self) -> Committer | None:
        return None if self._dead_letters is None else self._dead_letters.create_committer()


@dataclass(slots=True)
class _Request:
    records: Sequence[UserRecord]
    answer: Future[Refusal | None]


class HttpWriter(SinkWriter):
    """Sends the requests of one subtask, several at once, and has the refused records written elsewhere.

    Args:
        dead_letters: the writer for refused records, whose state and committables are this writer's; None: none.
    """

    def __init__(
        self,
        target: HttpTarget,
        schema: SerializationSchema,
        settings: HttpSinkSettings,
        dead_letters: SinkWriter | None,
        ctx: WriterContext,
    ) -> None:
        self._target, self._schema, self._settings, self._dead_letters = target, schema, settings, dead_letters
        self._ctx, group = ctx, ctx.metrics or MetricGroup()
        self._sent, self._refused = group.counter("numRequestsSent"), group.counter("numRecordsRefused")
        retries = group.counter("numRequestRetries")
        self._closing = Event()
        self._client = HttpClient(target, settings.requests_at_once, retries.inc, self._closing)
        self._threads = ThreadPoolExecutor(settings.requests_at_once, "http-sink")
        self._under_way: deque[_Request] = deque()
        self._buffer: list[tuple[UserRecord, bytes]] = []
        self._send_ms: int | None = None
        if dead_letters is not None:
            self.state_mode = dead_letters.state_mode  # type: ignore[misc]  # that of the writer inside

    def write(self, batch: Batch) -> None:
        records = rows_of(batch)
        bodies = all_or_named(lambda _: list(self._schema.serialize_batch(batch)), self._schema.serialize, records)
        self._buffer += [(record, body) for record, body in zip(records, bodies, strict=True) if body is not None]
        size = self._settings.records_per_request
        whole = len(self._buffer) - len(self._buffer) % size
        for start in range(0, whole, size):
            self._submit(self._buffer[start : start + size])
        del self._buffer[:whole]
        if not self._buffer:
            self._send_ms = None
        elif self._send_ms is None or whole:
            self._send_ms = self._ctx.now_ms() + self._settings.linger_ms

    def _send_rest(self) -> None:
        if self._buffer:
            self._submit(self._buffer)
        self._buffer, self._send_ms = [], None

    def _submit(self, part: Sequence[tuple[UserRecord, bytes]]) -> None:
        records, bodies = zip(*part, strict=True)
        separator = b"" if self._settings.records_per_request == 1 else self._settings.separator
        body = b"".join(each + separator for each in bodies)
        most = self._settings.requests_at_once * QUEUED_PER_CONNECTION
        while len(self._under_way) >= most or (self._under_way and self._under_way[0].answer.done()):
            self._take_answer()
        self._under_way.append(_Request(records, self._threads.submit(self._client.send, body)))

    def _take_answer(self) -> None:
        """Wait for the answer to the oldest request.

        Raises:
            HttpOutage: the service is away.
            HttpError: it refused the request, and there are no dead letters.
        """
        request = self._under_way.popleft()
        refusal = request.answer.result()
        self._sent.inc()
        if refusal is None:
            return
        self._refused.inc(len(request.records))
        if self._dead_letters is None:
            count = len(request.records)
            problem = f"{self._target.place} refused {count} records with HTTP {refusal.status}: {refusal.answer}"
            first = shorten(request.records[0], 120)
            raise HttpError(f"{problem} (the first is {first})", "correct them, or pass dead_letters to the sink")
        refused = [RefusedRecord(record, refusal.status, refusal.answer) for record in request.records]
        self._dead_letters.write(RowBatch(refused))

    def flush(self, end_of_input: bool) -> None:
        self._send_rest()
        while self._under_way:
            self._take_answer()
        if self._dead_letters is not None:
            self._dead_letters.flush(end_of_input)

    def next_time_ms(self) -> int | None:
        times = (self._send_ms, None if self._dead_letters is None else self._dead_letters.next_time_ms())
        return min((due for due in times if due is not None), default=None)

    def on_time(self, now_ms: int) -> None:
        if self._send_ms is not None and self._send_ms <= now_ms:
            self._send_rest()
        if self._dead_letters is None:
            return
        due = self._dead_letters.next_time_ms()
        if due is not None and due <= now_ms:
            self._dead_letters.on_time(now_ms)

    def snapshot_state(self) -> object:
        return None if self._dead_letters is None else self._dead_letters.snapshot_state()

    def prepare_commit(self) -> Sequence[object]:
        return () if self._dead_letters is None else self._dead_letters.prepare_commit()

    def snapshot_unfinished(self) -> Sequence[object]:
        return () if self._dead_letters is None else self._dead_letters.snapshot_unfinished()

    def close(self) -> None:
        self._closing.set()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._client.close()
        if self._dead_letters is not None:
            self._dead_letters.close()


__all__ = ["HttpSink", "HttpSinkSettings", "RefusedRecord"]
