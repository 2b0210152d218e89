"""State descriptors, with PyFlink's names: the states that a function requests from its runtime context."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol

from rayflink.user_types import UserAccumulator, UserValue

from .errors import DuplicateStateError
from .type_variables import IN, OUT, Added, Got, K, T, V

if TYPE_CHECKING:
    from .expiry import Expiry


class TimeToLive(Protocol):
    """The argument of `enable_time_to_live`; `StateTtlConfig` is one."""

    def expiry(self) -> Expiry | None:
        """Return the rules; None where the time to live is disabled."""
        ...


class Reducing(Protocol[T]):
    """The function of a `ReducingStateDescriptor` where it is no plain callable; a `ReduceFunction` is one."""

    def reduce(self, value1: T, value2: T) -> T:
        """Combine two values into one."""
        ...


class Aggregating(Protocol[Added, Got]):
    """The function of an `AggregatingStateDescriptor`; an `AggregateFunction` is one."""

    def create_accumulator(self) -> UserAccumulator:
        """Return a new, empty accumulator."""
        ...

    def add(self, value: Added, accumulator: UserAccumulator) -> UserAccumulator:
        """Return the accumulator with `value` added."""
        ...

    def get_result(self, accumulator: UserAccumulator) -> Got:
        """Return the result of what was added."""
        ...


class DeclaredType(Protocol):
    """The declared type of a state's values; a `TypeInformation` is one."""

    def convert(self, value: UserValue, where: str, /) -> UserValue:
        """Return a value of the type as state stores it; raise an error that names `where` for any other value."""
        ...


class StateDescriptor:
    """The name of one state of an operator and, where declared, the type of its values.

    Args:
        name: not empty; unique among the states of the operator.
        type_info: type of the values; None for any.

    Raises:
        ValueError: the name is empty or not a string.
    """

    kind: ClassVar[str] = "value"

    def __init__(self, name: str, type_info: DeclaredType | None = None) -> None:
        if not isinstance(name, str) or not name:
            raise ValueError(f"a state needs a non-empty string as its name, found {name!r}")
        self.name = name
        self.type_info = type_info
        self.expiry: Expiry | None = None
        """Time to live of the values; None for ever."""

    @property
    def stored_kind(self) -> str:
        """Return the kind of the stored values; values that expire are stored with a time."""
        return self.kind if self.expiry is None else f"expiring {self.kind}"

    def enable_time_to_live(self, ttl_config: TimeToLive) -> None:
        """Let values expire; call it before the descriptor is used.

        Args:
            ttl_config: a `StateTtlConfig`.
        Raises:
            TypeError: it is none.
        """
        if not callable(getattr(ttl_config, "expiry", None)):
            raise TypeError(
                f"a StateTtlConfig is wanted, found {ttl_config!r:.100}; "
                "write for example StateTtlConfig.new_builder(Time.hours(1)).build()"
            )
        self.expiry = ttl_config.expiry()

    def get_name(self) -> str:
        """Return the name of the state."""
        return self.name

    def types(self) -> tuple[DeclaredType | None, ...]:
        """Return the declared types, None for any."""
        return (self.type_info,)

    def ensure_alike(self, other: StateDescriptor) -> None:
        """Let one state have both descriptors, which have the same name.

        Raises:
            DuplicateStateError: kind or time to live differ, or types that both declare.
        """
        if self.kind != other.kind:
            raise DuplicateStateError(self.name, f"{self.kind} state", f"{other.kind} state")
        for declared, its in zip(self.types(), other.types(), strict=True):
            if declared is not None and its is not None and declared != its:
                raise DuplicateStateError(self.name, f"{self.kind} state of {declared}", f"{self.kind} state of {its}")
        if self.expiry != other.expiry:
            raise DuplicateStateError(self.name, f"one with {_life(self.expiry)}", f"one with {_life(other.expiry)}")

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without the type that `ValueStateDescriptor[int](...)` notes for type checkers."""
        return {name: value for name, value in vars(self).items() if name != "__orig_class__"}

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, StateDescriptor) and other.name == self.name

    def __hash__(self) -> int:
        return hash((self.kind, self.name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class ValueStateDescriptor(StateDescriptor, Generic[T]):
    """One value per key; for type checkers, `ValueStateDescriptor[int]` describes a value of class int.

    Args:
        name: unique among the states of the operator.
        value_type_info: type of the value; None for any.
    """

    kind = "value"

    def __init__(self, name: str, value_type_info: DeclaredType | None = None) -> None:
        super().__init__(name, value_type_info)


class ListStateDescriptor(StateDescriptor, Generic[T]):
    """One list per key, or the entries of operator list state.

    Args:
        name: unique among the states of the operator.
        elem_type_info: type of the elements; None for any.
    """

    kind = "list"

    def __init__(self, name: str, elem_type_info: DeclaredType | None = None) -> None:
        super().__init__(name, elem_type_info)


class MapStateDescriptor(StateDescriptor, Generic[K, V]):
    """One map per key, or broadcast state.

    Args:
        name: unique among the states of the operator.
        key_type_info: type of the map's keys; None for any.
        value_type_info: type of the map's values; None for any.
    """

    kind = "map"

    def __init__(
        self, name: str, key_type_info: DeclaredType | None = None, value_type_info: DeclaredType | None = None
    ) -> None:
        super().__init__(name, value_type_info)
        self.key_type_info = key_type_info

    def types(self) -> tuple[DeclaredType | None, ...]:
        return self.key_type_info, self.type_info


class ReducingStateDescriptor(StateDescriptor, Generic[T]):
    """One value per key, into which each added value is reduced.

    Args:
        name: unique among the states of the operator.
        reduce_function: a `ReduceFunction`, or a callable of the old and the new value.
        type_info: type of the value; None for any.
    """

    kind = "reducing"

    def __init__(
        self, name: str, reduce_function: Callable[[T, T], T] | Reducing[T], type_info: DeclaredType | None = None
    ) -> None:
        super().__init__(name, type_info)
        self.reduce_function = reduce_function

    def get_reduce_function(self) -> Callable[[T, T], T] | Reducing[T]:
        """Return the function that reduces values."""
        return self.reduce_function


class AggregatingStateDescriptor(StateDescriptor, Generic[IN, OUT]):
    """One accumulator per key, to which each value is added.

    Args:
        name: unique among the states of the operator.
        agg_function: an `AggregateFunction`.
        state_type_info: type of the accumulator; None for any.
    """

    kind = "aggregating"

    def __init__(
        self, name: str, agg_function: Aggregating[IN, OUT], state_type_info: DeclaredType | None = None
    ) -> None:
        super().__init__(name, state_type_info)
        self.agg_function = agg_function

    def get_agg_function(self) -> Aggregating[IN, OUT]:
        """Return the function that aggregates values."""
        return self.agg_function


def _life(expiry: Expiry | None) -> str:
    return "no time to live" if expiry is None else str(expiry)
