"""The source of NATS JetStream, and its builder."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rayflink.common.connector_base.malformed_records import MalformedRecords
from rayflink.common.connector_base.message_decoder import MessageDecoder
from rayflink.common.connector_base.source import (
    Boundedness,
    EnumeratorContext,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.serialization import DeserializationSchema
from rayflink.user_types import UserRecord

from ..message_logs.fetch_queue import FetchQueue
from ..message_logs.log_reader import LogReader
from ..message_logs.log_splits import LogSplits, LogSplitsState
from ..message_logs.missing_messages import MissingMessages
from ..message_logs.outages import OutageWatch
from .nats_connection import NatsConnection, with_connection
from .nats_errors import NatsError, NatsOutage, NatsRefusal
from .nats_fetcher import NatsFetcher, NatsRun
from .nats_messages import DataSchema, MessageSchema
from .nats_positions import NatsSplit, NatsStreamPosition, PositionKind, name_of_split, overlap
from .nats_server import NatsServer, NatsServerBuilder


@dataclass(frozen=True)
class NatsSourceSettings:
    """The settings of a source.

    Args:
        subjects: filters that have no message in common; (""): all messages.
        starting, stopping: positions in the stream; stopping None: there is no end.
        schema: decodes messages.
    """

    server: NatsServer
    stream: str
    subjects: tuple[str, ...] = ("",)
    starting: NatsStreamPosition = NatsStreamPosition()
    stopping: NatsStreamPosition | None = None
    schema: DeserializationSchema = field(default_factory=MessageSchema)
    malformed: MalformedRecords = field(default_factory=MalformedRecords.fail)
    missing: MissingMessages = MissingMessages.FAIL


class NatsSource(Source[UserRecord]):
    """Reads a stream of NATS JetStream; `NatsSource.builder()` makes one.

    The number of the last message is part of checkpoints, and messages are read again from there after a failure. So
    each message counts once in the state of a job, as long as the stream still has it. Each subject that is set is a
    split with a watermark of its own; the timestamps of records are the times at which the stream took the messages.
    """

    def __init__(self, settings: NatsSourceSettings) -> None:
        self._settings = settings

    @staticmethod
    def builder() -> NatsSourceBuilder:
        """Return a builder without settings."""
        return NatsSourceBuilder()

    def __repr__(self) -> str:
        return f"NatsSource({self._settings.server.place}, stream={self._settings.stream!r})"

    @property
    def boundedness(self) -> Boundedness:
        is_bounded = self._settings.stopping is not None
        return Boundedness.BOUNDED if is_bounded else Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def produced_type(self) -> TypeInformation | None:
        return self._settings.schema.get_produced_type()

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return _enumerator(ctx, self._settings, None)

    def restore_enumerator(self, ctx: EnumeratorContext, state: LogSplitsState) -> SplitEnumerator:
        return _enumerator(ctx, self._settings, state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        settings, metrics = self._settings, ctx.metrics or MetricGroup()
        queue: FetchQueue[NatsRun] = FetchQueue()
        fetcher = NatsFetcher(settings.server, queue, settings.missing, metrics)
        decoder = MessageDecoder(settings.schema, settings.malformed, metrics)
        return LogReader[NatsSplit, NatsRun](ctx, queue, fetcher, decoder)


class _Lookup:
    """Finds the first positions of splits.

    Args:
        settings: of the source.
    """

    def __init__(self, settings: NatsSourceSettings) -> None:
        self._settings, self._is_stopped = settings, False

    def resolve(self, names: Sequence[str]) -> list[NatsSplit]:
        """Return splits.

        Raises:
            NatsError: the server does not answer, or refuses, or the stream cannot be read.
        """
        settings, server = self._settings, self._settings.server
        subjects = [subject for subject in settings.subjects if name_of_split(settings.stream, subject) in names]
        outage = OutageWatch(server.place, server.outage_timeout_ms)
        while True:
            try:
                return asyncio.run(with_connection(server, "lookup", lambda to: self._resolve(to, subjects)))
            except NatsOutage as error:
                pause_s = outage.pause_s(error)
                if self._is_stopped:
                    raise
                time.sleep(pause_s)

    def stop(self) -> None:
        """End the tries."""
        self._is_stopped = True

    async def _resolve(self, connection: NatsConnection, subjects: Sequence[str]) -> list[NatsSplit]:
        settings = self._settings
        stream, starting, stopping = settings.stream, settings.starting, settings.stopping
        facts = await connection.facts(stream)
        if facts.retention != "limits":
            problem = f"stream {stream!r} of NATS at {settings.server.place} removes what was read"
            problem += f" (retention {facts.retention}), so it cannot be read again after a failure"
            remedy = "create the stream with retention limits, and with max_age for what may go"
            raise NatsRefusal(problem, f"{remedy}; or read another of that retention, which has this one as its source")
        splits = []
        for subject in subjects:
            start = facts.start(starting, await _look_up(connection, stream, subject, starting))
            stop = None
            if stopping is not None:
                stop = facts.stop(stopping, await _look_up(connection, stream, "", stopping))
            splits.append(NatsSplit(stream, subject, facts.created, start, stop))
        return splits


async def _look_up(connection: NatsConnection, stream: str, subject: str, position: NatsStreamPosition) -> int:
    """Return the number before a position that only the server can find; 0 for others."""
    config: dict[str, object] = {"ack_policy": "none", "replay_policy": "instant", "mem_storage": True}
    match position.kind:
        case PositionKind.LAST:
            config["deliver_policy"] = "last"
        case PositionKind.TIMESTAMP:
            config["deliver_policy"] = "by_start_time"
            config["opt_start_time"] = _rfc3339(position.number)
        case _:
            return 0
    if subject:
        config["filter_subject"] = subject
    doing = f"looking up a position in stream {stream!r}"
    request = {"stream_name": stream, "config": config}
    answer = await connection.ask(f"CONSUMER.CREATE.{stream}", request, doing)
    await connection.ask(f"CONSUMER.DELETE.{stream}.{answer['name']}", {}, doing)
    return int(answer["delivered"]["stream_seq"])


def _rfc3339(timestamp_ms: int) -> str:
    """Return a time as JetStream reads it.

    >>> _rfc3339(1_700_000_000_123)
    '2023-11-14T22:13:20.123000+00:00'
    """
    from datetime import datetime, timedelta, timezone

    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (epoch + timedelta(milliseconds=timestamp_ms)).isoformat(timespec="microseconds")


def _enumerator(ctx: EnumeratorContext, settings: NatsSourceSettings, state: LogSplitsState | None) -> LogSplits:
    lookup = _Lookup(settings)
    names = [name_of_split(settings.stream, subject) for subject in settings.subjects]
    return LogSplits(ctx, names, lookup.resolve, settings.stopping is not None, lookup.stop, state)


class NatsSourceBuilder(NatsServerBuilder):
    """Collects the settings of a `NatsSource`; `set_servers` and `set_stream` are required."""

    def __init__(self) -> None:
        super().__init__()
        self._stream = ""
        self._settings: dict[str, object] = {}

    def set_stream(self, name: str) -> NatsSourceBuilder:
        """Set the stream, which must be there.

        Raises:
            NatsError: it is no name of a stream.
        """
        if not name or any(character in name for character in " .*>"):
            raise NatsError(f"{name!r} is no name of a stream", "write it without blanks, dots, * and >")
        self._stream = name
        return self

    def set_subjects(self, *filters: str) -> NatsSourceBuilder:
        """Set the subjects that are read, such as "orders.*", each a split; the default is one split with all.

        Raises:
            NatsError: there is none, or two have messages in common.
        """
        if not filters or not all(filters):
            raise NatsError(f"found subjects {filters!r}, wanted at least one", "write them as 'orders.*'")
        for index, subject in enumerate(filters):
            for other in filters[index + 1 :]:
                if overlap(subject, other):
                    problem = f"a message may be of both {subject!r} and {other!r}, and would be read twice"
                    raise NatsError(problem, "give subjects that have no message in common")
        self._settings["subjects"] = filters
        return self

    def set_starting_position(self, position: NatsStreamPosition) -> NatsSourceBuilder:
        """Set where reading starts without a checkpoint; the default is `NatsStreamPosition.earliest()`."""
        self._settings["starting"] = position
        return self

    def set_bounded(self, position: NatsStreamPosition) -> NatsSourceBuilder:
        """Set where reading ends, such as `NatsStreamPosition.latest()`; the default is that it does not."""
        self._settings["stopping"] = position
        return self

    def set_deserialization_schema(self, schema: DeserializationSchema) -> NatsSourceBuilder:
        """Set what decodes the data of messages; the default is that a record is a `NatsMessage`."""
        self._settings["schema"] = DataSchema(schema)
        return self

    def set_malformed_records(self, policy: MalformedRecords) -> NatsSourceBuilder:
        """Set what becomes of messages that cannot be decoded; the default is `MalformedRecords.fail()`."""
        self._settings["malformed"] = policy
        return self

    def set_missing_messages(self, policy: MissingMessages) -> NatsSourceBuilder:
        """Set what becomes of messages that the stream removed unread; the default is `MissingMessages.FAIL`."""
        self._settings["missing"] = policy
        return self

    def build(self) -> NatsSource:
        """Return the source.

        Raises:
            NatsError: a required setting is missing.
        """
        server = self._checked_server()
        if not self._stream:
            raise NatsError("the source has no stream", "call set_stream(...) of its builder")
        settings = NatsSourceSettings(server, self._stream)
        return NatsSource(replace(settings, **self._settings))  # type: ignore[arg-type]


__all__ = ["NatsSource", "NatsSourceBuilder"]
