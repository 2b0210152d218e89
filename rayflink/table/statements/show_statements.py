"""The results of SHOW: what there is in the catalogs."""

from __future__ import annotations

import re
from collections.abc import Callable

from rayflink.common.configuration import shown_value
from rayflink.common.types import Row

from ..catalog.exceptions import CatalogException
from ..catalog.named_objects import Catalogs
from ..catalog.object_names import ObjectPath
from ..catalog.partitions import CatalogPartitionSpec
from ..definitions import TableDefinition, ViewDefinition, quote_string, quoted
from ..errors import SqlError
from ..parsing.statements import Show
from ..plan.logical import Attribute
from ..plan.typed import known_names
from ..table_result import TableResult, raw
from ..types import DataTypes
from . import model_statements
from .describe_statements import description
from .modules import CORE
from .planning_context import PlanningContext

_HEADERS = {
    "CURRENT DATABASE": "current database name",
    "CURRENT CATALOG": "current catalog name",
    "USER FUNCTIONS": "function name",
}


def show(context: PlanningContext, statement: Show, text: str) -> TableResult:
    """Return the result of SHOW.

    Args:
        text: the statement, for errors.

    Raises:
        SqlError: there is nothing of that name, or no such SHOW.
    """
    try:
        return _show(context, statement, text)
    except CatalogException as error:
        raise SqlError(error.problem, error.remedy, "", statement.place) from error


def _show(context: PlanningContext, statement: Show, text: str) -> TableResult:
    if statement.what in ("CREATE TABLE", "CREATE VIEW"):
        return raw(_create_statement(context.catalogs, statement))
    if statement.what == "COLUMNS":
        return description(context, statement, lambda name: _is_like(name, statement))
    if statement.what == "FULL MODULES":
        header = [Attribute("module name", DataTypes.STRING()), Attribute("used", DataTypes.BOOLEAN())]
        return TableResult(header, [Row(CORE, True)])
    if statement.what == "CREATE MODEL":
        return model_statements.create_statement(context.models, statement.path)
    if statement.what == "CREATE CATALOG":
        return raw(_create_catalog(context.catalogs, statement))
    if statement.what == "PARTITIONS":
        return _partitions(context.catalogs, statement)
    listings = _listings(context, statement)
    if statement.what not in listings:
        raise SqlError(f"SHOW {statement.what} is not supported", f"known are {', '.join(listings)}", text)
    names = [name for name in listings[statement.what]() if _is_like(name, statement)]
    header_name = _HEADERS.get(statement.what, f"{statement.what.lower().rstrip('s')} name")
    return TableResult([Attribute(header_name, DataTypes.STRING())], [Row(name) for name in names])


def _listings(context: PlanningContext, statement: Show) -> dict[str, Callable[[], list[str]]]:
    """Return what SHOW can list -> the names."""
    catalogs, path = context.catalogs, statement.path
    database = (path[-2] if len(path) > 1 else catalogs.catalog, path[-1]) if path else None
    return {
        "TABLES": lambda: catalogs.names(database),
        "VIEWS": lambda: catalogs.names(database, lambda definition: isinstance(definition, ViewDefinition)),
        "DATABASES": lambda: catalogs.databases(".".join(path) or None),
        "CATALOGS": catalogs.catalogs,
        "MODULES": lambda: [CORE],
        "CURRENT DATABASE": lambda: [catalogs.database],
        "CURRENT CATALOG": lambda: [catalogs.catalog],
        "USER FUNCTIONS": lambda: context.functions.names(database),
        "FUNCTIONS": lambda: context.functions.names(database) if database else function_names(context),
        "MODELS": lambda: context.models.names(database),
        "PROCEDURES": lambda: _procedures(catalogs, database or (catalogs.catalog, catalogs.database)),
    }


def function_names(context: PlanningContext) -> list[str]:
    """Return the names of all functions, those of SQL and those of the program and the current database."""
    built_in = (name.lower() for name in known_names() if re.fullmatch(r"\w+", name))
    return sorted({*built_in, *context.functions.names()})


def _procedures(catalogs: Catalogs, database: tuple[str, str]) -> list[str]:
    catalog = catalogs.catalog_named(database[0])
    return [] if catalog is None else catalog.list_procedures(database[1])


def _create_catalog(catalogs: Catalogs, statement: Show) -> str:
    """Return the CREATE statement of a catalog; secrets are masked."""
    descriptor = catalogs.descriptor(".".join(statement.path))
    comment = descriptor.get_comment()
    options = ",\n".join(
        f"  {quote_string(key)} = {quote_string(shown_value(key, value))}"
        for key, value in descriptor.get_options().items()
    )
    text = f"CREATE CATALOG {quoted(descriptor.get_catalog_name())}"
    text += "" if comment is None else f"\nCOMMENT {quote_string(comment)}"
    return f"{text}\nWITH (\n{options}\n)"


def _partitions(catalogs: Catalogs, statement: Show) -> TableResult:
    """Return a row for each partition of a table, as key=value/key=value."""
    path, definition = catalogs.find(statement.path, statement.place)
    catalog = catalogs.catalog_named(path[0])
    assert catalog is not None, "the table was found in it"
    wanted = CatalogPartitionSpec(statement.partition) if statement.partition else None
    specs = [spec.get_partition_spec() for spec in catalog.list_partitions(ObjectPath(*path[1:]), wanted)]
    keys = definition.partition_keys if isinstance(definition, TableDefinition) else ()
    rows = sorted("/".join(f"{key}={spec[key]}" for key in keys) for spec in specs)
    return TableResult([Attribute("partition name", DataTypes.STRING())], [Row(row) for row in rows])


def _is_like(name: str, statement: Show) -> bool:
    """Return whether a name fits the LIKE, ILIKE, NOT LIKE or NOT ILIKE of SHOW."""
    if statement.like is None:
        return True
    wildcards = {"%": ".*", "_": "."}
    pieces = re.findall(r"\\[%_]|.", statement.like, re.DOTALL)
    pattern = "".join(wildcards.get(piece) or re.escape(piece[-1]) for piece in pieces)
    ignores_case = statement.ignores_case or statement.what.endswith("FUNCTIONS")  # whose names have no case
    return bool(re.fullmatch(pattern, name, re.IGNORECASE if ignores_case else 0)) is not statement.negated


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


__all__ = ["show"]
