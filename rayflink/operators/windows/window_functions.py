"""The contents of windows, as accumulated in state, and the functions that evaluate them when a window fires."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from rayflink.common.functions.callables import ensure_takes, life_cycle_of
from rayflink.common.functions.function_classes import AllWindowFunction, ProcessAllWindowFunction, as_reduce
from rayflink.common.functions.runtime_context import RuntimeContext
from rayflink.state.value_isolation import isolated

from ..keyed.aggregations import Position, aggregation, field_of

_NO_STATE = (
    "a ReduceFunction or AggregateFunction of windows has none; keep the value in the accumulator, or in the state of "
    "a ProcessWindowFunction passed as window_function"
)


@dataclass(frozen=True)
class WindowContents:
    """The accumulation of records into one value for each key and window.

    Args:
        name: of the function, as shown in the operator's name.
        kind: of the state: reducing, aggregating or list.
        where: the user's method that `add` calls, for errors.
        first: record -> accumulator.
        add: accumulator, record -> accumulator; may be the same object.
        merge: two accumulators -> one with the records of both; may change the first.
        result: accumulator -> result; None: the accumulator is the result.
        function: whose life cycle is kept, or None.
        built_in: kind and field of a built-in aggregation, or None.
    """

    name: str
    kind: str
    where: str
    first: Callable[[Any], Any]
    add: Callable[[Any, Any], Any]
    merge: Callable[[Any, Any], Any]
    result: Callable[[Any], Any] | None = None
    function: Any = None
    built_in: tuple[str, Position] | None = None


def reducing(function: Any) -> WindowContents:
    """Return contents that keep one reduced record. `function`: a ReduceFunction or a callable of two records."""
    reduce = as_reduce(function).call
    return WindowContents(_name_of(function), "reducing", "reduce", isolated, reduce, reduce, None, function)


def built_in(kind: str, position: Position = 0) -> WindowContents:
    """Return contents that keep one record of a built-in aggregation: sum, min, max, min_by or max_by of a field."""
    name, combine = {"sum": "SumAggregator"}.get(kind, "ComparableAggregator"), aggregation(kind, position)

    def first(value: Any) -> Any:
        field_of(value, position)  # is not combined; it must have the field too
        return isolated(value)

    return WindowContents(name, "reducing", kind, first, combine, combine, built_in=(kind, position))


def aggregating(function: Any) -> WindowContents:
    """Return contents that keep one accumulator. `function`: an AggregateFunction.

    Raises:
        TypeError: it has not its methods.
        InvalidFunction: one of them takes another number of arguments.
    """
    wanted = ("create_accumulator", "add", "get_result")
    if inspect.isclass(function) or not all(hasattr(function, method) for method in wanted):
        raise TypeError(f"an AggregateFunction instance is wanted, found {function!r:.100}")
    create, add = function.create_accumulator, function.add
    for method, width in ((create, 0), (add, 2), (function.get_result, 1)):
        ensure_takes(width, method, "aggregate")
    return WindowContents(
        _name_of(function), "aggregating", "add", lambda value: add(value, create()),
        lambda accumulator, value: add(value, accumulator), lambda left, right: function.merge(left, right),
        function.get_result, function,
    )  # fmt: skip


def collecting() -> WindowContents:
    """Return contents that keep all records, in order of arrival."""

    def append(records: list[Any], value: Any) -> list[Any]:
        records.append(value)
        return records

    return WindowContents("", "list", "append", lambda value: [value], append, lambda left, right: [*left, *right])


class WindowEvaluation:
    """The function that evaluates a window that fires.

    Args:
        function: a ProcessWindowFunction, a WindowFunction, or a callable of key, window and records.

    Raises:
        TypeError: it is none of these.
        InvalidFunction: it takes another number of arguments.
    """

    def __init__(self, function: Any) -> None:
        if inspect.isclass(function) or not (hasattr(function, "process") or hasattr(function, "apply")):
            if inspect.isclass(function) or not callable(function):
                raise TypeError(
                    f"a ProcessWindowFunction or WindowFunction is wanted, found {function!r:.100}"
                )
            self._apply = function
        self.function = function
        self.name = _name_of(function)
        self.has_context = hasattr(function, "process")
        self.where = "process" if self.has_context else "apply"
        if hasattr(function, "apply"):
            self._apply = function.apply
        ensure_takes(3, function.process if self.has_context else self._apply, self.where)

    def __call__(self, key: Any, window: Any, context: Any, records: list[Any]) -> Iterable[Any] | None:
        """Return the results of one key and window."""
        if self.has_context:
            return self.function.process(key, context, records)  # type: ignore[no-any-return]
        return self._apply(key, window, records)  # type: ignore[no-any-return]

    def clear(self, context: Any) -> None:
        """Let the function clear its state: the window is over."""
        if self.has_context and hasattr(self.function, "clear"):
            self.function.clear(context)


def life_cycle(gathering: Any, evaluating: Any) -> tuple[Callable[[RuntimeContext], None], Callable[[], None]]:
    """Return `open` and `close` for the function that gathers records and the one that evaluates windows; each may be
    None.

    What gathers records is refused keyed state, as in Flink: a pane it fills may belong to several windows.
    """
    (open_first, close_first), (open_second, close_second) = life_cycle_of(gathering), life_cycle_of(evaluating)

    def open_all(runtime_context: RuntimeContext) -> None:
        open_first(runtime_context.without_keyed_state(_NO_STATE))
        open_second(runtime_context)

    def close_all() -> None:
        close_second()
        close_first()

    return open_all, close_all


def _name_of(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


class WithoutKey:
    """A window function of a stream without keys, in the form of one with keys."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.wrapped_functions = (function,)
        self.__name__ = str(getattr(function, "__name__", type(function).__name__))
        self.open, self.close = life_cycle_of(function)
        if isinstance(function, ProcessAllWindowFunction):
            ensure_takes(2, function.process, "process")
            self.process, self.clear = self._process, function.clear
        elif isinstance(function, AllWindowFunction):
            ensure_takes(2, function.apply, "apply")
            self.apply = self._apply
        elif callable(function):
            ensure_takes(2, function, "apply")
            self.apply = self._call
        else:
            wanted = "a ProcessAllWindowFunction, an AllWindowFunction or a callable of window and records"
            raise TypeError(f"{wanted} is wanted, found {function!r:.100}")

    def _process(self, key: Any, context: Any, records: Any) -> Any:
        return self._function.process(context, records)

    def _apply(self, key: Any, window: Any, records: Any) -> Any:
        return self._function.apply(window, records)

    def _call(self, key: Any, window: Any, records: Any) -> Any:
        return self._function(window, records)
