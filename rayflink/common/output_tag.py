"""The name of a side output."""

from __future__ import annotations

from typing import Generic

from rayflink.user_types import TypeHint

from .data_types.composite_types import RowTypeInfo
from .data_types.type_base import TypeInformation
from .data_types.type_hints import to_type_info
from .functions.type_variables import Whole


class OutputTag(Generic[Whole]):
    """Names a side output: `yield tag, value` in a process function sends `value` there instead of to the main output.

    Two tags are equal when their ids are. For type checkers `OutputTag[Click]` is one of records of the class Click.

    Args:
        tag_id: not empty; unique among the side outputs of one operator.
        type_info: a TypeInformation, a type hint or a class; None means any. A list stands for a row of its types.

    Raises:
        ValueError: `tag_id` is empty.
        InvalidTypesError: `type_info` is no type.
    """

    __slots__ = ("tag_id", "type_info")

    def __init__(self, tag_id: str, type_info: TypeHint = None) -> None:
        if not isinstance(tag_id, str) or not tag_id:
            raise ValueError(f"an OutputTag needs a non-empty string as tag_id, found {tag_id!r}")
        self.tag_id = tag_id
        self.type_info = _type_of(type_info)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and self.tag_id == other.tag_id

    def __hash__(self) -> int:
        return hash((OutputTag, self.tag_id))

    def __repr__(self) -> str:
        return f"OutputTag({self.tag_id!r})"


def _type_of(declared: TypeHint) -> TypeInformation | None:
    if declared is None:
        return None
    if isinstance(declared, list):
        return RowTypeInfo([to_type_info(field) for field in declared])
    return to_type_info(declared)
