"""Conditions on events: plain callables, condition classes with Flink's names, expressions, and their combinations.

A **test** is one condition of the user's. A simple one depends on the event alone; an iterative one also sees the
events that the partial match has so far, and is called for each partial match. Tests are combined by `AllOf`, `AnyOf`
and `Negation` to the condition of a pattern.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias

from rayflink.common.errors import InvalidFunction, shorten
from rayflink.common.functions.callables import UserFunction, as_single, ensure_takes
from rayflink.common.functions.function_classes import Function
from rayflink.common.functions.type_variables import Input1
from rayflink.common.user_code.call_sites import call_site
from rayflink.user_types import UserCode, UserRecord

from .column_conditions import ColumnCondition, column_condition_of


class ConditionContext(ABC):
    """Answers an iterative condition about the partial match that it is called for. Valid during the call."""

    @abstractmethod
    def get_events_for_pattern(self, name: str) -> list[Any]:
        """Return the events that the partial match has for a step, in order; empty where it has none.

        The list is the caller's; the events belong to the state and must not be changed.

        Raises:
            MalformedPatternException: the pattern has no such step.
        """

    @abstractmethod
    def timestamp(self) -> int:
        """Return the timestamp of the event, in epoch milliseconds."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the time of the wall clock, in epoch milliseconds."""


class IterativeCondition(Function, Generic[Input1]):
    """A condition that also sees the events matched so far. Flink: IterativeCondition, RichIterativeCondition.

    >>> class Dearer(IterativeCondition):
    ...     def filter(self, value, ctx):
    ...         return all(value > other for other in ctx.get_events_for_pattern("start"))
    """

    Context: TypeAlias = ConditionContext

    @abstractmethod
    def filter(self, value: Input1, ctx: ConditionContext) -> bool:
        """Return whether the event is accepted."""


class SimpleCondition(Function, Generic[Input1]):
    """A condition on the event alone. It is called once an event, for many events at a time.

    >>> class Dear(SimpleCondition):
    ...     def filter(self, value):
    ...         return value > 100
    """

    @abstractmethod
    def filter(self, value: Input1) -> bool:
        """Return whether the event is accepted."""


class SubtypeCondition(SimpleCondition[Any]):
    """Accepts the events of a class and its subclasses.

    Args:
        subtype: the class.

    >>> SubtypeCondition(int).filter(3), SubtypeCondition(int).filter("a")
    (True, False)
    """

    def __init__(self, subtype: type) -> None:
        self._subtype = subtype

    def filter(self, value: UserRecord) -> bool:
        return isinstance(value, self._subtype)


@dataclass(frozen=True, eq=False)
class Test:
    """One condition of the user's.

    Args:
        function: with its life cycle; its call takes an event, and the context where it is iterative.
        is_iterative: whether it depends on the partial match.
        label: its name in explanations and metrics.
        call_site: the line of the program that gave it, or "".
        columns: the condition, where it is one on columns.
    """

    function: UserFunction
    is_iterative: bool
    label: str
    call_site: str = ""
    columns: ColumnCondition | None = None

    __test__ = False  # pytest takes no class of this name for a test

    def __str__(self) -> str:
        return self.label


@dataclass(frozen=True, eq=False)
class AllOf:
    """Both of two conditions."""

    first: Condition
    second: Condition

    def __str__(self) -> str:
        return f"{self.first} and {self.second}"


@dataclass(frozen=True, eq=False)
class AnyOf:
    """At least one of two conditions."""

    first: Condition
    second: Condition

    def __str__(self) -> str:
        return f"({self.first} or {self.second})"


@dataclass(frozen=True, eq=False)
class Negation:
    """The opposite of a condition."""

    condition: Condition

    def __str__(self) -> str:
        return f"not {self.condition}"


@dataclass(frozen=True, eq=False)
class Always:
    """The condition that every event meets."""

    def __str__(self) -> str:
        return "true"


Condition: TypeAlias = Test | AllOf | AnyOf | Negation | Always
ALWAYS = Always()


def as_test(condition: UserCode, step: str) -> Test:
    """Return the test for what a program passes to `where`, `or_` or `until`.

    Args:
        condition: a SimpleCondition or IterativeCondition; a callable of the event, or of the event and the context; or
            an expression on columns.
        step: the method that it was passed to, for errors.

    Raises:
        InvalidFunction: it is none of these.
    """
    site = call_site()
    if isinstance(condition, IterativeCondition):
        return Test(as_single(condition, "filter", "an IterativeCondition", step, 2), True, label_of(condition), site)
    if isinstance(condition, SimpleCondition):
        return Test(as_single(condition, "filter", "a SimpleCondition", step, 1), False, label_of(condition), site)
    on_columns = column_condition_of(condition)
    if on_columns is not None:
        function = as_single(on_columns.meets, "meets", "a condition", step, 1)
        return Test(function, False, str(condition), site, on_columns)
    if not callable(condition):
        raise InvalidFunction(
            f"{step}() was passed {shorten(condition)}",
            "pass a callable of the event, or of the event and a context, a SimpleCondition or IterativeCondition, or "
            "an expression on columns, such as col('price') > 800",
            site,
        )
    takes_context = _takes(2, condition, step)
    function = as_single(condition, "filter", "a condition", step, 2 if takes_context else 1)
    return Test(function, takes_context, label_of(condition), site)


def _takes(width: int, function: UserCode, step: str) -> bool:
    """Return whether a callable takes `width` arguments; one that takes several numbers of them is a simple one."""
    try:
        ensure_takes(1, function, step)
    except InvalidFunction as error:
        try:
            ensure_takes(width, function, step)
        except InvalidFunction:
            remedy = "a condition takes the event, or the event and a context"
            raise InvalidFunction(error.problem, remedy, error.line) from None
        return True
    return False


def label_of(function: UserCode) -> str:
    """Return the name of a user's function in errors; of a lambda its line."""
    name = getattr(function, "__qualname__", type(function).__name__).rpartition(".")[2]
    code = getattr(function, "__code__", None)
    return f"lambda of line {code.co_firstlineno}" if name == "<lambda>" and code is not None else name


def tests_of(condition: Condition) -> Iterable[Test]:
    """Yield the tests of a condition, from left to right."""
    if isinstance(condition, Test):
        yield condition
    elif isinstance(condition, Negation):
        yield from tests_of(condition.condition)
    elif isinstance(condition, AllOf | AnyOf):
        yield from tests_of(condition.first)
        yield from tests_of(condition.second)


__all__ = [
    "ALWAYS", "AllOf", "Always", "AnyOf", "Condition", "ConditionContext", "IterativeCondition", "Negation",
    "SimpleCondition", "SubtypeCondition", "Test", "as_test", "label_of", "tests_of",
]  # fmt: skip
