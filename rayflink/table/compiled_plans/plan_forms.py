"""The form of what a plan contains, which may have been edited by hand, or cut.

Fields of nodes and values have the form of their annotations; a name that is not known here may be anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from ..errors import SqlError
from ..plan.changelog import Change
from ..plan.logical import Relation, Scan
from ..plan.typed import Expr, Function
from ..types import DataType
from .plan_types import ENUM_TYPES, VALUE_TYPES

COMPILE_AGAIN = "compile the statement again with this version; its state is then the one of a changed query"
"""The remedy where a plan cannot be run as it is."""
_CLASSES: Mapping[str, type] = {
    "None": type(None), "bool": bool, "str": str, "Relation": Relation, "Scan": Scan, "Expr": Expr,
    "DataType": DataType, "Function": Function, "Change": Change, **VALUE_TYPES, **ENUM_TYPES,
}  # fmt: skip
Form = Callable[[object], bool]


def ensure_form(value: object, annotation: str, what: str) -> None:
    """Check that a value is one of an annotation.

    >>> ensure_form((1, None), "tuple[int | None, ...]", "node 2 has the field 'columns'")

    Raises:
        SqlError: it is not.
    """
    if not _form(annotation)(value):
        raise SqlError(f"{what}: found {value!r:.80}, wanted {annotation}", COMPILE_AGAIN)


@cache
def _form(annotation: str) -> Form:
    """Return the function that says whether a value is one of an annotation."""
    choices = _split(annotation, "|")
    if len(choices) > 1:
        forms = [_form(choice) for choice in choices]
        return lambda value: any(form(value) for form in forms)
    if annotation == "Schema":
        return _form("tuple[Attribute, ...]")
    if annotation == "int":
        return lambda value: isinstance(value, int) and not isinstance(value, bool)
    if annotation == "dict[str, str]":
        return lambda value: isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
    if annotation.startswith(("tuple[", "list[")):
        return _sequence(list if annotation.startswith("list[") else tuple, annotation.partition("[")[2][:-1])
    kind = _CLASSES.get(annotation)
    return (lambda value: True) if kind is None else (lambda value: isinstance(value, kind))


def _sequence(kind: type[tuple[object, ...]] | type[list[object]], items: str) -> Form:
    names = _split(items, ",")
    if kind is list or names[-1] == "...":
        form = _form(names[0])
        return lambda value: isinstance(value, kind) and all(map(form, value))
    forms = [_form(name) for name in names]
    return lambda value: (
        isinstance(value, tuple) and len(value) == len(forms)
        and all(form(item) for form, item in zip(forms, value, strict=True))
    )  # fmt: skip


def _split(annotation: str, separator: str) -> list[str]:
    """Return the parts between separators that stand in no brackets."""
    parts, depth = [""], 0
    for character in annotation:
        depth += (character == "[") - (character == "]")
        if character == separator and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


__all__ = ["COMPILE_AGAIN", "ensure_form"]
