"""Calls of aggregate functions that give several columns or rows: `aggregate` and `flat_aggregate` of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from rayflink.common.errors import InvalidTypesError

from ..binding.user_aggregates import is_user_aggregate
from ..errors import SqlError
from ..parsing.program_nodes import Applied, FieldAt, MoreNames
from ..parsing.statements import Tree
from ..plan.logical import Attribute, Relation, Unnest
from ..plan.typed import Function
from ..types import Root
from ..udf import UserAggregate
from .expression_text import Operand, Written, column_tree, tree_of

RESULT = "$aggregate"
"""The column of the result of an aggregate function, before its fields become columns."""


def called(func: Operand, columns: Sequence[str], functions: Mapping[str, Function], gives_rows: bool) -> \
        tuple[Tree, list[str]]:  # fmt: skip
    """Return the call of an aggregate function, and the names that are given to its columns.

    Args:
        func: an expression, or what `udaf` or `udtaf` made, which is given the row.
        columns: of the row.
        functions: the user's functions by their names in capitals.
        gives_rows: it is called for rows.

    Raises:
        InvalidTypesError: it is neither.
    """
    names: list[str] = []
    if isinstance(func, UserAggregate):
        names = list(func.names)
        tree: Tree = Applied(this=func.of_rows(columns), expressions=[column_tree(name) for name in columns])
    elif isinstance(func, Written):
        tree = tree_of(func)
    else:
        remedy = "pass a function made by udaf or udtaf, or a call of it with columns"
        raise InvalidTypesError(f"{func!r} is not an aggregate function", remedy)
    if isinstance(tree, MoreNames):
        tree, names = tree.this, list(tree.args["expressions"])
    elif isinstance(tree, exp.Alias):
        tree, names = tree.this, [tree.alias]
    if isinstance(tree, exp.Anonymous) and (function := functions.get(str(tree.name).upper())) is not None:
        tree = Applied(this=function, expressions=tree.expressions)
    if gives_rows and not is_user_aggregate(tree):
        remedy = "pass a function made by udtaf, or a call of it with columns"
        raise InvalidTypesError(f"{tree} is not a table aggregate function", remedy)
    if gives_rows:
        tree = tree.copy()
        tree.set("gives_rows", True)
    return tree, names


def result_columns(plan: Relation, index: int, names: Sequence[str]) -> list[Tree]:
    """Return the select list for the result of an aggregate: the fields of a row, or the value.

    Args:
        plan: the relation with the result.
        index: of its column.
        names: new ones; none: those of the fields.

    Raises:
        SqlError: the number of names is wrong, or one is that of another column.
    """
    result, kind = column_tree(RESULT), plan.schema[index].type
    fields = [field.name for field in kind.fields] if kind.root is Root.ROW else []
    new_names = _new_names(fields or ["f0"], names, plan.names)
    values = [FieldAt(this=result, index=index) for index in range(len(fields))] or [result]
    return [exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))
            for value, name in zip(values, new_names, strict=True)]  # fmt: skip


def _new_names(fields: Sequence[str], names: Sequence[str], others: Sequence[str]) -> list[str]:
    if names and len(names) != len(fields):
        raise SqlError(f"{len(names)} names for {len(fields)} columns", "name all of them, or none")
    for name in names or fields:
        if name in others:
            problem = f"the function has a column {name!r}, and so have the groups"
            raise SqlError(problem, "give its columns other names: f.alias(...), or f(...).alias(...)")
    return list(names or fields)


def unnested(plan: Relation, index: int, names: Sequence[str]) -> Relation:
    """Return the rows of a column with the result of a table aggregate function, beside the other columns.

    Raises:
        SqlError: the number of names is wrong, or one is that of another column.
    """
    fields = plan.schema[index].type.items[0].fields
    new_names = _new_names([field.name for field in fields], names, plan.names)
    others = tuple(other for other in range(len(plan.schema)) if other != index)
    columns = [Attribute(name, field.type) for name, field in zip(new_names, fields, strict=True)]
    schema = (*(plan.schema[other] for other in others), *columns)
    return Unnest(schema, plan, plan.column(index), others, without_updates=True)


__all__ = ["RESULT", "called", "result_columns", "unnested"]
