"""The source of Redis Streams, and its builder."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

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
from rayflink.common.time import Duration, to_millis
from rayflink.user_types import UserRecord

from ..message_logs.fetch_queue import FetchQueue
from ..message_logs.log_reader import LogReader
from ..message_logs.log_splits import LogSplits, LogSplitsState
from ..message_logs.missing_messages import MissingMessages
from ..message_logs.outages import OutageWatch
from .redis_client import RedisServer
from .redis_entries import EntrySchema, FieldSchema
from .redis_errors import RedisError, RedisOutage, failure_of
from .redis_fetcher import RedisFetcher, RedisRun
from .redis_positions import RedisStreamPosition, RedisStreamSplit, StreamInfo


@dataclass(frozen=True)
class RedisStreamSettings:
    """The settings of a source.

    Args:
        streams: their keys.
        starting, stopping: positions in each stream; stopping None: there is no end.
        schema: decodes entries.
        group: consumer group whose position follows the checkpoints; "": none.
    """

    server: RedisServer
    streams: tuple[str, ...]
    starting: RedisStreamPosition = RedisStreamPosition()
    stopping: RedisStreamPosition | None = None
    schema: DeserializationSchema = field(default_factory=EntrySchema)
    malformed: MalformedRecords = field(default_factory=MalformedRecords.fail)
    missing: MissingMessages = MissingMessages.FAIL
    group: str = ""


class RedisStreamSource(Source[UserRecord]):
    """Reads entries of Redis Streams; `RedisStreamSource.builder()` makes one.

    A stream is a split: its last id is part of checkpoints, and entries are read again from there after a failure. So
    each entry counts once in the state of a job, as long as the stream still has it. Each stream has a watermark of its
    own; the timestamps of records are the milliseconds in the ids of their entries.
    """

    def __init__(self, settings: RedisStreamSettings) -> None:
        self._settings = settings

    @staticmethod
    def builder() -> RedisStreamSourceBuilder:
        """Return a builder without settings."""
        return RedisStreamSourceBuilder()

    def __repr__(self) -> str:
        return f"RedisStreamSource({self._settings.server.place}, streams={list(self._settings.streams)})"

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
        queue: FetchQueue[RedisRun] = FetchQueue()
        fetcher = RedisFetcher(settings.server, queue, settings.missing, settings.group, metrics)
        decoder = MessageDecoder(settings.schema, settings.malformed, metrics)
        return _RedisReader(ctx, queue, fetcher, decoder)


class _RedisReader(LogReader[RedisStreamSplit, RedisRun]):
    """Reports the positions of complete checkpoints to the fetcher."""

    def __init__(
        self, ctx: ReaderContext, queue: FetchQueue[RedisRun], fetcher: RedisFetcher, decoder: MessageDecoder
    ) -> None:
        super().__init__(ctx, queue, fetcher, decoder)
        self._positions = fetcher

    def notify_checkpoint_complete(self, checkpoint_id: int, splits: Sequence[RedisStreamSplit]) -> None:
        for split in splits:
            if split.is_started:
                self._positions.confirm(split.stream, split.last_id)


class _Lookup:
    """Finds the first positions of streams.

    Args:
        settings: of the source.
    """

    def __init__(self, settings: RedisStreamSettings) -> None:
        self._settings, self._is_stopped = settings, False

    def resolve(self, streams: Sequence[str]) -> list[RedisStreamSplit]:
        """Return the splits of streams; a stream that is not there is empty.

        Raises:
            RedisError: the server does not answer, or refuses.
        """
        server = self._settings.server
        outage = OutageWatch(server.place, server.outage_timeout_ms)
        while True:
            try:
                return self._resolve(streams)
            except RedisOutage as error:
                pause_s = outage.pause_s(error)
                if self._is_stopped:
                    raise
                time.sleep(pause_s)

    def stop(self) -> None:
        """End the tries."""
        self._is_stopped = True

    def _resolve(self, streams: Sequence[str]) -> list[RedisStreamSplit]:
        settings, client = self._settings, self._settings.server.connect("lookup")
        try:
            return [
                settings.starting.start_in(stream, _info(partial(client.execute_command, "XINFO STREAM", stream),
                                                         stream, settings.server.place), settings.stopping)
                for stream in streams
            ]  # fmt: skip
        finally:
            client.close()


def _info(ask: partial[object], stream: str, place: str) -> StreamInfo:
    try:
        answer = ask()
    except Exception as error:  # of the client library
        if "no such key" in str(error):
            return StreamInfo()
        raise failure_of(error, f"looking up stream {stream!r}", place) from error
    assert isinstance(answer, list)
    return StreamInfo.of_answer(answer)


def _enumerator(ctx: EnumeratorContext, settings: RedisStreamSettings, state: LogSplitsState | None) -> LogSplits:
    lookup = _Lookup(settings)
    return LogSplits(ctx, settings.streams, lookup.resolve, settings.stopping is not None, lookup.stop, state)


class RedisStreamSourceBuilder:
    """Collects the settings of a `RedisStreamSource`; `set_url` and `set_streams` are required."""

    def __init__(self) -> None:
        self._url, self._outage_ms = "", 60_000
        self._settings: dict[str, object] = {}
        self._streams: tuple[str, ...] = ()

    def set_url(self, url: str) -> RedisStreamSourceBuilder:
        """Set the server: `redis://user:password@host:6379/0`, `rediss://...` for TLS, or `unix:///path`.

        Raises:
            RedisError: it is no URL of Redis, or the library is not installed.
        """
        RedisServer(url)
        self._url = url
        return self

    def set_streams(self, *streams: str) -> RedisStreamSourceBuilder:
        """Set the keys of the streams; those that are not there yet are empty.

        Raises:
            ValueError: there is none, or one twice.
        """
        if not streams or len(set(streams)) < len(streams) or not all(streams):
            raise ValueError(f"found {streams!r}, wanted keys of streams, each once")
        self._streams = streams
        return self

    def set_starting_position(self, position: RedisStreamPosition) -> RedisStreamSourceBuilder:
        """Set where reading starts without a checkpoint; the default is `RedisStreamPosition.earliest()`."""
        self._settings["starting"] = position
        return self

    def set_bounded(self, position: RedisStreamPosition) -> RedisStreamSourceBuilder:
        """Set where each stream ends, such as `RedisStreamPosition.latest()`; the default is that none does."""
        self._settings["stopping"] = position
        return self

    def set_value_field(self, name: str, schema: DeserializationSchema) -> RedisStreamSourceBuilder:
        """Set the field that has the record, and what decodes it; the default is that a record is a `RedisEntry`."""
        self._settings["schema"] = FieldSchema(name, schema)
        return self

    def set_malformed_records(self, policy: MalformedRecords) -> RedisStreamSourceBuilder:
        """Set what becomes of entries that cannot be decoded; the default is `MalformedRecords.fail()`."""
        self._settings["malformed"] = policy
        return self

    def set_missing_messages(self, policy: MissingMessages) -> RedisStreamSourceBuilder:
        """Set what becomes of entries that Redis deleted unread; the default is `MissingMessages.FAIL`."""
        self._settings["missing"] = policy
        return self

    def set_group(self, group: str) -> RedisStreamSourceBuilder:
        """Set a consumer group whose position follows complete checkpoints, for `XINFO GROUPS`; the default is none.

        The source does not read by the group, so no entry is pending in it.
        """
        self._settings["group"] = group
        return self

    def set_outage_timeout(self, timeout: Duration | int) -> RedisStreamSourceBuilder:
        """Set how long the server may be away until the job fails, in milliseconds; the default is a minute."""
        self._outage_ms = to_millis(timeout)
        return self

    def build(self) -> RedisStreamSource:
        """Return the source.

        Raises:
            RedisError: a required setting is missing.
        """
        if not self._url or not self._streams:
            missing = "set_streams" if self._url else "set_url"
            raise RedisError(f"the source has no {missing.removeprefix('set_')}", f"call {missing}(...) of its builder")
        settings = RedisStreamSettings(RedisServer(self._url, self._outage_ms), self._streams)
        return RedisStreamSource(replace(settings, **self._settings))  # type: ignore[arg-type]


__all__ = ["RedisStreamSource", "RedisStreamSourceBuilder"]
