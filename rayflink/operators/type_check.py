"""Holds what an operator emits to the type its program declared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.errors import TypeMismatch
from rayflink.common.records.batches import Element, RowBatch

from .base import Operator, UserCodeError, shortened

EMITTING = (
    "process", "process_watermark", "process_superstep", "on_processing_time", "end_input", "end_of_keys", "finish",
    "prepare_snapshot", "poll", "take_completed",
)  # fmt: skip
"""The methods by which an operator emits elements."""


def with_output_type(operator: Operator, type_info: TypeInformation) -> Operator:
    """Return the operator itself; its main output now has the type's own form: a tuple declared as ROW becomes a Row.

    A value that is not of the type fails the job like a function that raises, with the place in it, and the remedy.
    Columns keep the types they have; side outputs have types of their own.
    """
    for name in EMITTING:
        emit = getattr(operator, name, None)
        if emit is not None:
            setattr(operator, name, partial(_emit_checked, operator, type_info, emit))
    return operator


def _emit_checked(operator: Operator, type_info: TypeInformation, emit: Callable[..., Any], *arguments: Any) -> Any:
    elements = emit(*arguments)
    return elements if elements is None else _convert(operator, type_info, elements)


def _convert(operator: Operator, type_info: TypeInformation, elements: Iterable[Element]) -> Iterator[Element]:
    where = f"result of {operator.ctx.operator_name!r}"
    for element in elements:
        if type(element) is RowBatch:
            try:
                values = type_info.convert_batch(element.values, where, operator.ctx.call_site)
            except TypeMismatch as error:
                ctx = operator.ctx
                record = _misfit(element.values, type_info)
                mismatch = UserCodeError(ctx.operator_name, ctx.call_site, record, "output_type")
                raise mismatch from error.with_traceback(None)  # the user has no frame in it
            if values is not element.values:
                element = RowBatch(list(values), element.timestamps)
        yield element


def _misfit(values: list[Any], type_info: TypeInformation) -> str:
    """Return the first value that is not of the type, shortened."""
    for value in values:
        try:
            type_info.check(value)
        except TypeMismatch:
            return shortened(value)
    return ""


__all__ = ["with_output_type"]
