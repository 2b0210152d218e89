"""The operator that a stream makes of a function, for tests of that function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rayflink.common.functions.function_classes import (
    FilterFunction,
    FlatMapFunction,
    Function,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
)
from rayflink.operators.base import Operator
from rayflink.operators.keyed.keyed_functions import keyed_filter, keyed_flat_map, keyed_map
from rayflink.operators.keyed.keyed_process import KeyedProcessOperator
from rayflink.operators.keyed.rolling import KeyedReduceOperator
from rayflink.operators.process import ProcessOperator
from rayflink.operators.stateless import FilterOperator, FlatMapOperator, MapOperator

_WITHOUT_KEY: dict[type, Callable[..., Operator]] = {
    MapFunction: MapOperator,
    FlatMapFunction: FlatMapOperator,
    FilterFunction: FilterOperator,
    ProcessFunction: ProcessOperator,
}
_BY_KEY: dict[type, Callable[..., Operator]] = {
    MapFunction: keyed_map,
    FlatMapFunction: keyed_flat_map,
    FilterFunction: keyed_filter,
    ProcessFunction: KeyedProcessOperator,
    KeyedProcessFunction: KeyedProcessOperator,
    ReduceFunction: KeyedReduceOperator,
}


def operator_of(make_function: Callable[[], Function], key: Any = None) -> Callable[[], Operator]:
    """Give what `verify` and `OperatorHarness` take to test a function of one input.

    Args:
        make_function: makes a fresh function, as its class does: a MapFunction, FlatMapFunction, FilterFunction,
            ProcessFunction, and with a key also a KeyedProcessFunction or ReduceFunction.
        key: record -> key, or a KeySelector, as of `key_by`; None: the stream is not keyed.

    Raises:
        TypeError: when the operator is made: there is no operator for such a function, with or without a key.

    >>> from rayflink.datastream import MapFunction
    >>> from rayflink.testing import OperatorHarness, operator_of
    >>> class Upper(MapFunction):
    ...     def map(self, value):
    ...         return value.upper()
    >>> with OperatorHarness(operator_of(Upper)) as harness:
    ...     harness.process("a", 5)
    ...     harness.output
    [rec('A', 5)]
    """
    operators, settings = (_WITHOUT_KEY, ()) if key is None else (_BY_KEY, (key,))

    def make() -> Operator:
        function = make_function()
        for kind, operator in operators.items():
            if isinstance(function, kind):
                return operator(*settings, function)
        wanted = ", ".join(sorted(known.__name__ for known in operators))
        stream = "a stream without keys" if key is None else "a keyed stream"
        remedy = "; give a key" if isinstance(function, tuple(_BY_KEY)) else ""
        raise TypeError(f"operator_of found {type(function).__name__}, {stream} takes one of {wanted}{remedy}")

    return make


__all__ = ["operator_of"]
