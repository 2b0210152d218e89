"""The two ends of an iteration: what its tail takes goes through a queue to its head, which gives it to the loop again.

Head and tail of one index share a slot and so a process. The queue takes all it is given, for a loop that waits for
itself would stand still: what is more than its memory goes to a file.

An iteration ends by itself. The head sends `EndOfSuperstep` behind what it gives; every task of the loop passes that on
once it has come on all inputs that have not ended, so the first one comes round when the input of the iteration has
ended. It says whether any head gave a record since the one before: when one comes round that says no, the loop is
empty.

A checkpoint goes round as well. The head passes its barrier on at once, and what comes back from then on, until the
tail has put the barrier into the queue, was on its way when the barrier began: it is the head's part of the snapshot. A
head that is restored gives these records again. Ends of supersteps are no part of it: a restored loop begins a new one,
behind the restored records, so that it ends neither before they have gone round nor never. Its number follows the
highest that any head has given, so one that was on its way may be left out.

Source: Carbone et al., Lightweight Asynchronous Snapshots (cyclic graphs); apache/flink
StreamIterationHead, StreamIterationTail, BlockingQueueBroker; Naiad's notion of progress.
"""

from __future__ import annotations

import pickle
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from rayflink.common.configuration import reading
from rayflink.common.options import registry as options
from rayflink.common.records.batches import (
    MAX_TIMESTAMP,
    Batch,
    CheckpointBarrier,
    Element,
    EndOfSuperstep,
    RowBatch,
    Watermark,
    WatermarkStatus,
)
from rayflink.common.user_code.value_bytes import from_bytes, to_bytes
from rayflink.state.errors import RayflinkError

from .base import Operator, OperatorContext, OperatorSnapshot, SourceOperator
from .capabilities import CheckpointListener, DeferredSnapshot, EventHandler
from .user_function import list_of, timestamps_of

_LENGTH_BYTES = 8
_FILE_BYTES = 64 << 20
_IN_FLIGHT = "feedback"
"""The list of batches that were on their way round."""
_SUPERSTEP = "superstep"
"""The list of how many supersteps each head has begun."""

Marker = EndOfSuperstep | CheckpointBarrier
"""The separator of records in the queue."""


class FeedbackSpillError(RayflinkError):
    """Neither memory nor disk has room for the records that are fed back."""

    def __init__(self, folder: str, problem: str) -> None:
        super().__init__(folder, problem)
        self.folder, self.problem = folder, problem

    def __str__(self) -> str:
        return (
            f"what an iteration feeds back cannot be written to {self.folder}: {self.problem}; free space there, set "
            f"{options.TMP_DIRS.key} to a larger disk, or raise {options.FEEDBACK_MEMORY.key}"
        )


@dataclass(frozen=True, slots=True)
class FeedbackStatistics:
    """The batches and markers on their way from the tail of an iteration to its head."""

    in_memory: int
    """Batches and markers in memory."""
    memory_bytes: int
    """Bytes of those batches."""
    in_files: int
    """Batches and markers in files."""
    spilled_bytes: int
    """Bytes that were written to files so far."""


