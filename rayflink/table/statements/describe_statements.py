"""The results of DESCRIBE: what is known of a table, a database, a catalog or a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard

from rayflink.common.configuration import shown_value
from rayflink.common.types import Row

from ..catalog.exceptions import CatalogException
from ..definitions import ColumnDefinition, Path, TableDefinition, ViewDefinition
from ..errors import SqlError
from ..parsing.statements import Describe, Show
from ..plan.logical import Attribute, TimePart
from ..table_result import TableResult
from ..types import DataTypes
from . import model_statements, resolution
from .planning_context import PlanningContext

_DESCRIPTION = tuple(
    Attribute(name, DataTypes.BOOLEAN() if name == "null" else DataTypes.STRING())
    for name in ("name", "type", "null", "key", "extras", "watermark", "comment")
)
_FACTS = [Attribute("info name", DataTypes.STRING()), Attribute("info value", DataTypes.STRING())]
_TIME_PARTS = {TimePart.ROWTIME: " *ROWTIME*", TimePart.PROCTIME: " *PROCTIME*"}


def describe(context: PlanningContext, statement: Describe) -> TableResult:
    """Return the result of DESCRIBE: a row for each column of a table or view, or for each fact about the others.

    Raises:
        SqlError: there is none of that name.
    """
    if statement.kind == "TABLE":
        return description(context, statement)
    if statement.kind == "MODEL":
        try:
            return model_statements.description(context.models, statement.path)
        except CatalogException as error:
            raise SqlError(error.problem, error.remedy, "", statement.place) from error
    facts = {"CATALOG": _catalog, "DATABASE": _database, "FUNCTION": _function}[statement.kind]
    try:
        return TableResult(_FACTS, [Row(*fact) for fact in facts(context, statement)])
    except CatalogException as error:
        raise SqlError(error.problem, error.remedy, "", statement.place) from error


def _catalog(context: PlanningContext, statement: Describe) -> list[tuple[str, str]]:
    name = ".".join(statement.path)
    descriptor = context.catalogs.descriptor(name)
    options = descriptor.get_options()
    facts = [("name", name), ("type", options.get("type", "")), ("comment", descriptor.get_comment() or "")]
    if statement.is_extended:
        facts += [(f"option:{key}", shown_value(key, value)) for key, value in options.items() if key != "type"]
    return facts


def _database(context: PlanningContext, statement: Describe) -> list[tuple[str, str]]:
    database = context.catalogs.stored_database(statement.path, statement.place)
    parts = statement.path if len(statement.path) > 1 else (context.catalogs.catalog, *statement.path)
    facts = [("catalog", parts[0]), ("database", parts[1]), ("comment", database.get_comment())]
    properties = database.get_properties()
    if statement.is_extended and properties:
        pairs = ", ".join(f"({key},{shown_value(key, value)})" for key, value in sorted(properties.items()))
        facts.append(("properties", f"({pairs})"))
    return facts


def _function(context: PlanningContext, statement: Describe) -> list[tuple[str, str]]:
    name = ".".join(statement.path)
    try:
        function = context.functions.described(statement.path)
    except KeyError:
        problem = f"there is no function {name!r} of the program or of a catalog"
        raise SqlError(problem, "see SHOW USER FUNCTIONS", "", statement.place) from None
    facts = [("name", name), ("system function", str(function.is_system).lower())]
    facts.append(("temporary", str(function.is_temporary).lower()))
    if function.stored is not None:
        facts += [("class name", function.stored.get_class_name()),
                  ("function language", function.stored.get_function_language())]  # fmt: skip
    if statement.is_extended:
        facts.append(("deterministic", str(function.function.is_deterministic).lower()))
    return facts


def description(
    context: PlanningContext, statement: Show | Describe, is_wanted: Callable[[str], bool] = bool
) -> TableResult:
    """Return a row for each column of a table or view: name, type, whether it may be NULL, key, extras, watermark.

    Their comments follow where the table has some.

    Args:
        is_wanted: whether a column of a name is described.
    """
    path, definition = context.catalogs.find(statement.path, statement.place)
    rows = [row for row in _column_rows(context, statement, path, definition) if is_wanted(row[0])]
    comments = {column.name: column.comment for column in definition.columns} if _has_comments(definition) else {}
    if not comments:
        return TableResult(list(_DESCRIPTION[:-1]), rows)
    return TableResult(list(_DESCRIPTION), [Row(*row, comments[row[0]]) for row in rows])


def _has_comments(definition: TableDefinition | ViewDefinition) -> TypeGuard[TableDefinition]:
    if isinstance(definition, ViewDefinition):
        return False
    return any(column.comment is not None for column in definition.columns)


def _column_rows(
    context: PlanningContext, statement: Show | Describe, path: Path, definition: TableDefinition | ViewDefinition
) -> list[Row]:
    if isinstance(definition, ViewDefinition):
        schema = context.lookup(statement.path, statement.place).schema
        return [_row(attribute, None, (), None) for attribute in schema]
    columns = {column.name: column for column in definition.columns}
    key, (time, watermark) = definition.primary_key, definition.watermark or ("", None)
    return [
        _row(attribute, columns.get(attribute.name), key, watermark if attribute.name == time else None)
        for attribute in resolution.relation(path, definition, None).schema
    ]


def _row(attribute: Attribute, column: ColumnDefinition | None, key: tuple[str, ...], watermark: str | None) -> Row:
    part = "" if attribute.part is None else _TIME_PARTS.get(attribute.part, "")
    in_key = f"PRI({', '.join(key)})" if attribute.name in key else None
    kind, is_nullable = f"{attribute.type.nullable()}{part}", attribute.type.is_nullable
    return Row(attribute.name, kind, is_nullable, in_key, _extras(column), watermark)


def _extras(column: ColumnDefinition | None) -> str | None:
    if column is not None and column.computed is not None:
        return f"AS {column.computed}"
    if column is not None and column.metadata is not None:
        return f"METADATA FROM '{column.metadata}'{' VIRTUAL' if column.is_virtual else ''}"
    return None


__all__ = ["describe", "description"]
