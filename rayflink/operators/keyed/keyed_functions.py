"""Functions without a context of their own, as keyed operators that see the state of each record's key."""

from __future__ import annotations

from typing import Any

from rayflink.common.functions.function_classes import (
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    Function,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
)

from .keyed_process import KeyedProcessOperator
from .keyed_two_input import KeyedCoProcessOperator


class _WithLifeCycle(Function):
    def __init__(self, function: Any) -> None:
        self._function: Function = function
        self.wrapped_functions = (function,)

    def open(self, runtime_context: RuntimeContext) -> None:
        self._function.open(runtime_context)

    def close(self) -> None:
        self._function.close()


class _Map(_WithLifeCycle, KeyedProcessFunction):
    _function: MapFunction

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        return (self._function.map(value),)


class _FlatMap(_WithLifeCycle, KeyedProcessFunction):
    _function: FlatMapFunction

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        return self._function.flat_map(value)


class _Filter(_WithLifeCycle, KeyedProcessFunction):
    _function: FilterFunction

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        return (value,) if self._function.filter(value) else None


def keyed_map(key_selector: Any, function: MapFunction) -> KeyedProcessOperator:
    """Return a map that sees the state of each record's key."""
    return KeyedProcessOperator(key_selector, _Map(function))


def keyed_flat_map(key_selector: Any, function: FlatMapFunction) -> KeyedProcessOperator:
    """Return a flat map that sees the state of each record's key."""
    return KeyedProcessOperator(key_selector, _FlatMap(function))


def keyed_filter(key_selector: Any, function: FilterFunction) -> KeyedProcessOperator:
    """Return a filter that sees the state of each record's key."""
    return KeyedProcessOperator(key_selector, _Filter(function))


class _KeyedCoMap(_WithLifeCycle, KeyedCoProcessFunction):
    _function: CoMapFunction

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        return _unless_none(self._function.map1(value))

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        return _unless_none(self._function.map2(value))


class _KeyedCoFlatMap(_WithLifeCycle, KeyedCoProcessFunction):
    _function: CoFlatMapFunction

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        return self._function.flat_map1(value)

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        return self._function.flat_map2(value)


def _unless_none(result: Any) -> Any:
    return None if result is None else (result,)


def keyed_co_map(key_selector1: Any, key_selector2: Any, function: CoMapFunction) -> KeyedCoProcessOperator:
    """Return a map of two inputs that share the state of a key."""
    return KeyedCoProcessOperator(key_selector1, key_selector2, _KeyedCoMap(function))


def keyed_co_flat_map(key_selector1: Any, key_selector2: Any, function: CoFlatMapFunction) -> KeyedCoProcessOperator:
    """Return a flat map of two inputs that share the state of a key."""
    return KeyedCoProcessOperator(key_selector1, key_selector2, _KeyedCoFlatMap(function))