class FeedbackQueue:
    """First in, first out, without a bound: the oldest in memory, what has no room there in files.

    Args:
        memory_bytes: of pickled records in memory.
        folder: of the files; None: the system's for temporary files.
        file_bytes: about the size of one file; one that has been read goes.
    """

    def __init__(self, memory_bytes: int, folder: str | None = None, file_bytes: int = _FILE_BYTES) -> None:
        self._memory_bytes, self._used, self._folder = memory_bytes, 0, folder
        self._head: deque[bytes | Marker] = deque()
        self._file_bytes = file_bytes
        self._files: deque[IO[bytes]] = deque()
        self._in_files, self._written_to, self._read_to = 0, 0, 0
        self._changing = threading.Lock()
        self.on_put: Callable[[], None] = _do_nothing
        self.spilled_bytes = 0

    def put(self, element: Batch | Marker) -> None:
        """Take a batch or a marker; may be called by any thread."""
        data = element if isinstance(element, Marker) else to_bytes((list_of(element), timestamps_of(element)))
        size = len(data) if isinstance(data, bytes) else 0
        with self._changing:
            if self._in_files or (self._head and self._used + size > self._memory_bytes):
                self._write(data)
            else:
                self._head.append(data)
                self._used += size
        self.on_put()

    def take(self) -> bytes | Marker | None:
        """Return the oldest element, a batch as bytes (`batch_of`); None when there is none."""
        with self._changing:
            if self._head:
                data = self._head.popleft()
                self._used -= len(data) if isinstance(data, bytes) else 0
                return data
            return self._read() if self._in_files else None

    def __bool__(self) -> bool:
        return bool(self._head or self._in_files)

    def statistics(self) -> FeedbackStatistics:
        """Return the present sizes."""
        with self._changing:
            return FeedbackStatistics(len(self._head), self._used, self._in_files, self.spilled_bytes)

    def close(self) -> None:
        """Forget everything."""
        with self._changing:
            self._head.clear()
            self._used = self._in_files = 0
            while self._files:
                self._drop_file()

    def _write(self, data: bytes | Marker) -> None:
        body = b"b" + data if isinstance(data, bytes) else b"m" + pickle.dumps(data)
        try:
            if not self._files or self._written_to >= self._file_bytes:
                self._files.append(tempfile.TemporaryFile(prefix="rayflink-feedback-", dir=self._folder))
                self._written_to = 0
            file = self._files[-1]
            file.seek(self._written_to)
            file.write(len(body).to_bytes(_LENGTH_BYTES, "big") + body)
            file.flush()
        except OSError as error:
            raise FeedbackSpillError(self._folder or tempfile.gettempdir(), str(error)) from error
        self._written_to += _LENGTH_BYTES + len(body)
        self._in_files += 1
        self.spilled_bytes += len(body)

    def _read(self) -> bytes | Marker:
        file = self._files[0]
        file.seek(self._read_to)
        size = int.from_bytes(file.read(_LENGTH_BYTES), "big")
        kind, body = file.read(1), file.read(size - 1)
        self._read_to += _LENGTH_BYTES + size
        self._in_files -= 1
        if not self._in_files or (len(self._files) > 1 and self._read_to >= self._file_bytes):
            self._drop_file()
        if kind == b"b":
            return body
        marker: Marker = pickle.loads(body)
        return marker

    def _drop_file(self) -> None:
        with suppress(OSError):  # what a full disk did not take is not wanted any more
            self._files.popleft().close()
        self._read_to = 0


def batch_of(data: bytes) -> RowBatch:
    """Return the batch that a queue gave."""
    return RowBatch(*from_bytes(data))


def _do_nothing() -> None:
    pass


_queues: dict[tuple[str, int, int, tuple[int, int]], FeedbackQueue] = {}
"""Job, iteration, subtask and attempt -> the epoch of its coordinator, which counts attempts anew, and the number."""


def feedback_queue(
    job_id: str, iteration: int, subtask: int, attempt: tuple[int, int], config: Mapping[str, Any]
) -> FeedbackQueue:
    """Return the queue between tail and head of that index in this process."""
    get = reading(config).get
    folders = get(options.TMP_DIRS) or (None,)
    queue = FeedbackQueue(get(options.FEEDBACK_MEMORY).bytes, folders[subtask % len(folders)])
    return _queues.setdefault((job_id, iteration, subtask, attempt), queue)


def _queue_of(ctx: OperatorContext, iteration: int) -> FeedbackQueue:
    return feedback_queue(ctx.job_id, iteration, ctx.subtask, (ctx.epoch, ctx.attempt), ctx.config)


def _forget(ctx: OperatorContext, iteration: int) -> None:
    """Remove the queue. Both ends do so: an end that opens after the other has closed finds no queue and creates
    one.
    """
    queue = _queues.pop((ctx.job_id, iteration, ctx.subtask, (ctx.epoch, ctx.attempt)), None)
    if queue is not None:
        queue.close()


def forget_job(job_id: str) -> None:
    """Drop what attempts that were killed without a word have left in this process."""
    for key in [key for key in _queues if key[0] == job_id]:
        _queues.pop(key).close()


