"""The operators at the end of a stream: a sink's writer with its commits, or a function called for each record."""

from __future__ import annotations

import math
import pickle
from collections import deque
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

from rayflink.common.configuration import reading
from rayflink.common.connector_base.sink import Committer, Sink, SinkWriter, UnwritableRecord, WriterContext
from rayflink.common.functions.function_classes import as_sink
from rayflink.common.functions.two_phase_function import TwoPhaseCommitSinkFunction
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.options.registry import COMMITTER_RETRIES
from rayflink.common.records.batches import Batch, Element, Watermark
from rayflink.common.user_code.value_bytes import to_bytes
from rayflink.state.snapshots import Pieces

from .base import Operator, OperatorSnapshot, UserCodeError
from .capabilities import CheckpointListener, PreBarrier, ProcessingTimers, Upkeep
from .commits import EVERY_CHECKPOINT, Commits
from .list_loops import ensure_all_taken, record_at
from .user_function import FunctionOperator, UserCode, list_of

WRITER_STATE = "sink-writer"
COMMITTABLES_STATE = "sink-committables"


class SinkFunctionOperator(FunctionOperator, CheckpointListener):
    """Calls a function for each record.

    Args:
        function: a SinkFunction or a callable.
    """

    def __init__(self, function: Any) -> None:
        self._function, self._two_phase = as_sink(function), function
        super().__init__(self._function)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        values = list_of(batch)
        iterator = iter(values)
        try:
            deque(map(self._function.call, iterator), maxlen=0)
            ensure_all_taken(iterator)
        except Exception as error:
            raise self.failure("invoke", record_at(values, iterator)) from error
        return ()

    def finish(self) -> Iterable[Element]:
        if isinstance(self._two_phase, TwoPhaseCommitSinkFunction):
            with UserCode(self.ctx, "finish"):
                self._two_phase.finish()
                if not self.ctx.checkpointing:
                    self._two_phase.commit_at_the_end()
        return ()

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        if isinstance(self._two_phase, TwoPhaseCommitSinkFunction):
            with UserCode(self.ctx, "commit"):
                self._two_phase.notify_checkpoint_complete(checkpoint_id)


