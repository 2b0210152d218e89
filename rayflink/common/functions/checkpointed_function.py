"""Functions with state of their own that belongs to a subtask and not to a key: lists, broadcast maps, raw bytes.

PyFlink has no such API; these are the names of Flink's Java API in Python's spelling.
"""

from __future__ import annotations

import inspect
import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rayflink.state.operator_state import OperatorStateStore
from rayflink.state.raw_state import RawKeyedStateOutput, RawOperatorStateOutput, raw_inputs, raw_keyed_inputs
from rayflink.user_types import UserCode

from .runtime_context import KeyedStateStore


@dataclass(frozen=True)
class FunctionInitializationContext:
    """The context of `initialize_state`, valid only during the call; its states are valid for the life of the function.

    Args:
        operator_name: whose function it is, for errors.
        operator_state: the subtask's operator state.
        keyed_state: state of the current key, None on a stream that is not keyed.
        restored: whether the job starts from a snapshot.
        raw: partitions of raw operator state that this subtask received.
        raw_keyed: raw keyed state; key group -> bytes.
        key_groups: those that the subtask owns.
    """

    operator_name: str
    operator_state: OperatorStateStore
    keyed_state: KeyedStateStore | None = None
    restored: bool = False
    raw: tuple[bytes, ...] = ()
    raw_keyed: tuple[Mapping[int, bytes], ...] = ()
    key_groups: range = range(0)

    def is_restored(self) -> bool:
        """Return whether the job starts from a snapshot; else all state is empty."""
        return self.restored

    def get_operator_state_store(self) -> OperatorStateStore:
        """Return the store of list state, union list state and broadcast state."""
        return self.operator_state

    def get_keyed_state_store(self) -> KeyedStateStore:
        """Return the store of keyed state handles; there is no current key yet to use them with.

        Raises:
            RuntimeError: the stream of the operator is not keyed.
        """
        if self.keyed_state is None:
            raise RuntimeError(
                f"operator {self.operator_name!r} asked for keyed state, but its stream is not keyed; call key_by(...) "
                "before it, or use get_operator_state_store()"
            )
        return self.keyed_state

    def get_raw_operator_state_inputs(self) -> Iterator[io.BytesIO]:
        """Return the partitions of raw operator state that this subtask received, each to be read."""
        return raw_inputs(self.raw)

    def get_raw_keyed_state_inputs(self) -> Iterator[tuple[int, io.BytesIO]]:
        """Return (key group, its raw keyed state to be read) of the key groups that this subtask owns now."""
        return raw_keyed_inputs(self.raw_keyed, self.key_groups)


@dataclass(frozen=True)
class FunctionSnapshotContext:
    """The context of `snapshot_state`; valid only during the call.

    Args:
        checkpoint_id: rises from one checkpoint to the next.
        raw: where raw operator state is written.
        raw_keyed: where raw keyed state is written; None on a stream that is not keyed.
    """

    checkpoint_id: int
    raw: RawOperatorStateOutput = field(default_factory=RawOperatorStateOutput)
    raw_keyed: RawKeyedStateOutput | None = None

    def get_checkpoint_id(self) -> int:
        """Return the number of the checkpoint."""
        return self.checkpoint_id

    def get_raw_operator_state_output(self) -> RawOperatorStateOutput:
        """Return the output of bytes that `get_raw_operator_state_inputs` restores, distributed by partition."""
        return self.raw

    def get_raw_keyed_operator_state_output(self) -> RawKeyedStateOutput:
        """Return the output of bytes of a key group that `get_raw_keyed_state_inputs` restores.

        Raises:
            RuntimeError: the stream of the operator is not keyed.
        """
        if self.raw_keyed is None:
            raise RuntimeError(
                "raw keyed state was asked for, but the stream of the operator is not keyed; call key_by(...) before "
                "it, or use get_raw_operator_state_output()"
            )
        return self.raw_keyed


class CheckpointedFunction(ABC):
    """The base class of a function that has operator state, in addition to its own kind.

    >>> from rayflink.datastream.functions import MapFunction
    >>> from rayflink.datastream.state import ListStateDescriptor
    >>> class Numbered(MapFunction, CheckpointedFunction):
    ...     def initialize_state(self, context):
    ...         self.kept = context.get_operator_state_store().get_list_state(ListStateDescriptor("seen"))
    ...         self.seen = sum(self.kept.get())  # several subtasks' counts may have come together
    ...     def snapshot_state(self, context):
    ...         self.kept.update([self.seen])
    ...     def map(self, value):
    ...         self.seen += 1
    ...         return self.seen, value
    >>> from rayflink.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment({"execution.target": "local"})
    >>> list(env.from_collection(["a", "b"]).map(Numbered()).execute_and_collect())
    [(1, 'a'), (2, 'b')]
    """

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Get the states, and what a snapshot stored in them; called once, before `open`."""

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Put into the states what shall be stored; called for each checkpoint, between two records."""


def checkpointed_of(function: UserCode) -> tuple[Any, ...]:
    """Return the functions in `function` that have operator state: itself, or what it wraps; () for others.

    A class counts that has both methods, whether it derives from `CheckpointedFunction` or not. One that wraps others
    names them in `wrapped_functions`.
    """
    if inspect.isclass(function) or inspect.isroutine(function):
        return ()
    if all(callable(getattr(function, method, None)) for method in ("initialize_state", "snapshot_state")):
        return (function,)
    return tuple(part for inner in getattr(function, "wrapped_functions", ()) for part in checkpointed_of(inner))


__all__ = ["CheckpointedFunction", "FunctionInitializationContext", "FunctionSnapshotContext", "checkpointed_of"]
