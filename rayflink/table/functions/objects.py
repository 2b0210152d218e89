"""Objects: rows whose fields are named by the query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..plan.typed import Arguments, Expr
from ..types import DataType, DataTypes, Root, RowField
from .casts.nested_casts import rows_of
from .declaring import Columns, Family, by_columns, constant

objects = Family("Collections")


def _names(keys: Sequence[Expr], after: str) -> list[str] | str:
    """Return the strings of keys, or what is wanted."""
    names = [constant(name) for name in keys]
    if any(not isinstance(name, str) or not name for name in names):
        return f"{after}names of fields, each a text, and their values in turn"
    twice = next((name for name in names if names.count(name) > 1), None)
    return names if twice is None else f"each field once; {twice} is there twice"


def _infer_of(args: Sequence[Expr]) -> DataType | str:
    expected = "the name of a class, then "
    if len(args) < 3 or len(args) % 2 == 0 or not isinstance(constant(args[0]), str):
        return f"{expected}names of fields, each a text, and their values in turn"
    names = _names(args[1::2], expected)
    if isinstance(names, str):
        return names
    return DataTypes.ROW([RowField(name, arg.type) for name, arg in zip(names, args[2::2], strict=True)]).not_null()


@objects(
    "OBJECT_OF(class, name1, value1, ...)", "A row of the named fields; the name of the class is ignored.", _infer_of
)
@by_columns
def _object_of(arguments: Arguments, columns: Columns) -> Any:
    return rows_of(list(columns[2::2]), arguments.call.type)


def _infer_update(args: Sequence[Expr]) -> DataType | str:
    expected = "a row, then "
    if len(args) < 3 or len(args) % 2 == 0 or args[0].type.root is not Root.ROW:
        return f"{expected}names of fields, each a text, and their values in turn"
    names = _names(args[1::2], expected)
    if isinstance(names, str):
        return names
    fields = {item.name: item for item in args[0].type.fields}
    unknown = next((name for name in names if name not in fields), None)
    if unknown is not None:
        return f"a row with the field {unknown}; it has {', '.join(fields)}"
    fields.update({name: RowField(name, item.type) for name, item in zip(names, args[2::2], strict=True)})
    return DataTypes.ROW(list(fields.values())).as_nullable(args[0].type.is_nullable)


@objects("OBJECT_UPDATE(row, name1, value1, ...)",
         "The row with new values in the named fields, which get the types of the values.",
         _infer_update)  # fmt: skip
@by_columns
def _object_update(arguments: Arguments, columns: Columns) -> Any:
    call = arguments.call
    values = dict(zip((field.name for field in call.args[0].type.fields), columns[0].flatten(), strict=True))
    values.update({constant(key): value for key, value in zip(call.args[1::2], columns[2::2], strict=True)})
    return rows_of(list(values.values()), call.type, columns[0].is_null())
