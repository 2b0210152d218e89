"""Recording operators in the program's graph: what every call that adds an operator to a stream has in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rayflink.common.data_types.type_base import TypeInformation
from rayflink.graph import transformations as graph
from rayflink.operators.factory import Factory, Typed

from .step import as_type

if TYPE_CHECKING:
    from ..environment import StreamExecutionEnvironment

SAME_TYPE = object()
"""Stands for the type of the records that go in, which needs no second look."""
SAME_RECORDS = object()
"""The same, of a step that gives the records themselves, with their event times."""


def record_operator(
    env: StreamExecutionEnvironment,
    before: graph.Transformation,
    name: str,
    factory: Factory,
    output_type: Any = None,
    key_selector: graph.KeySelector | None = None,
) -> graph.OneInput:
    """Record an operator on one stream, and return its transformation.

    Args:
        before: the step whose records it takes.
        factory: makes the operator; it is called once here, so that a function of the wrong kind is refused in the
            user's line.
        output_type: the declared type of the results; `SAME_TYPE`, `SAME_RECORDS`, or None for any.
        key_selector: record -> key, where the operator has keyed state.

    Raises:
        InvalidTypesError: the output type is no type.
    """
    factory()
    is_same = output_type is SAME_TYPE or output_type is SAME_RECORDS
    type_before = before.declared_type()
    declared = type_before if is_same else as_type(output_type)
    if isinstance(declared, TypeInformation) and output_type is not SAME_RECORDS:
        declared = declared.of_other_times()
    make = factory if is_same or declared is None or not declared.is_declared else Typed(factory, declared)
    step = graph.OneInput(before, make, key_selector, name=name, output_type=declared)
    env.add(step)
    return step


def record_two_inputs(
    env: StreamExecutionEnvironment,
    before: tuple[graph.Transformation, graph.Transformation],
    name: str,
    factory: Factory,
    output_type: Any = None,
    key_selectors: tuple[graph.KeySelector | None, graph.KeySelector | None] = (None, None),
) -> graph.TwoInput:
    """Record an operator on two streams, and return its transformation; see `record_operator`.

    Args:
        before: the steps whose records it takes, in order.
        key_selectors: record -> key of each stream; None where it is not keyed.
    """
    factory()
    declared = as_type(output_type)
    make = factory if declared is None else Typed(factory, declared)
    step = graph.TwoInput(*before, make, *key_selectors, name=name, output_type=declared)
    env.add(step)
    return step


def record_multiple_inputs(
    env: StreamExecutionEnvironment,
    before: Sequence[graph.Transformation],
    name: str,
    factory: Factory,
    key_selectors: Sequence[graph.KeySelector | None],
) -> graph.MultipleInput:
    """Record an operator on any number of streams, and return its transformation; see `record_two_inputs`."""
    factory()
    step = graph.MultipleInput(tuple(before), factory, tuple(key_selectors), name=name)
    env.add(step)
    return step


__all__ = ["SAME_RECORDS", "SAME_TYPE", "record_multiple_inputs", "record_operator", "record_two_inputs"]
