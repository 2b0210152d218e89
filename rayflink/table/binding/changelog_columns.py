"""Calls of TO_CHANGELOG and FROM_CHANGELOG, in FROM and as methods of a Table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from rayflink.common.types import RowKind

from ..errors import SqlError, nearest
from ..parsing.dialect import Descriptor, NamedArgument, TableArgument
from ..parsing.statements import Tree
from ..plan.logical import Attribute, Relation
from ..plan.op_columns import Codes, FromChangelog, ToChangelog
from ..plan.typed import Column, Evaluation, Session
from ..types import DataTypes, Root
from .expressions import ExpressionBinder, place_of
from .joins import Queries
from .scope import Scope

KINDS = {kind.name: kind for kind in RowKind}
_NAMES = ("input", "op", "op_mapping")
"""The arguments in their order."""


def is_changelog_call(tree: Tree) -> bool:
    """Return whether a part of FROM is a call of TO_CHANGELOG or FROM_CHANGELOG."""
    called = tree.this if isinstance(tree, exp.Table) else None
    return isinstance(called, exp.Anonymous) and str(called.name).upper() in _MAKERS


def bind_changelog_call(queries: Queries, call: Tree) -> Relation:
    """Return the rows of TO_CHANGELOG or FROM_CHANGELOG.

    Raises:
        SqlError: the arguments are not those that it takes.
    """
    name, place = str(call.name).upper(), place_of(call)
    arguments = [_named(tree, position) for position, tree in enumerate(call.expressions)]
    tables = [tree.expression for tree in arguments if str(tree.this) == "input"]
    if len(tables) != 1 or not isinstance(tables[0], TableArgument):
        raise SqlError(f"{name} has no table", f"write {name}(input => TABLE t)", "", place)
    if tables[0].args.get("partition_by") or tables[0].args.get("order_by"):
        remedy = "leave it out: the changes of a row come in the order of their source"
        raise SqlError(f"{name} takes no PARTITION BY and no ORDER BY", remedy, "", place_of(tables[0]) or place)
    relation, _ = queries.table(tables[0].this)
    try:
        return _MAKERS[name](relation, [tree for tree in arguments if str(tree.this) != "input"])
    except SqlError as error:
        raise (error if error.place else error.at("", place)) from error


def _named(tree: Tree, position: int) -> Tree:
    """Return an argument with its name; one too many has none that is known."""
    if isinstance(tree, NamedArgument):
        return tree
    return NamedArgument(this=_NAMES[position] if position < len(_NAMES) else f"number {position + 1}", expression=tree)


def to_changelog(plan: Relation, arguments: Iterable[Tree]) -> ToChangelog:
    """See `Table.to_changelog`."""
    op, mapping = _arguments(arguments)
    if op in plan.names:
        raise SqlError(f"the table has a column {op!r} already", "give descriptor('other').as_argument('op')")
    codes: Codes = tuple(KINDS.items())
    if mapping is not None:
        codes = tuple((code, kind) for names, code in mapping.items() for kind in _kinds(names))
    columns = tuple(Attribute(column.name, column.type) for column in plan.schema)
    return ToChangelog((Attribute(op, DataTypes.STRING()), *columns), plan, codes)


def from_changelog(plan: Relation, arguments: Iterable[Tree]) -> FromChangelog:
    """See `Table.from_changelog`."""
    op, mapping = _arguments(arguments)
    if op not in plan.names:
        problem = f"there is no column {op!r}{nearest(op, plan.names)}"
        remedy = f"name a column by descriptor(...).as_argument('op'); the columns are {', '.join(plan.names)}"
        raise SqlError(problem, remedy)
    index = plan.names.index(op)
    if not plan.schema[index].type.is_text:
        raise SqlError(f"column {op!r} is of type {plan.schema[index].type}", "CAST it to STRING")
    codes: Codes = tuple(KINDS.items())
    if mapping is not None:
        codes = tuple(
            (code, kind) for codes_text, name in mapping.items() for code in _parts(codes_text) for kind in _kinds(name)
        )
    kinds = {kind for _, kind in codes}
    if RowKind.UPDATE_AFTER in kinds and RowKind.UPDATE_BEFORE not in kinds:
        remedy = "map a code to UPDATE_BEFORE as well: its rows say which rows are replaced"
        raise SqlError("op_mapping has UPDATE_AFTER and no UPDATE_BEFORE", remedy)
    columns = tuple(Attribute(column.name, column.type) for column in plan.schema[:index] + plan.schema[index + 1 :])
    return FromChangelog(columns, plan, codes, index)


def _parts(codes: str) -> list[str]:
    return [code.strip() for code in codes.split(",")]


def _kinds(kinds: str) -> list[RowKind]:
    """Return the kinds of a list of names.

    Raises:
        SqlError: one is none.
    """
    names = _parts(kinds)
    unknown = next((name for name in names if name not in KINDS), None)
    if unknown is not None:
        raise SqlError(
            f"op_mapping has {unknown!r}{nearest(unknown, KINDS)}", f"the kinds of change are {', '.join(KINDS)}"
        )
    return [KINDS[name] for name in names]


def _arguments(arguments: Iterable[Tree]) -> tuple[str, Mapping[str, str] | None]:
    """Return the name of the column, and the mapping; None: strings are names of kinds.

    Raises:
        SqlError: an argument is not known, or of another form.
    """
    op, mapping = "op", None
    for tree in arguments:
        name = str(tree.this) if isinstance(tree, NamedArgument) else ""
        if name == "op" and isinstance(tree.expression, Descriptor) and len(tree.expression.expressions) == 1:
            op = tree.expression.expressions[0].name
        elif name == "op_mapping":
            mapping = _mapping(tree.expression)
        else:
            remedy = "give descriptor('op').as_argument('op'), or map_('INSERT', 'I', ...).as_argument('op_mapping')"
            raise SqlError(f"{name or tree.sql()} is not an argument of this function", remedy)
    return op, mapping


def _mapping(tree: Tree) -> Mapping[str, str]:
    expr = ExpressionBinder(Scope(())).bind(tree)
    strings = expr.type.root is Root.MAP and all(item.is_text for item in expr.type.items)
    if not strings or any(isinstance(item, Column) for item in expr.walk()):
        raise SqlError(f"op_mapping is {expr}", "give a map of strings, as map_('INSERT', 'I', 'DELETE', 'D')")
    mapping = dict(Evaluation([], 1, Session("UTC")).column(expr)[0].as_py())
    used: list[str] = [code for key in mapping for code in _parts(key)]
    twice = next((item for item in used if used.count(item) > 1), None)
    if twice is not None or None in mapping.values():
        raise SqlError(
            f"op_mapping has {twice!r} twice" if twice else "op_mapping has NULL", "give each kind of change one string"
        )
    return mapping


_MAKERS = {"TO_CHANGELOG": to_changelog, "FROM_CHANGELOG": from_changelog}
__all__ = ["bind_changelog_call", "from_changelog", "is_changelog_call", "to_changelog"]
