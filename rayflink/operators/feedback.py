"""The two ends of an iteration: what its tail takes goes through a queue to its head, which gives it to the loop again.

Head and tail of one index share a slot and so a process. The queue takes all it is given, for a loop that waits for
itself would stand still: what is more than its memory goes to a file.

An iteration ends by itself. The head sends `EndOfSuperstep` behind what it gives; every task of the loop passes that on
once it has come on all inputs that have not ended, so the first one comes round when the input of the iteration has
ended. It says whether any head gave a record since the one before: when one comes round that says no, the loop is
empty.

Source: apache/flink StreamIterationHead, StreamIterationTail, BlockingQueueBroker; Naiad's notion of progress.
"""

from __future__ import annotations

import pickle
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import IO, Any

from rayflink.state.errors import RayflinkError

from ..common import options
from ..common.batches import MAX_TIMESTAMP, Batch, Element, EndOfSuperstep, RowBatch, Watermark, WatermarkStatus
from ..common.configuration import Configuration
from ..common.value_bytes import from_bytes, to_bytes
from .base import Operator, OperatorContext, SourceOperator
from .user_code import list_of, timestamps_of

_LENGTH_BYTES = 8
_FILE_BYTES = 64 << 20


class FeedbackSpillError(RayflinkError):
    """What is fed back has no room in memory, and none on disk."""

    def __init__(self, folder: str, problem: str) -> None:
        super().__init__(folder, problem)
        self.folder, self.problem = folder, problem

    def __str__(self) -> str:
        return (
            f"what an iteration feeds back cannot be written to {self.folder}: {self.problem}; free space there, set "
            f"{options.TMP_DIRS.key} to a larger disk, or raise {options.FEEDBACK_MEMORY.key}"
        )


class FeedbackQueue:
    """First in, first out, without a bound: the oldest in memory, what has no room there in files.

    Args:
        memory_bytes: of pickled records in memory.
        folder: of the files; None: the system's for temporary files.
        file_bytes: about the size of one file; one that has been read goes.
    """

    def __init__(self, memory_bytes: int, folder: str | None = None, file_bytes: int = _FILE_BYTES) -> None:
        self._memory_bytes, self._used, self._folder = memory_bytes, 0, folder
        self._head: deque[bytes | EndOfSuperstep] = deque()
        self._file_bytes = file_bytes
        self._files: deque[IO[bytes]] = deque()
        self._in_files, self._written_to, self._read_to = 0, 0, 0
        self._changing = threading.Lock()
        self.on_put: Callable[[], None] = _nobody
        self.spilled_bytes = 0

    def put(self, element: Batch | EndOfSuperstep) -> None:
        """Take a batch, or the end of a superstep; may be called by any thread."""
        data = element if isinstance(element, EndOfSuperstep) else to_bytes((list_of(element), timestamps_of(element)))
        size = 0 if isinstance(data, EndOfSuperstep) else len(data)
        with self._changing:
            if self._in_files or (self._head and self._used + size > self._memory_bytes):
                self._write(data)
            else:
                self._head.append(data)
                self._used += size
        self.on_put()

    def take(self) -> Batch | EndOfSuperstep | None:
        """The oldest element; None when there is none."""
        with self._changing:
            if self._head:
                data = self._head.popleft()
                self._used -= 0 if isinstance(data, EndOfSuperstep) else len(data)
            elif self._in_files:
                data = self._read()
            else:
                return None
        return data if isinstance(data, EndOfSuperstep) else RowBatch(*from_bytes(data))

    def __bool__(self) -> bool:
        return bool(self._head or self._in_files)

    def close(self) -> None:
        """Forget everything."""
        with self._changing:
            self._head.clear()
            self._used = self._in_files = 0
            while self._files:
                self._drop_file()

    def _write(self, data: bytes | EndOfSuperstep) -> None:
        body = b"e" + pickle.dumps(data) if isinstance(data, EndOfSuperstep) else b"b" + data
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

    def _read(self) -> bytes | EndOfSuperstep:
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
        end: EndOfSuperstep = pickle.loads(body)
        return end

    def _drop_file(self) -> None:
        with suppress(OSError):  # what a full disk did not take is not wanted any more
            self._files.popleft().close()
        self._read_to = 0


def _nobody() -> None:
    pass


_queues: dict[tuple[str, int, int, int], FeedbackQueue] = {}
"""By job, iteration, subtask and attempt number."""


def feedback_queue(
    job_id: str, iteration: int, subtask: int, attempt: int, config: Mapping[str, Any]
) -> FeedbackQueue:
    """The queue between tail and head of that index in this process."""
    get = Configuration.from_dict(config).get
    folders = get(options.TMP_DIRS) or (None,)
    made = FeedbackQueue(get(options.FEEDBACK_MEMORY).bytes, folders[subtask % len(folders)])
    return _queues.setdefault((job_id, iteration, subtask, attempt), made)


def _queue_of(ctx: OperatorContext, iteration: int) -> FeedbackQueue:
    return feedback_queue(ctx.job_id, iteration, ctx.subtask, ctx.attempt, ctx.config)


def _forget(ctx: OperatorContext, iteration: int) -> None:
    """Both ends do, for an end that opens when the other has closed finds no queue and makes one."""
    queue = _queues.pop((ctx.job_id, iteration, ctx.subtask, ctx.attempt), None)
    if queue is not None:
        queue.close()


class IterationHead(SourceOperator):
    """Gives what is fed back.

    Args:
        iteration: number of the iteration in its job.
        is_endless: its input may have no end. Then event time passes the loop as if it were not there, as in Flink;
            else it waits until the loop is empty, so that nothing that comes round is late.
    """

    ends_by_itself = True

    def __init__(self, iteration: int, is_endless: bool = False) -> None:
        self._iteration, self._is_endless = iteration, is_endless
        self._superstep = 0
        self._gave = False

    def open(self) -> None:
        self._queue = _queue_of(self.ctx, self._iteration)

    def poll(self, max_records: int) -> Iterable[Element] | None:
        if not self._superstep:
            time = (Watermark(MAX_TIMESTAMP),) if self._is_endless else ()
            return (*time, *self._next_superstep())
        element = self._queue.take()
        if element is None:
            return ()
        if isinstance(element, EndOfSuperstep):
            if element.superstep > 1 and not element.active and not self._gave:
                return None
            return self._next_superstep()
        self._gave = True
        return (element,)

    def next_poll_ms(self) -> int | None:
        ready = not self._superstep or bool(self._queue)
        return int(self.ctx.clock.now_ms()) if ready else None

    def close(self) -> None:
        _forget(self.ctx, self._iteration)

    def _next_superstep(self) -> Iterable[Element]:
        self._superstep += 1
        gave, self._gave = self._gave, False
        return (EndOfSuperstep(self._iteration, self._superstep, gave),)


class IterationTail(Operator):
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

    def close(self) -> None:
        _forget(self.ctx, self._iteration)


__all__ = ["FeedbackQueue", "FeedbackSpillError", "IterationHead", "IterationTail", "feedback_queue"]
