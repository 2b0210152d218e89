"""Operator state of the user's functions in one operator: lists, broadcast maps and raw bytes, in its snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rayflink.common.functions.checkpointed_function import FunctionInitializationContext, FunctionSnapshotContext
from rayflink.common.functions.runtime_context import KeyedStateStore
from rayflink.state.errors import VersionMismatch
from rayflink.state.keys.key_groups import key_group_range
from rayflink.state.operator_state import OperatorStateStore
from rayflink.state.raw_state import RawKeyedStateOutput

from .base import SNAPSHOT_VERSION, OperatorContext, OperatorSnapshot, UserCodeError
from .restored_state import evolution_of

_USER = "user/"
"""Before the names of the user's states, which are in one table with those of operators."""
_RAW = "raw"


class FunctionState:
    """The operator state of one subtask that belongs to the user's functions.

    Args:
        ctx: of the operator.
        snapshots: what it is restored from.
        functions: those that keep operator state.
        keyed_state: state of the current key, None where the stream is not keyed.

    Raises:
        VersionMismatch: a snapshot has another layout.
    """

    def __init__(
        self,
        ctx: OperatorContext,
        snapshots: Sequence[OperatorSnapshot],
        functions: tuple[Any, ...] = (),
        keyed_state: KeyedStateStore | None = None,
    ) -> None:
        for snapshot in snapshots:
            if snapshot.version != SNAPSHOT_VERSION:
                written, readable = f"snapshot layout {snapshot.version}", f"layout {SNAPSHOT_VERSION}"
                raise VersionMismatch(written, readable, "snapshot", ctx.label)
        self._ctx, self._functions, self._keyed_state = ctx, functions, keyed_state
        self._key_groups = range(0)
        if keyed_state is not None:
            self._key_groups = key_group_range(ctx.subtask, ctx.parallelism, ctx.max_parallelism)
        self._snapshots = snapshots
        lists = [
            {name[len(_USER) :]: entries for name, entries in snapshot.lists.items() if name.startswith(_USER)}
            for snapshot in snapshots
        ]
        evolution = evolution_of(ctx, snapshots)
        self.store = OperatorStateStore(lists, ctx.label, evolution)

    def initialize(self) -> None:
        """Let the functions get their states, and read what was restored.

        Raises:
            UserCodeError: one of them raised.
        """
        snapshots, self._snapshots = self._snapshots, ()
        for function in self._functions:
            context = FunctionInitializationContext(
                self._ctx.operator_name,
                self.store,
                self._keyed_state,
                bool(snapshots),
                tuple(data for snapshot in snapshots for data in snapshot.lists.get(_RAW, ("split", ()))[1]),
                tuple(snapshot.raw_keyed for snapshot in snapshots),
                self._key_groups,
            )
            self._call("initialize_state", function.initialize_state, context)

    def snapshot(self, checkpoint_id: int) -> OperatorSnapshot | None:
        """Return the functions' states, once each function was asked to update them; None where no state was ever used.

        Raises:
            UserCodeError: a function raised.
            SerializationError: an entry cannot be turned into bytes.
        """
        raw_keyed = None if self._keyed_state is None else RawKeyedStateOutput(self._key_groups)
        context = FunctionSnapshotContext(checkpoint_id, raw_keyed=raw_keyed)
        for function in self._functions:
            self._call("snapshot_state", function.snapshot_state, context)
        lists = {_USER + name: entries for name, entries in self.store.snapshot().items()}
        partitions = context.raw.partitions()
        if partitions:
            lists[_RAW] = "split", partitions
        if not self._functions and not lists:
            return None
        groups = {} if raw_keyed is None else raw_keyed.key_groups()
        return OperatorSnapshot(lists=lists, raw_keyed=groups, states=self.store.summaries())

    def _call(self, where: str, call: Any, context: Any) -> None:
        try:
            call(context)
        except (Exception, SystemExit) as error:
            raise UserCodeError(self._ctx.operator_name, self._ctx.call_site, "", where) from error


__all__ = ["FunctionState"]
