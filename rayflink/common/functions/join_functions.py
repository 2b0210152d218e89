"""The functions users write for joins, with Flink's names; a plain function does as well as each of them."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Generic

from rayflink.user_types import UserCode, UserValue

from ..errors import InvalidFunction
from ..output_tag import OutputTag
from .callables import UserFunction, as_single, ensure_takes
from .function_classes import Function
from .type_variables import Input1, Input2, Output


class JoinFunction(Function, Generic[Input1, Input2, Output]):
    """One result for each pair of records of one key and window."""

    @abstractmethod
    def join(self, first: Input1, second: Input2) -> Output:
        """Return the result for a record of the first stream and one of the second."""


class FlatJoinFunction(Function, Generic[Input1, Input2, Output]):
    """Any number of results for each pair of records of one key and window."""

    @abstractmethod
    def join(self, first: Input1, second: Input2) -> Iterable[Output] | None:
        """Return the results for a record of the first stream and one of the second: an iterable or None."""


class CoGroupFunction(Function, Generic[Input1, Input2, Output]):
    """Any number of results for all records of one key and window, those of two streams apart."""

    @abstractmethod
    def co_group(self, first: list[Input1], second: list[Input2]) -> Iterable[Output] | None:
        """Return the results for the records of both streams, in order of arrival: an iterable or None.

        One of the lists may be empty, so that outer joins can be written.
        """


class ProcessJoinFunction(Function, Generic[Input1, Input2, Output]):
    """Any number of results for each pair of records that an interval join finds."""

    class Context(ABC):
        """The context of a pair; valid only during the call it was given to. Times are epoch milliseconds."""

        @abstractmethod
        def get_left_timestamp(self) -> int:
            """Return the timestamp of the record of the first stream."""

        @abstractmethod
        def get_right_timestamp(self) -> int:
            """Return the timestamp of the record of the second stream."""

        @abstractmethod
        def get_timestamp(self) -> int:
            """Return the timestamp of the pair and its results: the greater of the two."""

    @abstractmethod
    def process_element(
        self, left: Input1, right: Input2, ctx: ProcessJoinFunction.Context
    ) -> Iterable[Output | tuple[OutputTag, Any]] | None:
        """Return the results for a pair: an iterable or None; `yield tag, record` for a side output."""


def as_join(function: UserCode, step: str = "apply") -> tuple[UserFunction, bool]:
    """Return `(first, second) -> result` and whether it gives an iterable of results or None.

    It comes from a JoinFunction or a callable. A generator function gives many, as a FlatJoinFunction does.
    """
    join = as_single(function, "join", "a JoinFunction or FlatJoinFunction", step, 2)
    is_plain = not isinstance(function, JoinFunction | FlatJoinFunction)
    return join, isinstance(function, FlatJoinFunction) or (is_plain and inspect.isgeneratorfunction(join.call))


def as_co_group(function: UserCode) -> UserFunction:
    """Return `(list, list) -> iterable or None`, from a CoGroupFunction or a callable."""
    return as_single(function, "co_group", "a CoGroupFunction", "apply", 2)


def as_process_join(function: UserCode) -> UserFunction:
    """Return `(left, right, context) -> iterable or None`, from a ProcessJoinFunction or what `as_join` takes."""
    if not _joins(function):
        return as_single(function, "process_element", "a ProcessJoinFunction", "process", 3)
    join, is_flat = as_join(function, "process")
    return join._replace(call=partial(_results_of if is_flat else _result_of, join.call))


def _joins(function: UserCode) -> bool:
    """Return whether it takes two records and no context."""
    if isinstance(function, JoinFunction | FlatJoinFunction):
        return True
    if not callable(function) or inspect.isclass(function) or hasattr(function, "process_element"):
        return False
    try:
        ensure_takes(2, function, "process")
    except InvalidFunction:
        return False
    return True


def _result_of(join: Callable[[Any, Any], Any], left: UserValue, right: UserValue, ctx: object) -> Any:
    return (join(left, right),)


def _results_of(join: Callable[[Any, Any], Any], left: UserValue, right: UserValue, ctx: object) -> Any:
    return join(left, right)


__all__ = [
    "CoGroupFunction", "FlatJoinFunction", "JoinFunction", "ProcessJoinFunction", "as_co_group", "as_join",
    "as_process_join",
]  # fmt: skip
