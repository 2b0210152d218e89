"""Values that every subtask adds to on its own and that are merged into one in the job's result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

from rayflink.user_types import UserValue

V = TypeVar("V")
R = TypeVar("R")
A = TypeVar("A", bound="Accumulator[Any, Any]")


class Accumulator(ABC, Generic[V, R]):
    """Adds values of type V up to a result of type R; `merge` must not depend on the order of the subtasks' parts."""

    @abstractmethod
    def add(self, value: V) -> None:
        """Add one value."""

    @abstractmethod
    def get_local_value(self) -> R:
        """Return the value of this subtask so far."""

    @abstractmethod
    def merge(self: A, other: A) -> None:
        """Take the other's content in."""

    @abstractmethod
    def reset_local(self) -> None:
        """Reset it to its first value."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.get_local_value()!r})"


class IntCounter(Accumulator[int, int]):
    """A sum of integers of any size."""

    def __init__(self, value: int = 0) -> None:
        self._value = value

    def add(self, value: int = 1) -> None:
        self._value += value

    def get_local_value(self) -> int:
        return self._value

    def merge(self, other: IntCounter) -> None:
        self._value += other._value

    def reset_local(self) -> None:
        self._value = 0


LongCounter = IntCounter


class DoubleCounter(Accumulator[float, float]):
    """A sum of floats."""

    def __init__(self, value: float = 0.0) -> None:
        self._value = value

    def add(self, value: float) -> None:
        self._value += value

    def get_local_value(self) -> float:
        return self._value

    def merge(self, other: DoubleCounter) -> None:
        self._value += other._value

    def reset_local(self) -> None:
        self._value = 0.0


class _Extremum(Accumulator[Any, Any]):
    def __init__(self) -> None:
        self._value: UserValue = None

    @staticmethod
    @abstractmethod
    def _better(left: UserValue, right: UserValue) -> Any:
        """Return the one of two values that wins."""

    def add(self, value: UserValue) -> None:
        self._value = value if self._value is None else self._better(self._value, value)

    def get_local_value(self) -> Any:
        return self._value

    def merge(self, other: _Extremum) -> None:
        if other._value is not None:
            self.add(other._value)

    def reset_local(self) -> None:
        self._value = None


class Minimum(_Extremum):
    """The smallest value added, or None."""

    @staticmethod
    def _better(left: UserValue, right: UserValue) -> Any:
        return min(left, right)


class Maximum(_Extremum):
    """The largest value added, or None."""

    @staticmethod
    def _better(left: UserValue, right: UserValue) -> Any:
        return max(left, right)


class AverageAccumulator(Accumulator[float, float]):
    """The mean of the values added; 0.0 of none."""

    def __init__(self) -> None:
        self._count = 0
        self._sum = 0.0

    def add(self, value: float) -> None:
        self._count += 1
        self._sum += value

    def get_local_value(self) -> float:
        return self._sum / self._count if self._count else 0.0

    def merge(self, other: AverageAccumulator) -> None:
        self._count += other._count
        self._sum += other._sum

    def reset_local(self) -> None:
        self._count, self._sum = 0, 0.0


class Histogram(Accumulator[int, dict[int, int]]):
    """The number of times that each value was added, in ascending order of the values."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def add(self, value: int) -> None:
        self._counts[value] = self._counts.get(value, 0) + 1

    def get_local_value(self) -> dict[int, int]:
        return dict(sorted(self._counts.items()))

    def merge(self, other: Histogram) -> None:
        for value, count in other._counts.items():
            self._counts[value] = self._counts.get(value, 0) + count

    def reset_local(self) -> None:
        self._counts.clear()


class ListAccumulator(Accumulator[Any, list[Any]]):
    """All values added; those of one subtask in order."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def add(self, value: UserValue) -> None:
        self._values.append(value)

    def extend(self, values: Iterable[Any]) -> None:
        """Add several values."""
        self._values.extend(values)

    def get_local_value(self) -> list[Any]:
        return list(self._values)

    def merge(self, other: ListAccumulator) -> None:
        self._values.extend(other._values)

    def reset_local(self) -> None:
        self._values.clear()


def merge_accumulators(parts: Iterable[Mapping[str, Accumulator[Any, Any]]]) -> dict[str, Accumulator[Any, Any]]:
    """Merge the accumulators of all subtasks into one per name; the parts are left as they are.

    Raises:
        TypeError: two subtasks use one name for accumulators of different types.
    """
    import copy

    merged: dict[str, Accumulator[Any, Any]] = {}
    for part in parts:
        for name, accumulator in part.items():
            known = merged.get(name)
            if known is None:
                merged[name] = copy.deepcopy(accumulator)
            elif type(known) is not type(accumulator):
                new_type, wanted = type(accumulator).__name__, type(known).__name__
                raise TypeError(
                    f"accumulator {name!r} is a {new_type} in one task and a {wanted} in another; rename one"
                )
            else:
                known.merge(accumulator)
    return merged
