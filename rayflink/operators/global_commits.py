"""Sinks that are committed in one place: writers, and the one committer of what all of them prepared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from rayflink.common.configuration import reading
from rayflink.common.connector_base.sink import CommitterContext, GlobalCommitter
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.options.registry import COMMITTER_RETRIES
from rayflink.common.records.batches import Batch, Element, RowBatch, rows_of

from .base import Operator, OperatorSnapshot
from .capabilities import CheckpointListener, Upkeep
from .commits import EVERY_CHECKPOINT, Commits
from .sinks import COMMITTABLES_STATE, SinkOperator
from .user_function import UserCode


class SinkWriterOperator(SinkOperator):
    """Runs the writer of a sink that commits globally; emits what it prepared before each barrier and at the end."""

    def prepare_snapshot(self, checkpoint_id: int) -> Iterable[Element]:
        super().prepare_snapshot(checkpoint_id)
        return self._prepared()

    def finish(self) -> Iterable[Element]:
        self._flush(end_of_input=True)
        self._finished = True
        return self._prepared()

    def _prepared(self) -> Iterable[Element]:
        prepared, self._current = self._current, []
        return (RowBatch(prepared),) if prepared else ()


class GlobalCommitterOperator(Operator, Upkeep, CheckpointListener):
    """Commits what all writers of a sink prepared, one committable for each checkpoint.

    A barrier comes behind all that the writers prepared before it. What they prepared is combined into one committable,
    which is part of the checkpoint and is committed when that or a later one is complete; after a restore it is
    committed again, which the committer recognizes.

    Args:
        create: makes the committer.
    """

    def __init__(self, create: Callable[[CommitterContext], GlobalCommitter]) -> None:
        self._create = create
        self._committer: GlobalCommitter | None = None
        self._commits: Commits | None = None
        self._restored: list[bytes] = []
        self._prepared: list[Any] = []
        self._finished = False

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        for snapshot in snapshots:
            self._restored += snapshot.lists.get(COMMITTABLES_STATE, ("", ()))[1]

    def open(self) -> None:
        ctx = self.ctx
        context = CommitterContext(ctx.job_id, ctx.operator_id, ctx.operator_name, ctx.metrics, ctx.config, ctx.clock)
        with UserCode(ctx, "open"):
            self._committer = self._create(context)
            retries = reading(ctx.config).get(COMMITTER_RETRIES)
            metrics = ctx.metrics or MetricGroup()
            self._commits = Commits(self._committer, retries, ctx.clock, metrics, ctx.wake)
            self._commits.restore(self._restored)
        self._finished = ctx.finished
        with UserCode(ctx, "commit"):
            if ctx.finished:
                self._commits.run_to_the_end()
            else:
                self._commits.run(slice_s=math.inf)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        self._prepared += rows_of(batch)
        return ()

    def next_upkeep_ms(self) -> int | None:
        return None if self._commits is None else self._commits.due_ms

    def upkeep(self, now_ms: int) -> None:
        self._commit()

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot | None:
        self._combine(checkpoint_id)
        waiting = self._open_commits().snapshot()
        return OperatorSnapshot(pieces={COMMITTABLES_STATE: ("split", waiting)}) if waiting else None

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        with UserCode(self.ctx, "commit"):
            self._open_commits().complete(checkpoint_id)
        self._commit()

    def finish(self) -> Iterable[Element]:
        self._finished = True
        if not self.ctx.checkpointing:
            self._combine(EVERY_CHECKPOINT)
            self.notify_checkpoint_complete(EVERY_CHECKPOINT)
        return ()

    def close(self) -> None:
        committer, self._committer = self._committer, None
        if committer is None:
            return
        with UserCode(self.ctx, "close"):
            try:
                if self._commits is not None:
                    self._commits.leave()
            finally:
                committer.close()

    def _combine(self, checkpoint_id: int) -> None:
        prepared, self._prepared = self._prepared, []
        if prepared:
            assert self._committer is not None, "the committer is not open"
            with UserCode(self.ctx, "combine"):
                combined = self._committer.combine(checkpoint_id, prepared)
            if combined is not None:
                self._open_commits().add(checkpoint_id, [combined])

    def _commit(self) -> None:
        with UserCode(self.ctx, "commit"):
            if self._finished:
                self._open_commits().run_to_the_end()
            else:
                self._open_commits().run()

    def _open_commits(self) -> Commits:
        assert self._commits is not None, "the committer is not open"
        return self._commits


__all__ = ["GlobalCommitterOperator", "SinkWriterOperator"]