class IterationHead(SourceOperator, CheckpointListener, DeferredSnapshot):
    """Gives what is fed back.

    Args:
        iteration: number of the iteration in its job.
        is_endless: its input may have no end. Then event time passes the loop as if it were not there, as in Flink;
            else it waits until the loop is empty, so that nothing that comes round is late.
    """

    ends_by_itself = True

    def __init__(self, iteration: int, is_endless: bool = False) -> None:
        self._iteration, self._is_endless = iteration, is_endless
        self._superstep = self._restored = 0
        self._has_begun = False
        self._has_emitted = self._has_sent_time = self._is_over = False
        self._ahead: deque[bytes | EndOfSuperstep] = deque()
        self._rounds: dict[int, tuple[int, list[bytes]]] = {}
        self._came_round = 0

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        for snapshot in snapshots:
            self._ahead.extend(snapshot.lists.get(_IN_FLIGHT, ("split", ()))[1])
            for entry in snapshot.lists.get(_SUPERSTEP, ("union", ()))[1]:
                self._superstep = max(self._superstep, int(entry))
        self._restored = self._superstep

    def open(self) -> None:
        self._queue = _queue_of(self.ctx, self._iteration)

    def poll(self, max_records: int) -> Iterable[Element] | None:
        if self._is_endless and not self._has_sent_time:
            self._has_sent_time = True
            return (Watermark(MAX_TIMESTAMP),)
        if not self._has_begun and not self._ahead:
            return self._next_superstep()
        element: bytes | Marker | None = self._ahead.popleft() if self._ahead else self._draw()
        while isinstance(element, CheckpointBarrier):
            element = self._draw()
        if element is None:
            return ()
        if isinstance(element, EndOfSuperstep):
            if element.superstep > self._restored + 1 and not element.active and not self._has_emitted:
                self._is_over = True
                return None
            return self._next_superstep()
        self._has_emitted = True
        return (batch_of(element),)

    def next_poll_ms(self) -> int | None:
        ready = not self._has_begun or bool(self._ahead) or bool(self._queue)
        return int(self.ctx.clock.now_ms()) if ready else None

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot | None:
        """Send the barrier around the loop; elements emitted from now on belong to the snapshot."""
        waiting = [data for data in self._ahead if isinstance(data, bytes)]
        self._rounds[checkpoint_id] = self._superstep, waiting
        return None

    def rest_of_snapshot(self, checkpoint_id: int) -> OperatorSnapshot | None:
        """Return the elements in flight, once the barrier has come around; elements that come meanwhile wait for
        `poll`.
        """
        while self._came_round < checkpoint_id and not self._is_over:
            element = self._draw()
            if element is None:
                return None
            if not isinstance(element, CheckpointBarrier):  # else each checkpoint would take a `poll`
                self._ahead.append(element)
        begun, in_flight = self._rounds.pop(checkpoint_id)
        lists = {_IN_FLIGHT: ("split", tuple(in_flight)), _SUPERSTEP: ("union", (str(begun).encode(),))}
        return OperatorSnapshot(lists=lists)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._rounds.pop(checkpoint_id, None)

    def close(self) -> None:
        _forget(self.ctx, self._iteration)

    def _draw(self) -> bytes | Marker | None:
        """Return the next element that comes back, noted for every round it belongs to."""
        element = self._queue.take()
        if isinstance(element, CheckpointBarrier):
            self._came_round = element.checkpoint_id
        elif isinstance(element, bytes):
            for number, (_, in_flight) in self._rounds.items():
                if number > self._came_round:
                    in_flight.append(element)
        return element

    def _next_superstep(self) -> Iterable[Element]:
        self._has_begun = True
        self._superstep += 1
        has_emitted, self._has_emitted = self._has_emitted, False
        return (EndOfSuperstep(self._iteration, self._superstep, has_emitted),)


class IterationTail(Operator, EventHandler):
    """Feeds its records back.

    Args:
        iteration: number of the iteration in its job.
    """

    def __init__(self, iteration: int) -> None:
        self._iteration = iteration

    def open(self) -> None:
        self._queue = _queue_of(self.ctx, self._iteration)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        self._queue.put(batch)
        return ()

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        return ()

    def process_status(self, status: WatermarkStatus) -> Iterable[Element]:
        return ()

    def process_superstep(self, end: EndOfSuperstep) -> Iterable[Element]:
        if end.iteration == self._iteration:
            self._queue.put(end)
        return ()

    def snapshot_state(self, checkpoint_id: int) -> None:
        """Pass the barrier that came through the loop on to the head, behind all earlier elements."""
        self._queue.put(CheckpointBarrier(checkpoint_id, 0))

    def close(self) -> None:
        _forget(self.ctx, self._iteration)


__all__ = ["FeedbackQueue", "FeedbackSpillError", "IterationHead", "IterationTail", "batch_of", "feedback_queue",
           "forget_job"]  # fmt: skip
