"""The facts that a user's function may ask about its task, and the services it may use there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rayflink.state.descriptors import StateDescriptor

from ..options import registry as options
from .accumulators import Accumulator

if TYPE_CHECKING:
    from rayflink.state.descriptors import (
        AggregatingStateDescriptor,
        ListStateDescriptor,
        MapStateDescriptor,
        ReducingStateDescriptor,
        ValueStateDescriptor,
    )
    from rayflink.state.handles import AggregatingState, ListState, MapState, ReducingState, ValueState

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


class KeyedStateStore(ABC):
    """Gives access to the state of the current key."""

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor[T]) -> ValueState[T]:
        """Return the `ValueState` of a `ValueStateDescriptor`."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """Return the `ListState` of a `ListStateDescriptor`."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor[K, V]) -> MapState[K, V]:
        """Return the `MapState` of a `MapStateDescriptor`."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor[T]) -> ReducingState[T]:
        """Return the `ReducingState` of a `ReducingStateDescriptor`."""

    @abstractmethod
    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor[IN, OUT]) -> AggregatingState[IN, OUT]:
        """Return the `AggregatingState` of an `AggregatingStateDescriptor`."""


class TaskFacts(Protocol):
    """The part of an operator's context that user functions can see; see `OperatorContext` for each attribute."""

    operator_name: str
    task_name: str
    job_id: str
    subtask: int
    parallelism: int
    max_parallelism: int
    attempt: int
    metrics: Any
    config: Mapping[str, Any]
    accumulators: dict[str, Any]
    cached_files: Mapping[str, str]


class DistributedCache:
    """Files that were registered at the environment; the process of a task has copies, made while the task starts.

    Args:
        files: registered name -> path of the copy, which is waited for.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files

    def get_file(self, name: str) -> str:
        """Return the local path of the copy of the file (or directory) registered as `name`; waits until it is there.

        It is the process's own, shared by its tasks, and goes with the job: do not write to it.

        Raises:
            KeyError: no file is registered under that name.
            RayflinkError: the file could not be copied; names it and the task.
        """
        if name not in self._files:
            known = ", ".join(sorted(self._files)) or "none"
            message = f"no cached file {name!r} (registered: {known}); call env.register_cached_file(path, {name!r})"
            raise KeyError(message)
        return self._files[name]


class RuntimeContext(KeyedStateStore):
    """The task as a user's function sees it, given to `open`.

    Args:
        facts: the operator's context.
        keyed_state: state store of the current key, or None where the function has none.
        no_state: why it has none, and the remedy.
    """

    def __init__(
        self,
        facts: TaskFacts,
        keyed_state: KeyedStateStore | None = None,
        no_state: str = "its stream is not keyed; call key_by(...) before it",
    ) -> None:
        self._facts = facts
        self._keyed_state = keyed_state
        self._no_state = no_state

    def without_keyed_state(self, reason: str) -> RuntimeContext:
        """Return the same context for a function that may not use keyed state, for this reason."""
        return RuntimeContext(self._facts, None, reason)

    def get_task_name(self) -> str:
        """Return the name of the task, without the subtask."""
        return self._facts.task_name

    def get_task_name_with_subtasks(self) -> str:
        """Return the name of the task with the subtask counted from one and the attempt: `map (2/4)#0`."""
        facts = self._facts
        return f"{facts.task_name} ({facts.subtask + 1}/{facts.parallelism})#{facts.attempt}"

    def get_job_id(self) -> str:
        """Return the id of the job, 32 hex digits."""
        return self._facts.job_id

    def get_number_of_parallel_subtasks(self) -> int:
        """Return the parallelism of the operator."""
        return self._facts.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        """Return the maximum parallelism of the operator: its number of key groups."""
        return self._facts.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        """Return the index of this subtask, in [0, parallelism)."""
        return self._facts.subtask

    def get_attempt_number(self) -> int:
        """Return 0 for the first execution of this subtask, one more after each restart."""
        return self._facts.attempt

    def get_job_parameter(self, key: str, default_value: str | None = None) -> Any:
        """Return the job's global parameter `key`, else its option of this key, else the default."""
        whole = options.GLOBAL_JOB_PARAMETERS
        own = self._facts.config.get(f"{whole.key}.{key}")
        if own is None and whole.key in self._facts.config:
            own = (whole.read(self._facts.config[whole.key]) or {}).get(key)
        return self._facts.config.get(key, default_value) if own is None else own

    def get_metrics_group(self) -> Any:
        """Return the metric group of the operator."""
        return self._facts.metrics

    def get_distributed_cache(self) -> DistributedCache:
        """Return the files registered at the environment."""
        return DistributedCache(self._facts.cached_files)

    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        """Register an accumulator; those of equal name are merged over all subtasks in the job's result.

        Raises:
            ValueError: this task already has an accumulator of that name.
        """
        known = self._facts.accumulators.setdefault(name, accumulator)
        if known is not accumulator:
            raise ValueError(f"accumulator {name!r} exists already in task {self.get_task_name()!r}; use another name")

    def get_accumulator(self, name: str) -> Any:
        """Return the accumulator registered as `name`, or None."""
        return self._facts.accumulators.get(name)

    def get_state(self, state_descriptor: ValueStateDescriptor[T]) -> ValueState[T]:
        """Return one value a key, by a ValueStateDescriptor.

        Raises:
            RuntimeError: the stream of the operator is not keyed, or the function gathers the records of windows.
        """
        return self._store(state_descriptor).get_state(state_descriptor)

    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """Return a list of values a key, by a ListStateDescriptor.

        Raises:
            RuntimeError: the stream of the operator is not keyed, or the function gathers the records of windows.
        """
        return self._store(state_descriptor).get_list_state(state_descriptor)

    def get_map_state(self, state_descriptor: MapStateDescriptor[K, V]) -> MapState[K, V]:
        """Return a dict a key, by a MapStateDescriptor.

        Raises:
            RuntimeError: the stream of the operator is not keyed, or the function gathers the records of windows.
        """
        return self._store(state_descriptor).get_map_state(state_descriptor)

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor[T]) -> ReducingState[T]:
        """Return one value a key, reduced from all that were added, by a ReducingStateDescriptor.

        Raises:
            RuntimeError: the stream of the operator is not keyed, or the function gathers the records of windows.
        """
        return self._store(state_descriptor).get_reducing_state(state_descriptor)

    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor[IN, OUT]) -> AggregatingState[IN, OUT]:
        """Return one aggregate a key of all that were added, by an AggregatingStateDescriptor.

        Raises:
            RuntimeError: the stream of the operator is not keyed, or the function gathers the records of windows.
        """
        return self._store(state_descriptor).get_aggregating_state(state_descriptor)

    def _store(self, descriptor: StateDescriptor) -> KeyedStateStore:
        if self._keyed_state is None:
            name = getattr(descriptor, "name", descriptor)
            raise RuntimeError(
                f"operator {self._facts.operator_name!r} asked for keyed state {name!r}, but {self._no_state}"
            )
        return self._keyed_state
