"""The thread that reads streams. A request asks for facts and entries at once, so a trimmed entry is not overlooked."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.text_output.logs import get_logger

from ..message_logs.fetch_queue import FetchQueue, start_thread
from ..message_logs.missing_messages import MissingMessages
from ..message_logs.outages import OutageWatch
from .redis_client import Client, RedisServer
from .redis_entries import RawEntry
from .redis_errors import MissingEntries, RedisOutage, failure_of
from .redis_positions import EntryId, RedisStreamSplit, StreamInfo, id_of, shown_id

log = get_logger(__name__)

MOST_ENTRIES = 2_000
"""Entries of one stream that a request asks for."""
WAIT_MS = 100
"""Milliseconds for which the server holds a request while there is no entry."""


@dataclass(frozen=True)
class RedisRun:
    """Entries of one stream that one request brought.

    Args:
        split: at the position before them.
        messages: entries, in order.
    """

    split: RedisStreamSplit
    messages: Sequence[RawEntry]

    @property
    def split_id(self) -> str:
        """Return the key of the stream."""
        return self.split.split_id

    def timestamps(self, start: int, stop: int) -> list[int]:
        """Return the epoch milliseconds in the ids of entries [start, stop)."""
        return [entry.entry_id[0] for entry in self.messages[start:stop]]

    def place_of(self, index: int) -> str:
        """Return stream and id of an entry."""
        return f"stream {self.split.stream!r}, entry {shown_id(self.messages[index].entry_id)}"

    def split_after(self, count: int) -> RedisStreamSplit:
        """Return the split behind the first `count` entries."""
        if not count:
            return self.split
        read = self.split.entries_read
        return replace(
            self.split, last_id=self.messages[count - 1].entry_id, is_started=True,
            entries_read=None if read is None else read + count,
        )  # fmt: skip


class RedisFetcher:
    """Reads the streams of one subtask.

    Args:
        server: to read from.
        queue: that the reader empties.
        missing: the policy for entries that are gone before they were read.
        group: consumer group whose position follows the checkpoints; "": none.
    """

    def __init__(
        self, server: RedisServer, queue: FetchQueue[RedisRun], missing: MissingMessages, group: str,
        metrics: MetricGroup,
    ) -> None:  # fmt: skip
        self._server, self._queue, self._missing, self._group = server, queue, missing, group
        self._missed, self._reconnects = metrics.counter("numMessagesMissing"), metrics.counter("numReconnects")
        self._lock = threading.Lock()
        self._splits: dict[str, RedisStreamSplit] = {}
        self._to_confirm: dict[str, EntryId] = {}
        self._thread: threading.Thread | None = None

    # the reader's side

    def add_split(self, split: RedisStreamSplit) -> None:
        with self._lock:
            self._splits[split.stream] = split
        if self._thread is None:
            self._thread = start_thread(self._run, self._queue, "redis-streams")

    def remove_split(self, split_id: str) -> None:
        with self._lock:
            self._splits.pop(split_id, None)

    def confirm(self, stream: str, entry_id: EntryId) -> None:
        """Move the position of the consumer group, soon."""
        if self._group:
            with self._lock:
                self._to_confirm[stream] = entry_id

    def close(self) -> None:
        """End the thread; it closes its connection."""
        self._queue.close()

    # the thread's side

    def _run(self) -> None:
        outage = OutageWatch(self._server.place, self._server.outage_timeout_ms, self._reconnects.inc)
        client: Client | None = None
        try:
            while not self._queue.is_closed:
                try:
                    client = client or self._server.connect("source")
                    self._confirm(client)
                    has_read = self._fetch(client)
                    outage.end()
                except RedisOutage as error:
                    _close(client)
                    client = None
                    self._queue.wait(outage.pause_s(error))
                    continue
                if not has_read:
                    self._await_entries(client)
        finally:
            _close(client)

    def _fetch(self, client: Client) -> bool:
        """Put one run of each stream that has room into the queue; return whether there was an entry."""
        room = set(self._queue.with_room())
        with self._lock:
            splits = [split for stream, split in self._splits.items() if stream in room]
        if not splits:
            self._queue.wait(WAIT_MS / 1000)
            return True
        answers = self._ask(client, splits)
        has_read = False
        for number, split in enumerate(splits):
            facts, answer = answers[2 * number : 2 * number + 2]
            run = self._as_run(split, facts, answer)
            has_read = has_read or bool(run.messages)
            with self._lock:
                if split.stream not in self._splits:
                    continue
                self._splits[split.stream] = run.split_after(len(run.messages))
            if run.messages or run.split != split:
                self._queue.put(run)
        return has_read

    def _ask(self, client: Client, splits: Sequence[RedisStreamSplit]) -> Sequence[object]:
        pipeline = client.pipeline(transaction=True)
        for split in splits:
            pipeline.execute_command("XINFO STREAM", split.stream)
            end = "+" if split.stopping_id is None else shown_id(split.stopping_id)
            pipeline.execute_command(
                "XRANGE", split.stream, f"({shown_id(split.last_id)}", end, "COUNT", MOST_ENTRIES
            )
        names = ", ".join(repr(split.stream) for split in splits)
        try:
            return pipeline.execute(raise_on_error=False)
        except Exception as error:  # of the client library, or of the socket
            raise failure_of(error, f"reading stream {names}", self._server.place) from error

    def _as_run(self, split: RedisStreamSplit, facts: object, answer: object) -> RedisRun:
        """Return the entries of an answer, behind a position from which no entry is missing."""
        doing = f"reading stream {split.stream!r}"
        if isinstance(answer, Exception):
            raise failure_of(answer, doing, self._server.place)
        if isinstance(facts, Exception) and "no such key" not in str(facts):
            raise failure_of(facts, doing, self._server.place)
        info = StreamInfo() if isinstance(facts, Exception) else StreamInfo.of_answer(facts)  # type: ignore[arg-type]
        self._check(split, info)
        entries = [RawEntry(split.stream, id_of(entry), pairs) for entry, pairs in answer if pairs]  # type: ignore[attr-defined]
        counted = info.counted(split)
        if not entries and split.stopping_id is not None:  # the stream has nothing more up to the end
            counted = replace(counted, last_id=split.stopping_id)
        return RedisRun(counted, entries)

    def _check(self, split: RedisStreamSplit, info: StreamInfo) -> None:
        if info.is_behind(split):
            problem = (
                f"stream {split.stream!r} of Redis at {self._server.place} ends at {shown_id(info.last_id)}, and was "
                f"read up to {shown_id(split.last_id)}: it was deleted, or the server has lost its end"
            )
            raise MissingEntries(problem, "start the job anew, without its checkpoint, if the stream is another one")
        missing = info.missing(split)
        if missing == 0:
            return
        count = "an unknown number of" if missing is None else missing
        problem = f"{count} entries behind {shown_id(split.last_id)} of stream {split.stream!r} are gone unread"
        if self._missing is MissingMessages.FAIL:
            remedy = "let streams keep more (MAXLEN, XTRIM), or set_missing_messages(MissingMessages.SKIP)"
            raise MissingEntries(problem, remedy)
        log.warning("%s", problem)
        self._missed.inc(missing or 1)

    def _await_entries(self, client: Client) -> None:
        """Wait for the next entry of any stream, in one request that the server holds."""
        with self._lock:
            splits = [split for split in self._splits.values() if not split.is_finished]
        if not splits:
            self._queue.wait(WAIT_MS / 1000)
            return
        places = [*(split.stream for split in splits), *(shown_id(split.last_id) for split in splits)]
        try:
            client.execute_command("XREAD", "COUNT", 1, "BLOCK", WAIT_MS, "STREAMS", *places)
        except Exception as error:  # of the client library
            failure = failure_of(error, "waiting for entries", self._server.place)
            if not isinstance(failure, RedisOutage):
                raise failure from error  # an outage is found by the next request

    def _confirm(self, client: Client) -> None:
        with self._lock:
            places, self._to_confirm = self._to_confirm, {}
        for stream, entry_id in places.items():
            try:
                _move_group(client, stream, self._group, shown_id(entry_id))
            except Exception as error:
                failure = failure_of(error, f"moving group {self._group!r}", self._server.place)
                if isinstance(failure, RedisOutage):
                    with self._lock:
                        self._to_confirm = {stream: entry_id, **self._to_confirm}
                    raise failure from error
                log.warning("%s", failure)  # the job needs no group


def _move_group(client: Client, stream: str, group: str, entry_id: str) -> None:
    try:
        client.execute_command("XGROUP SETID", stream, group, entry_id)
    except Exception as error:
        if "NOGROUP" not in str(error):
            raise
        client.execute_command("XGROUP CREATE", stream, group, entry_id)


def _close(client: Client | None) -> None:
    if client is not None:
        try:
            client.close()
        except Exception as error:  # a connection that is lost anyway
            log.debug("%s", error)


__all__ = ["RedisFetcher", "RedisRun"]