class SinkOperator(Operator, ProcessingTimers, Upkeep, CheckpointListener, PreBarrier):
    """Runs the writer of a `Sink` and, for a sink that has one, its committer.

    What a writer prepared before a checkpoint is part of that checkpoint and is committed once it, or a later one, is
    complete; after a restore it is committed again, which the committer must not notice. At the end of input all that
    still waits is committed at once, unless checkpoints are triggered (`OperatorContext.checkpointing`): then with the
    last of them. What cannot be committed is tried again between other work, after longer and longer pauses; at the
    end, where there is no other work, the task waits for it.

    Args:
        sink: where to write.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._writer: SinkWriter | None = None
        self._committer: Committer | None = None
        self._commits: Commits | None = None
        self._restored_states: list[Any] = []
        self._restored_committables: list[bytes] = []
        self._current: list[Any] = []
        self._finished = False

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        for snapshot in snapshots:
            with UserCode(self.ctx, "initialize_state"):
                self._restored_states += map(pickle.loads, snapshot.lists.get(WRITER_STATE, ("", ()))[1])
            self._restored_committables += snapshot.lists.get(COMMITTABLES_STATE, ("", ()))[1]

    def open(self) -> None:
        ctx = self.ctx
        context = WriterContext(
            ctx.subtask, ctx.parallelism, ctx.attempt, ctx.job_id, ctx.operator_name, ctx.metrics, ctx.config,
            ctx.accumulators, tuple(self._restored_states), ctx.clock, ctx.operator_id, ctx.checkpointing,
            ctx.epoch,
        )  # fmt: skip
        with UserCode(ctx, "open"):
            self._sink = self._sink.configured(ctx.config)
            self._committer = self._sink.create_committer()
            if self._committer is not None:
                self._committer.open(context)
                retries = reading(ctx.config).get(COMMITTER_RETRIES)
                metrics = ctx.metrics or MetricGroup()
                self._commits = Commits(self._committer, retries, ctx.clock, metrics, ctx.wake)
                self._commits.restore(self._restored_committables)
        self._finished = ctx.finished
        if self._commits is not None:
            with UserCode(ctx, "commit"):  # what is restored comes before all that is new
                if ctx.finished:
                    self._commits.run_to_the_end()
                else:
                    self._commits.run(slice_s=math.inf)
        with UserCode(ctx, "open"):
            self._writer = self._sink.create_writer(context)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        with _Writing(self.ctx, "write"):
            self._open_writer().write(batch)
        return ()

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        with UserCode(self.ctx, "on_watermark"):
            self._open_writer().on_watermark(watermark.timestamp)
        return super().process_watermark(watermark)

    def next_processing_time(self) -> int | None:
        return None if self._writer is None else self._writer.next_time_ms()

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        with _Writing(self.ctx, "on_time"):
            self._open_writer().on_time(now_ms)
        return ()

    def next_upkeep_ms(self) -> int | None:
        return None if self._commits is None else self._commits.due_ms

    def upkeep(self, now_ms: int) -> None:
        self._commit()

    def prepare_snapshot(self, checkpoint_id: int) -> Iterable[Element]:
        if not self._finished:
            self._flush(end_of_input=False)
        return ()

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot | None:
        writer = self._open_writer()
        lists: dict[str, tuple[str, tuple[bytes, ...]]] = {}
        pieces: dict[str, tuple[str, tuple[Pieces, ...]]] = {}
        with UserCode(self.ctx, "snapshot_state"):
            state = writer.snapshot_state()
            unfinished = writer.snapshot_unfinished()
            if state is not None:
                lists[WRITER_STATE] = (writer.state_mode, (to_bytes(state),))
            if self._commits is not None:
                self._commits.settle()
                self._commits.add(checkpoint_id, self._current)
                waiting = self._commits.snapshot()
                waiting += tuple(Commits.entry(checkpoint_id, committable) for committable in unfinished)
                if waiting:
                    pieces[COMMITTABLES_STATE] = ("split", waiting)
                self._commits.begin_early()
        self._current = []
        return OperatorSnapshot(lists=lists, pieces=pieces) if lists or pieces else None

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        if self._commits is not None:
            with UserCode(self.ctx, "commit"):
                self._commits.complete(checkpoint_id)
            self._commit()

    def finish(self) -> Iterable[Element]:
        self._flush(end_of_input=True)
        self._finished = True
        if self._commits is not None and not self.ctx.checkpointing:
            self._commits.add(EVERY_CHECKPOINT, self._current)
            self._current = []
            self.notify_checkpoint_complete(EVERY_CHECKPOINT)
        return ()

    def close(self) -> None:
        writer, self._writer = self._writer, None
        committer, self._committer = self._committer, None
        with UserCode(self.ctx, "close"):
            with ExitStack() as closing:  # in reverse
                if committer is not None:
                    closing.callback(committer.close)
                if writer is not None:
                    closing.callback(writer.close)
                    if self._commits is not None:
                        self._commits.leave()

    def _flush(self, end_of_input: bool) -> None:
        writer = self._open_writer()
        with _Writing(self.ctx, "flush"):
            writer.flush(end_of_input)
            prepared = writer.prepare_commit()
            if prepared and self._commits is None and not self._sink.commits_globally:
                problem = f"{type(writer).__name__}.prepare_commit() gave {len(prepared)} committables"
                raise TypeError(f"{problem}, and {type(self._sink).__name__}.create_committer() gives no committer")
            self._current += prepared

    def _commit(self) -> None:
        if self._commits is not None:
            with UserCode(self.ctx, "commit"):
                if self._finished:
                    self._commits.run_to_the_end()
                else:
                    self._commits.run()

    def _open_writer(self) -> SinkWriter:
        assert self._writer is not None, "the sink operator is not open"
        return self._writer


class _Writing(UserCode):
    """A variant of `UserCode` that names a record that cannot be written."""

    __slots__ = ()

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, UnwritableRecord):
            user_error = UserCodeError(self._ctx.operator_name, self._ctx.call_site, error.record, self._where)
            raise user_error from error.__cause__
        super().__exit__(kind, error, traceback)
