"""Tables and functions of compiled plans: by identifier, with or without what the catalog knows of them.

Which of the two holds follows from `table.plan.compile.catalog-objects` and `table.plan.restore.catalog-objects`.

Source: apache/flink ContextResolvedTableJsonSerializer and ContextResolvedTableJsonDeserializer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from rayflink.common.configuration import shown_value
from rayflink.common.options.option_values import CatalogPlanCompilation, CatalogPlanRestore

from ..catalog.catalog_objects import CatalogBaseTable, CatalogFunction
from ..catalog.exceptions import CatalogException
from ..catalog.named_functions import NamedFunctions, imported
from ..catalog.named_objects import Catalogs
from ..catalog.stored_definitions import Fields, decode, encode
from ..connectors.contract import TableSink, TableSource
from ..definitions import Path, TableDefinition, quoted
from ..errors import SqlError
from ..functions.row_counts import REPLICATE, SINGLE_VALUE
from ..plan.logical import ANONYMOUS, Scan, Sink
from ..plan.scan_abilities import ColumnPushDown, FieldPushDown, FilterPushDown, LimitPushDown, ScanAbility
from ..plan.typed import Function, named
from .plan_forms import COMPILE_AGAIN, ensure_form

COMPILE, RESTORE = "table.plan.compile.catalog-objects", "table.plan.restore.catalog-objects"
_INTERNAL = {function.name: function for function in (REPLICATE, SINGLE_VALUE)}
"""Functions that the planner calls, which no query can call."""


class Connect(Protocol):
    """Connects tables by their definitions."""

    def source(self, path: Path, table: TableDefinition) -> TableSource:
        """Return what reads a table."""

    def sink(self, path: Path, table: TableDefinition) -> TableSink:
        """Return what writes a table."""


@dataclass(frozen=True)
class TableWriter:
    """Writes tables and functions.

    Args:
        catalogs: which have the tables.
        functions: those that are not SQL's.
        extent: what is written of them beside their identifiers.
    """

    catalogs: Catalogs
    functions: NamedFunctions
    extent: CatalogPlanCompilation

    def write(self, node: Scan | Sink) -> Fields:
        """Return the table of a scan or sink.

        Raises:
            SqlError: it is bound to this program, or its rows are replaced.
        """
        path, table = node.path, node.definition
        if table is None or len(path) != 3:
            raise _unstored(node)
        is_temporary = self.catalogs.is_temporary((path[0], path[1], path[2]))
        if table.connected is not None and not is_temporary:
            raise _unstored(node)
        if path[2].startswith(ANONYMOUS):
            return {"identifier": list(path), "definition": _definition(table, with_options=True)}
        _, base = self.catalogs.find(path)
        known = base.options if isinstance(base, TableDefinition) else {}
        hints = {key: value for key, value in table.options.items() if known.get(key) != value}
        fields: dict[str, object] = {"identifier": list(path)}
        if hints:
            fields["hints"] = _without_secrets(hints, path)
        has_definition = not is_temporary and self.extent is not CatalogPlanCompilation.IDENTIFIER
        if isinstance(base, TableDefinition) and has_definition:
            fields["definition"] = _definition(base, self.extent is CatalogPlanCompilation.ALL)
        return fields

    def write_function(self, function: Function) -> object:
        """Return a function: a built-in one by its name.

        Raises:
            SqlError: it has no name.
        """
        if function.is_built_in:
            return function.name
        if function in _INTERNAL.values():
            return {"internal": function.name}
        reference = self.functions.reference(function)
        if reference is None:
            problem = f"the function {function.name} is inline: a plan refers to functions by their names"
            raise SqlError(problem, "register it with create_temporary_function() or CREATE FUNCTION, and call that")
        parts, class_name = reference
        is_whole = class_name and self.extent is CatalogPlanCompilation.ALL
        return {"name": list(parts), "class": class_name} if is_whole else {"name": list(parts)}


@dataclass(frozen=True)
class TableReader:
    """Reads tables and functions.

    Args:
        catalogs: of the environment in which the plan is run.
        functions: those that are not SQL's.
        restore: which of plan and catalog holds.
        connect: connects tables.
    """

    catalogs: Catalogs
    functions: NamedFunctions
    restore: CatalogPlanRestore
    connect: Connect

    def definition(self, fields: Fields) -> tuple[Path, TableDefinition]:
        """Return the path and the definition of a table.

        Raises:
            SqlError: neither the plan nor the catalog has it, or they differ in its columns.
        """
        _ensure_table(fields)
        path: Path = (fields["identifier"][0], fields["identifier"][1], fields["identifier"][2])
        known, stored = self._known(path), _stored(fields)
        has_options = stored is not None and bool(stored.options)
        if path[2].startswith(ANONYMOUS) and stored is not None:
            return path, stored
        if known is not None and stored is not None:
            _ensure_equal_columns(path, stored, known)
        if self.restore is CatalogPlanRestore.ALL_ENFORCED and not has_options and known is not None:
            if not self.catalogs.is_temporary(path):
                problem = f"the plan has no whole definition of {_name(path)}, and {RESTORE!r} is 'ALL_ENFORCED'"
                raise SqlError(problem, f"set it to ALL or IDENTIFIER, or compile the plan with {COMPILE!r} = 'ALL'")
        is_forced = self.restore is CatalogPlanRestore.IDENTIFIER
        if stored is None or not has_options or is_forced:
            if known is None:
                reason = f"{RESTORE!r} is 'IDENTIFIER'" if is_forced else "the plan has no whole definition of it"
                problem = f"there is no table {_name(path)} in the catalog, and {reason}"
                raise SqlError(problem, "create the table first, or compile the plan with it as a table of a catalog")
            table = known
        else:
            table = _with_secrets(path, stored, known, fields["definition"].get("secrets", ()))
        return path, table.with_options(fields.get("hints", {}))

    def read_function(self, value: object) -> Function:
        """Return a function.

        Raises:
            SqlError: there is none of its name, or its class cannot be imported.
        """
        if isinstance(value, str):
            try:
                return named(value)
            except KeyError:
                problem = f"the plan calls the function {value}, which this version does not know"
                raise SqlError(problem, COMPILE_AGAIN) from None
        if isinstance(value, dict) and str(value.get("internal")) in _INTERNAL:
            return _INTERNAL[str(value["internal"])]
        parts, class_name = (value.get("name"), value.get("class")) if isinstance(value, dict) else (None, None)
        if not isinstance(parts, list) or not parts:
            raise SqlError(f"{value!r} is no function of a plan", COMPILE_AGAIN)
        ensure_form([*parts, class_name or ""], "list[str]", "a function of the plan has a name or class")
        if class_name and self.restore is not CatalogPlanRestore.IDENTIFIER:
            return imported(parts[-1], CatalogFunction(class_name, "PYTHON"))
        try:
            return self.functions.referenced(tuple(parts))
        except KeyError:
            problem = f"the plan calls the function {'.'.join(parts)}, which there is not"
            raise SqlError(problem, "register it before the plan is loaded, as it was when it was compiled") from None

    def _known(self, path: Path) -> TableDefinition | None:
        """Return the table of the catalog; None: there is none."""
        try:
            _, definition = self.catalogs.find(path)
        except SqlError:
            return None
        return definition if isinstance(definition, TableDefinition) else None


def with_abilities(source: TableSource, abilities: tuple[ScanAbility, ...], table: str) -> TableSource:
    """Return a source with what had been pushed into it when the plan was compiled.

    Raises:
        SqlError: it does not take it any more.
    """
    for ability in abilities:
        source = _with_ability(source, ability, table)
    return source


def _with_ability(source: TableSource, ability: ScanAbility, table: str) -> TableSource:
    if isinstance(ability, LimitPushDown):
        return source.limited(ability.rows) or source
    pushed: TableSource | None = None
    if isinstance(ability, ColumnPushDown):
        pushed = source.projected(ability.names)
    elif isinstance(ability, FieldPushDown):
        pushed = source.narrowed({column.name: column.type for column in ability.columns})
    elif isinstance(ability, FilterPushDown):
        result = source.filtered(ability.conditions)
        if result is not None and all(condition in ability.remaining for condition in result[1]):
            pushed = result[0]
    if pushed is None:
        problem = f"the source of {table} does not take {ability} any more, which the plan has pushed into it"
        raise SqlError(problem, COMPILE_AGAIN)
    return pushed


def _unstored(node: Scan | Sink) -> SqlError:
    name = ".".join(node.path)
    if isinstance(node, Sink):
        problem = f"the plan writes {name} by INSERT OVERWRITE, or it is bound to this program"
        return SqlError(problem, "INSERT INTO a table with a connector; compiled plans have no INSERT OVERWRITE")
    problem = f"the plan reads {name}, which is bound to this program: a stream, rows in memory, or a lookup function"
    return SqlError(problem, "read a table with a connector, or VALUES, or run it without compiling a plan")


def _definition(table: TableDefinition, with_options: bool) -> Fields:
    try:
        fields: dict[str, object] = json.loads(encode(CatalogBaseTable(table)))
    except CatalogException as error:
        raise SqlError(error.problem, error.remedy) from error
    secrets = [key for key, value in table.options.items() if shown_value(key, value) != value]
    options = {key: value for key, value in table.options.items() if key not in secrets}
    fields.pop("options", None)
    if with_options:
        fields["options"] = options
        if secrets:
            fields["secrets"] = secrets
    return fields


def _without_secrets(hints: Mapping[str, str], path: tuple[str, ...]) -> Mapping[str, str]:
    for key, value in hints.items():
        if shown_value(key, value) != value:
            problem = f"a hint gives {_name(path)} the option {key!r}, a secret, which a plan would show"
            raise SqlError(problem, "set the option where the table is created: plans leave it out and ask the catalog")
    return hints


def _ensure_table(fields: Fields) -> None:
    """Check what a plan has of a table.

    Raises:
        SqlError: it has another form.
    """
    what = "a table of the plan has"
    if not isinstance(fields, dict):
        raise SqlError(f"{what} the 'catalog_table' {fields!r:.80}, wanted an object", COMPILE_AGAIN)
    identifier = fields.get("identifier")
    ensure_form(tuple(identifier) if isinstance(identifier, list) else identifier, "tuple[str, str, str]",
                f"{what} 'identifier'")  # fmt: skip
    ensure_form(fields.get("hints", {}), "dict[str, str]", f"{what} 'hints'")
    definition = {} if fields.get("definition") is None else fields["definition"]
    if not isinstance(definition, dict):
        raise SqlError(f"{what} the 'definition' {definition!r:.80}, wanted an object", COMPILE_AGAIN)
    ensure_form(definition.get("secrets", []), "list[str]", f"{what} 'secrets'")


def _stored(fields: Fields) -> TableDefinition | None:
    """Return the definition that a plan has; None: it has none."""
    definition = fields.get("definition")
    if definition is None:
        return None
    try:
        table = decode(json.dumps({key: value for key, value in definition.items() if key != "secrets"}))
    except CatalogException as error:
        raise SqlError(error.problem, error.remedy) from error
    stored = table.definition if isinstance(table, CatalogBaseTable) else None
    if not isinstance(stored, TableDefinition):
        raise SqlError("the plan has the definition of something that is no table", COMPILE_AGAIN)
    return stored


def _with_secrets(
    path: Path, stored: TableDefinition, known: TableDefinition | None, secrets: tuple[str, ...]
) -> TableDefinition:
    """Return a definition with the options that the plan leaves out, from the catalog.

    Raises:
        SqlError: the catalog has not got them.
    """
    values = {} if known is None else known.options
    missing = [key for key in secrets if key not in values]
    if missing:
        problem = f"{_name(path)} needs the option {missing[0]!r}, a secret, which no plan contains"
        raise SqlError(problem, "create the table in the catalog, with this option, before the plan is loaded")
    return replace(stored, options={**stored.options, **{key: values[key] for key in secrets}})


def _ensure_equal_columns(path: Path, stored: TableDefinition, known: TableDefinition) -> None:
    """Compare the columns that plan and catalog say.

    Raises:
        SqlError: they differ.
    """
    was, is_now = (_columns_text(table) for table in (stored, known))
    if was != is_now:
        problem = f"{_name(path)} has ({is_now}) in the catalog, and in the plan ({was})"
        raise SqlError(problem, f"create it as it was, or {COMPILE_AGAIN}")


def _columns_text(table: TableDefinition) -> str:
    columns = [str(replace(column, comment=None)) for column in table.columns]
    key = [f"PRIMARY KEY ({', '.join(map(quoted, table.primary_key))})"] if table.primary_key else []
    return ", ".join([*columns, *key])


def _name(path: tuple[str, ...]) -> str:
    return ".".join(path)


__all__ = ["COMPILE", "RESTORE", "Connect", "TableReader", "TableWriter", "with_abilities"]
