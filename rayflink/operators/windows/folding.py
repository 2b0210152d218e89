"""Fold, of Flink 1.x: records are combined one by one with a value that may be of another type."""

from __future__ import annotations

from typing import Any

from rayflink.common.functions.callables import as_fold
from rayflink.common.functions.function_classes import AggregateFunction
from rayflink.state.backend import NO_KEY
from rayflink.state.value_isolation import isolated

from ..base import UserCodeError, shortened
from ..keyed.keyed_operator import KeyedOperator
from ..keyed.rolling import ABSENT, KeyedReduceOperator, has_open
from .window_functions import WindowContents, aggregating


class KeyedFoldOperator(KeyedReduceOperator):
    """Emits, for each record, the fold of all records of its key so far. The result keeps the record's timestamp.

    Args:
        key_selector: a KeySelector or a callable.
        initial: what the first record of a key is combined with; each key has a copy.
        function: a FoldFunction or a callable of the value so far and the record. What has an `open` of its own may use
            the state of the record's key.
    """

    where = "fold"

    def __init__(self, key_selector: Any, initial: Any, function: Any) -> None:
        self._function = as_fold(function)
        KeyedOperator.__init__(self, key_selector, self._function)
        self._initial = isolated(initial)
        self._sets_key = bool(self._function.checkpointed) or has_open(function)

    def reduce_batch(self, keys: list[Any], values: list[Any], state: dict[Any, Any]) -> list[Any]:
        """Return the results of a batch, one for each record, and update `state`."""
        fold, results = self._function.call, []
        key = value = None
        try:
            for key, value in zip(keys, values, strict=True):
                self.context.key = key = self.canonical(key, value)
                so_far = state.get(key, ABSENT)
                state[key] = result = isolated(fold(isolated(self._initial) if so_far is ABSENT else so_far, value))
                results.append(isolated(result))
        except UserCodeError:
            raise
        except Exception as error:
            raise self.failure(self.where, shortened(value)) from error
        self.context.key = NO_KEY
        return results


class _Fold(AggregateFunction):
    def __init__(self, initial: Any, function: Any) -> None:
        self._initial, self._fold = isolated(initial), as_fold(function)
        self.wrapped_functions = (function,)
        self.__name__ = str(getattr(function, "__name__", type(function).__name__))

    def open(self, runtime_context: Any) -> None:
        self._fold.open(runtime_context)

    def close(self) -> None:
        self._fold.close()

    def create_accumulator(self) -> Any:
        return isolated(self._initial)

    def add(self, value: Any, accumulator: Any) -> Any:
        return self._fold.call(accumulator, value)

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        raise TypeError("what was folded cannot be merged")


def folding(initial: Any, function: Any) -> WindowContents:
    """Return contents that keep the result of folding the records. `function`: a FoldFunction or a callable of the
    value and a record.
    """
    return aggregating(_Fold(initial, function))


__all__ = ["KeyedFoldOperator", "folding"]
