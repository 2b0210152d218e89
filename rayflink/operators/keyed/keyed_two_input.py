"""Operators on two keyed streams, whose records share the state of their common key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rayflink.common.functions.function_classes import (
    KeyBy,
    RuntimeContext,
    UserFunction,
    as_co_process,
    as_key_selector,
)
from rayflink.common.records.batches import Batch, Element

from ..user_function import UserCode
from .keyed_operator import KeyedOperator
from .keyed_process import KeyedProcessOperator


class TwoKeyedInputs(KeyedOperator):
    """A keyed operator whose second input has a key selector of its own.

    Args:
        key_selector1, key_selector2: one a stream, each a KeySelector or a callable.
        function: what the base class wants.
    """

    def __init__(self, key_selector1: Any, key_selector2: Any, function: Any) -> None:
        super().__init__(key_selector1, function)
        self._second = as_key_selector(key_selector2)
        self._selectors = (self._key_by, self._key_of), (KeyBy.of(key_selector2), self._second.call)

    def open(self) -> None:
        with UserCode(self.ctx, "open of the key selector"):
            self._second.open(RuntimeContext(self.ctx))
        super().open()

    def close(self) -> None:
        opened = self._opened
        try:
            super().close()
        finally:
            if opened:
                with UserCode(self.ctx, "close of the key selector"):
                    self._second.close()

    def keys_of_input(self, batch: Batch, input_index: int) -> list[Any]:
        self._key_by, self._key_of = self._selectors[input_index]
        return self.keys_of(batch)


class KeyedCoProcessOperator(TwoKeyedInputs, KeyedProcessOperator):
    """Calls `process_element1` for records of the first stream, `process_element2` for those of the second.

    Timers and state belong to the key, whichever stream it came by.

    Args:
        key_selector1, key_selector2: one a stream, each a KeySelector or a callable.
        function: a KeyedCoProcessFunction, or a pair of callables of value and context.
    """

    def __init__(self, key_selector1: Any, key_selector2: Any, function: Any) -> None:
        pair = as_co_process(function)
        on_timer = getattr(function, "on_timer", None)
        first = _Called(pair.call1, pair.open, pair.close, on_timer)
        first.wrapped_functions = pair.checkpointed
        super().__init__(key_selector1, key_selector2, first)
        self._on_superstep_end = getattr(function, "on_superstep_end", None)
        self._functions = self._function, UserFunction(pair.call2, pair.open, pair.close)

    def process(self, batch: Batch, input_index: int) -> Iterator[Element]:
        self._key_by, self._key_of = self._selectors[input_index]
        self._function = self._functions[input_index]
        yield from super().process(batch, input_index)


class _Called:
    """One of the two functions in the form of a process function."""

    wrapped_functions: tuple[Any, ...] = ()

    def __init__(self, call: Callable[..., Any], open: Any, close: Any, on_timer: Any) -> None:
        self.process_element, self.open, self.close = call, open, close
        if on_timer is not None:
            self.on_timer = on_timer


__all__ = ["KeyedCoProcessOperator", "TwoKeyedInputs"]
