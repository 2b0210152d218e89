"""The operators at the end of a stream: a sink's writer with its commits, or a function called for each record."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Iterable
from typing import Any

from ..common.batches import Batch, Element
from ..common.functions import as_sink
from ..common.sink import Committer, Sink, SinkWriter, UnwritableRecord, WriterContext
from .base import Operator, OperatorSnapshot, UserCodeError, ensure_all_taken, record_at
from .user_code import FunctionOperator, UserCode, list_of

WRITER_STATE = "sink-writer"
COMMITTABLES_STATE = "sink-committables"
_AT_THE_END = 2**63 - 1
"""In place of a checkpoint's number: after all checkpoints."""


class SinkFunctionOperator(FunctionOperator):
    """Calls a function for each record.

    Args:
        function: a SinkFunction or a callable.
    """

    def __init__(self, function: Any) -> None:
        self._function = as_sink(function)
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


class SinkOperator(Operator):
    """Runs the writer of a `Sink` and, for a sink that has one, its committer.

    What a writer prepared before a checkpoint is part of that checkpoint and is committed once it is complete; after a
    restore it is committed again, which the committer must not notice. At the end of input all that still waits is
    committed at once, unless checkpoints are triggered (`OperatorContext.checkpointing`): then with the last of them.

    Args:
        sink: where to write.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._writer: SinkWriter | None = None
        self._committer: Committer | None = None
        self._restored: list[Any] = []
        self._committables: list[tuple[int, list[Any]]] = []
        self._current: list[Any] = []

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        for snapshot in snapshots:
            self._restored += map(pickle.loads, snapshot.lists.get(WRITER_STATE, ("split", ()))[1])
            restored = list(map(pickle.loads, snapshot.lists.get(COMMITTABLES_STATE, ("split", ()))[1]))
            self._committables.append((-1, restored))

    def open(self) -> None:
        ctx = self.ctx
        context = WriterContext(
            ctx.subtask, ctx.parallelism, ctx.attempt, ctx.job_id, ctx.operator_name,
            ctx.metrics, ctx.config, ctx.accumulators, tuple(self._restored), ctx.clock,
        )  # fmt: skip
        with UserCode(ctx, "open"):
            self._committer = self._sink.create_committer()
            self._commit_until(-1)
            self._writer = self._sink.create_writer(context)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        try:
            with UserCode(self.ctx, "write"):
                self._open_writer().write(batch)
        except UserCodeError as error:
            refused = error.__cause__
            if isinstance(refused, UnwritableRecord):
                told = UserCodeError(self.ctx.operator_name, self.ctx.call_site, refused.record, "write")
                raise told from refused.__cause__
            raise
        return ()

    def next_processing_time(self) -> int | None:
        return None if self._writer is None else self._writer.next_time_ms()

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        with UserCode(self.ctx, "on_time"):
            self._open_writer().on_time(now_ms)
        return ()

    def prepare_snapshot(self, checkpoint_id: int) -> Iterable[Element]:
        self._flush(end_of_input=False)
        return ()

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot | None:
        with UserCode(self.ctx, "snapshot_state"):
            state = self._open_writer().snapshot_state()
        if self._current:
            self._committables.append((checkpoint_id, self._current))
            self._current = []
        waiting = [item for _, items in self._committables for item in items]
        lists: dict[str, tuple[str, tuple[bytes, ...]]] = {}
        if state is not None:
            lists[WRITER_STATE] = ("split", (pickle.dumps(state, protocol=5),))
        if waiting:
            lists[COMMITTABLES_STATE] = ("split", tuple(pickle.dumps(item, protocol=5) for item in waiting))
        return OperatorSnapshot(lists=lists) if lists else None

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        with UserCode(self.ctx, "commit"):
            self._commit_until(checkpoint_id)

    def finish(self) -> Iterable[Element]:
        self._flush(end_of_input=True)
        if not self.ctx.checkpointing:
            self._committables.append((_AT_THE_END, self._current))
            self._current = []
            with UserCode(self.ctx, "commit"):
                self._commit_until(_AT_THE_END)
        return ()

    def close(self) -> None:
        writer, self._writer = self._writer, None
        committer, self._committer = self._committer, None
        with UserCode(self.ctx, "close"):
            try:
                if writer is not None:
                    writer.close()
            finally:
                if committer is not None:
                    committer.close()

    def _flush(self, end_of_input: bool) -> None:
        writer = self._open_writer()
        with UserCode(self.ctx, "flush"):
            writer.flush(end_of_input)
            self._current += writer.prepare_commit()

    def _commit_until(self, checkpoint_id: int) -> None:
        due = [item for made_for, items in self._committables if made_for <= checkpoint_id for item in items]
        if self._committer is not None and due:
            self._committer.commit(due)
        self._committables = [entry for entry in self._committables if entry[0] > checkpoint_id]

    def _open_writer(self) -> SinkWriter:
        assert self._writer is not None, "the sink operator is not open"
        return self._writer
