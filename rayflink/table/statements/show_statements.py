"""The results of SHOW and DESCRIBE: what there is in the catalog."""

from __future__ import annotations

import re
from collections.abc import Callable

from rayflink.common.types import Row

from ..catalog import Catalogs
from ..definitions import ColumnDefinition, TableDefinition, ViewDefinition, quote_string, quoted
from ..errors import SqlError
from ..parsing.statements import Describe, Show
from ..plan.logical import Attribute, TimePart
from ..plan.typed import known_names
from ..table_result import TableResult, raw
from ..types import DataTypes
from . import resolution
from .planning_context import PlanningContext

_DESCRIPTION = tuple(
    Attribute(name, DataTypes.STRING()) for name in ("name", "type", "null", "key", "extras", "watermark")
)
_TIME_PARTS = {TimePart.ROWTIME: " *ROWTIME*", TimePart.PROCTIME: " *PROCTIME*"}
_HEADERS = {"CURRENT DATABASE": "current database name", "CURRENT CATALOG": "current catalog name"}


def show(context: PlanningContext, statement: Show, text: str) -> TableResult:
    """Return the result of SHOW.

    Args:
        text: the statement, for errors.

    Raises:
        SqlError: there is nothing of that name, or no such SHOW.
    """
    if statement.what in ("CREATE TABLE", "CREATE VIEW"):
        return raw(_create_statement(context.catalogs, statement))
    if statement.what == "COLUMNS":
        header = [Attribute("field", _DESCRIPTION[0].type), *_DESCRIPTION[1:]]
        return TableResult(header, [row for row in _columns(context, statement) if _is_like(row[0], statement)])
    listings = _listings(context.catalogs, statement)
    if statement.what not in listings:
        raise SqlError(f"SHOW {statement.what} is not supported", f"known are {', '.join(listings)}", text)
    names = [name for name in listings[statement.what]() if _is_like(name, statement)]
    header_name = _HEADERS.get(statement.what, f"{statement.what.lower().rstrip('s')} name")
    return TableResult([Attribute(header_name, DataTypes.STRING())], [Row(name) for name in names])


def describe(context: PlanningContext, statement: Describe) -> TableResult:
    """Return the result of DESCRIBE: a row for each column of a table or view.

    Raises:
        SqlError: there is none of that name.
    """
    return TableResult(list(_DESCRIPTION), _columns(context, statement))


def _listings(catalogs: Catalogs, statement: Show) -> dict[str, Callable[[], list[str]]]:
    """Return what SHOW can list -> the names."""
    path = statement.path
    database = (path[-2] if len(path) > 1 else catalogs.catalog, path[-1]) if path else None
    return {
        "TABLES": lambda: catalogs.names(database),
        "VIEWS": lambda: catalogs.names(database, lambda definition: isinstance(definition, ViewDefinition)),
        "DATABASES": lambda: catalogs.databases(".".join(path) or None),
        "CATALOGS": catalogs.catalogs,
        "CURRENT DATABASE": lambda: [catalogs.database],
        "CURRENT CATALOG": lambda: [catalogs.catalog],
        "FUNCTIONS": lambda: [name.lower() for name in known_names() if re.fullmatch(r"\w+", name)],
    }


def _is_like(name: str, statement: Show) -> bool:
    """Return whether a name fits the LIKE or NOT LIKE of SHOW."""
    if statement.like is None:
        return True
    wildcards = {"%": ".*", "_": "."}
    pattern = "".join(wildcards.get(character) or re.escape(character) for character in statement.like)
    return bool(re.fullmatch(pattern, name, re.IGNORECASE)) is not statement.negated


def _create_statement(catalogs: Catalogs, statement: Show) -> str:
    """Return the CREATE statement of a table or view."""
    path, definition = catalogs.find(statement.path, statement.place)
    if isinstance(definition, TableDefinition):
        return definition.statement(path, catalogs.is_temporary(path))
    name = ".".join(map(quoted, path))
    temporary = "TEMPORARY " if catalogs.is_temporary(path) else ""
    columns = f" ({', '.join(map(quoted, definition.columns))})" if definition.columns else ""
    comment = "" if definition.comment is None else f" COMMENT {quote_string(definition.comment)}"
    return f"CREATE {temporary}VIEW {name}{columns}{comment} AS\n{definition.text}"


def _columns(context: PlanningContext, statement: Show | Describe) -> list[Row]:
    """Return a row for each column of a table or view: name, type, whether it may be NULL, key, extras, watermark."""
    path, definition = context.catalogs.find(statement.path, statement.place)
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
    is_nullable = str(attribute.type.is_nullable).upper()
    return Row(attribute.name, f"{attribute.type.nullable()}{part}", is_nullable, in_key, _extras(column), watermark)


def _extras(column: ColumnDefinition | None) -> str | None:
    if column is not None and column.computed is not None:
        return f"AS {column.computed}"
    if column is not None and column.metadata is not None:
        return f"METADATA FROM '{column.metadata}'{' VIRTUAL' if column.is_virtual else ''}"
    return None


__all__ = ["describe", "show"]
