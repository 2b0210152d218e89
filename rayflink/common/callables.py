"""Turns what a user passes for a function (lambda, function, callable object, function class) into plain calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from .runtime_context import RuntimeContext


class UserFunction(NamedTuple):
    """A user's function, ready to be called: open once, call for each record, close once."""

    call: Callable[..., Any]
    open: Callable[[RuntimeContext], None]
    close: Callable[[], None]


class UserFunctionPair(NamedTuple):
    """A user's function for two inputs: `call1` for records of the first, `call2` for those of the second."""

    call1: Callable[..., Any]
    call2: Callable[..., Any]
    open: Callable[[RuntimeContext], None]
    close: Callable[[], None]


def _nothing(*_: object) -> None:
    pass


def life_cycle_of(function: Any) -> tuple[Callable[[RuntimeContext], None], Callable[[], None]]:
    """The function's own `open` and `close`, or calls that do nothing for plain functions."""
    if inspect.isroutine(function) or not hasattr(function, "open") or not hasattr(function, "close"):
        return _nothing, _nothing
    return function.open, function.close


def _method_of(function: Any, method: str, kind: str) -> Callable[..., Any]:
    if inspect.isclass(function) and hasattr(function, method) and hasattr(function, "open"):
        name = function.__name__
        raise TypeError(f"{kind} is wanted, but the class {name} itself was passed; pass an instance: {name}(...)")
    if not inspect.isroutine(function) and not inspect.isclass(function) and hasattr(function, method):
        call = getattr(function, method)
    elif callable(function):
        call = function
    else:
        raise TypeError(f"{kind} or a callable is wanted, got {type(function).__name__}: {function!r:.100}")
    if inspect.iscoroutinefunction(call):
        raise TypeError(f"{kind} cannot be async, got the coroutine function {call!r}; use AsyncDataStream for those")
    result: Callable[..., Any] = call
    return result


def _single(function: Any, method: str, kind: str) -> UserFunction:
    return UserFunction(_method_of(function, method, kind), *life_cycle_of(function))


def _pair(function: Any, methods: tuple[str, str], kind: str) -> UserFunctionPair:
    if isinstance(function, tuple) and len(function) == 2:
        first, second = (_method_of(part, "", "one callable for each input") for part in function)
        return UserFunctionPair(first, second, _nothing, _nothing)
    if inspect.isclass(function) or not all(hasattr(function, method) for method in methods):
        raise TypeError(
            f"{kind} instance with methods {' and '.join(methods)}, or a pair of callables, is wanted; "
            f"got {function!r:.100}"
        )
    calls = [_method_of(getattr(function, method), "", kind) for method in methods]
    return UserFunctionPair(calls[0], calls[1], *life_cycle_of(function))


def as_map(function: Any) -> UserFunction:
    """`value -> value`, from a MapFunction or a callable."""
    return _single(function, "map", "a MapFunction")


def as_flat_map(function: Any) -> UserFunction:
    """`value -> iterable or None`, from a FlatMapFunction or a callable."""
    return _single(function, "flat_map", "a FlatMapFunction")


def as_filter(function: Any) -> UserFunction:
    """`value -> truth`, from a FilterFunction or a callable."""
    return _single(function, "filter", "a FilterFunction")


def as_reduce(function: Any) -> UserFunction:
    """`(value, value) -> value`, from a ReduceFunction or a callable."""
    return _single(function, "reduce", "a ReduceFunction")


def as_key_selector(function: Any) -> UserFunction:
    """`value -> key`, from a KeySelector or a callable."""
    return _single(function, "get_key", "a KeySelector")


def as_partitioner(function: Any) -> UserFunction:
    """`(key, num_partitions) -> index`, from a Partitioner or a callable."""
    return _single(function, "partition", "a Partitioner")


def as_process(function: Any) -> UserFunction:
    """`(value, context) -> iterable or None`, from a (Keyed)ProcessFunction or a callable."""
    return _single(function, "process_element", "a ProcessFunction")


def as_sink(function: Any) -> UserFunction:
    """`value -> None`, from a SinkFunction or a callable."""
    return _single(function, "invoke", "a SinkFunction")


def as_co_map(function: Any) -> UserFunctionPair:
    """`value -> value` for each input, from a CoMapFunction or a pair of callables."""
    return _pair(function, ("map1", "map2"), "a CoMapFunction")


def as_co_flat_map(function: Any) -> UserFunctionPair:
    """`value -> iterable or None` for each input, from a CoFlatMapFunction or a pair of callables."""
    return _pair(function, ("flat_map1", "flat_map2"), "a CoFlatMapFunction")


def as_co_process(function: Any) -> UserFunctionPair:
    """`(value, context) -> iterable or None` for each input, from a (Keyed)CoProcessFunction or a pair of callables."""
    return _pair(function, ("process_element1", "process_element2"), "a CoProcessFunction")
