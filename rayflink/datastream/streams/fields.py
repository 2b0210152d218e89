"""Fields that a step names, looked for in the declared type of its stream, where there is one."""

from __future__ import annotations

import difflib
from typing import Any

from rayflink.common.data_types.composite_types import RowTypeInfo, TupleTypeInfo
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.errors import PlanError, shorten
from rayflink.graph.transformations import call_site


def check_fields(step: str, fields: Any, declared: TypeInformation | None) -> None:
    """Refuse a field that records of the declared type cannot have.

    Args:
        step: the method of the program.
        fields: a field name, an index, or a tuple or list of them; anything else says nothing of fields.
        declared: of the records; None, and types without fields, say nothing either.

    Raises:
        PlanError: there is no such field.
    """
    if not isinstance(declared, (RowTypeInfo, TupleTypeInfo)):
        return
    width = len(declared.get_field_types())
    names = declared.get_field_names() if isinstance(declared, RowTypeInfo) else []
    for field in fields if type(fields) in (tuple, list) else (fields,):
        if isinstance(field, str) and field not in names:
            known = f"its fields are {shorten(names)}" if names else f"its {width} fields have no names, use an index"
            near = difflib.get_close_matches(field, names, 1)
            raise _missing(step, field, f"did you mean {near[0]!r}? {known}" if near else known)
        if type(field) is int and not -width <= field < width:
            raise _missing(step, field, f"records have {width} fields, the last is {width - 1}")


def _missing(step: str, field: object, remedy: str) -> PlanError:
    return PlanError(f"{step} wants field {field!r}, which the declared type does not have", remedy, call_site())


__all__ = ["check_fields"]
