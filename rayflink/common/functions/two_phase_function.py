"""The classic way to write a sink in two phases: one function with a transaction of its own."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic

from rayflink.state.descriptors import ListStateDescriptor
from rayflink.user_types import UserValue

from .checkpointed_function import CheckpointedFunction, FunctionInitializationContext, FunctionSnapshotContext
from .function_classes import SinkFunction
from .type_variables import Input, Whole

_OPEN = -1


class TwoPhaseCommitSinkFunction(SinkFunction[Input], CheckpointedFunction, Generic[Input, Whole]):
    """A sink function whose records go into transactions, one for each checkpoint; `add_sink` takes it.

    A transaction is any value that can be pickled: a file's name, an id in another system. One that was pre-committed
    is committed when its checkpoint is complete. After a failure `recover_and_commit` is called for each that was
    pre-committed in the checkpoint the job starts from, whether it was committed already or not, and
    `recover_and_abort` for the one that had begun. Without checkpoints the end of input commits.

    >>> from rayflink.datastream import StreamExecutionEnvironment
    >>> drafts, published = {}, {}
    >>> class Pages(TwoPhaseCommitSinkFunction):
    ...     def begin_transaction(self):
    ...         draft = f"draft-{len(drafts)}"
    ...         drafts[draft] = []
    ...         return draft
    ...     def invoke(self, transaction, value):
    ...         drafts[transaction].append(value)
    ...     def pre_commit(self, transaction):
    ...         pass  # write out what is held back
    ...     def commit(self, transaction):
    ...         if transaction in drafts:
    ...             published[transaction] = drafts.pop(transaction)
    ...     def abort(self, transaction):
    ...         drafts.pop(transaction, None)
    >>> env = StreamExecutionEnvironment({"execution.target": "local"})
    >>> _ = env.from_collection(["a", "b"]).add_sink(Pages())
    >>> _ = env.execute()
    >>> published, drafts
    ({'draft-0': ['a', 'b']}, {})

    Source: apache/flink TwoPhaseCommitSinkFunction; same calls, and the same order of them.
    """

    takes_records_by = "write"
    """The method that is called for each record, as `invoke` is that of one transaction."""

    _current: Any = None
    _has_begun = False
    _is_finished = False

    @abstractmethod
    def begin_transaction(self) -> Whole:
        """Return a new transaction."""

    @abstractmethod
    def invoke(self, transaction: Whole, value: Input) -> None:  # type: ignore[override]
        """Write one record in the transaction."""

    @abstractmethod
    def pre_commit(self, transaction: Whole) -> None:
        """Write out all of the transaction, so that `commit` cannot fail for what is in it; no record follows."""

    @abstractmethod
    def commit(self, transaction: Whole) -> None:
        """Make the transaction visible; when it raises the task fails, and the next attempt commits it."""

    @abstractmethod
    def abort(self, transaction: Whole) -> None:
        """Give the transaction up."""

    def recover_and_commit(self, transaction: Whole) -> None:
        """Commit a transaction of an earlier attempt, which may be committed already."""
        self.commit(transaction)

    def recover_and_abort(self, transaction: Whole) -> None:
        """Give up the transaction in which an earlier attempt was writing."""
        self.abort(transaction)

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Settle the transactions of earlier attempts and begin one."""
        self._kept = context.get_operator_state_store().get_list_state(ListStateDescriptor("transactions"))
        self._pending: list[tuple[int, Any]] = []
        restored = sorted(self._kept.get(), key=lambda entry: int(entry[0]))
        for checkpoint_id, transaction in restored:
            if checkpoint_id != _OPEN:
                self.recover_and_commit(transaction)
        for checkpoint_id, transaction in restored:
            if checkpoint_id == _OPEN:
                self.recover_and_abort(transaction)
        self._begin()

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Pre-commit the transaction for this checkpoint and begin the next."""
        if self._has_begun:
            if not self._is_finished:
                self.pre_commit(self._current)
            self._pending.append((context.checkpoint_id, self._current))
            self._has_begun = False
            if not self._is_finished:
                self._begin()
        begun = [(_OPEN, self._current)] if self._has_begun else []
        self._kept.update([*self._pending, *begun])

    def write(self, value: UserValue) -> None:
        """Write one record in the current transaction."""
        self.invoke(self._current, value)

    def finish(self) -> None:
        """Pre-commit the transaction after the last record; it is committed with the next checkpoint."""
        if self._has_begun and not self._is_finished:
            self.pre_commit(self._current)
            self._is_finished = True

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Commit what was pre-committed for this checkpoint and for older ones, oldest first."""
        while self._pending and self._pending[0][0] <= checkpoint_id:
            self.commit(self._pending[0][1])
            del self._pending[0]

    def commit_at_the_end(self) -> None:
        """Commit everything, as there will be no checkpoint any more."""
        if self._has_begun:
            self._pending.append((0, self._current))
            self._has_begun = False
        for _, transaction in self._pending:
            self.commit(transaction)
        self._pending = []

    def close(self) -> None:
        """Give up the transaction that has begun; a subclass with a `close` of its own calls this one too."""
        if self._has_begun:
            self._has_begun = False
            self.abort(self._current)

    def _begin(self) -> None:
        self._current, self._has_begun = self.begin_transaction(), True


__all__ = ["TwoPhaseCommitSinkFunction"]
