"""The names and options by which statements become plans."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError
from rayflink.common.options import registry as options

from ..binding.expressions import is_built_in
from ..binding.queries import QueryBinder
from ..binding.query_places import place_in_text
from ..binding.user_aggregates import with_full_names
from ..binding.views import Views
from ..catalog.catalog_stores import CatalogsInFolder, CatalogsInMemory, CatalogStore
from ..catalog.named_functions import NamedFunctions
from ..catalog.named_models import NamedModels
from ..catalog.named_objects import Catalogs
from ..catalog.object_names import ObjectPath
from ..connectors.connector_registry import connector
from ..connectors.legacy_options import current_options
from ..definitions import Path, TableDefinition, ViewDefinition
from ..environment_settings import is_batch
from ..errors import SqlError
from ..optimizer.optimizer import RuleSettings
from ..parsing.nesting import deeply
from ..parsing.statements import Tree
from ..physical.planner_settings import PlannerSettings
from ..plan.changelog import Change
from ..plan.emission import EmitOptions
from ..plan.logical import UNNAMED, Relation, Scan
from ..plan.type_rules import contains_raw
from ..plan.typed import Place, Session
from ..table_config import TableConfig
from . import resolution
from .model_statements import known_model
from .planned_statistics import StoredStatistics
from .time_zones import known_zone, system_zone


class PlanningContext:
    """Catalogs, functions, options and the runtime mode of one `TableEnvironment`, which creates it and passes it down.

    Statements and queries are planned by it. It knows neither the environment nor those who run plans, so calls go one
    way: environment -> statement runner -> query runner -> context.

    Args:
        configuration: the options of the stream environment, also those that are set later.

    Raises:
        ConfigError: the mode is AUTOMATIC.

    >>> from rayflink.table.parsing.statement_parser import parse_statement
    >>> context = PlanningContext(Configuration())
    >>> query = "SELECT n + 1 AS next FROM (VALUES (1)) AS t(n)"
    >>> context.bind(parse_statement(query).tree, query).names
    ['next']
    """

    def __init__(self, configuration: Configuration) -> None:
        self.is_batch = is_batch(configuration)
        names = configuration.get(options.BUILT_IN_CATALOG), configuration.get(options.BUILT_IN_DATABASE)
        self.catalogs = Catalogs(*names, _catalog_store(configuration))
        self.functions = NamedFunctions(self.catalogs, is_built_in)
        """The functions of the program and of the catalogs, by their names in capitals."""
        self.models = NamedModels(self.catalogs)
        self.configuration = configuration
        self.config = TableConfig(configuration)
        """The same options, with the methods of the Table API."""
        self.initial_options: Mapping[str, str] = dict(configuration.to_dict())
        """The options to which RESET goes back."""
        self._views = Views(self.catalogs, self.bind)
        self._unnamed = 0

    # plans

    def bind(self, tree: Tree, text: str) -> Relation:
        """Return the logical plan of a query.

        Args:
            text: from which the tree was parsed, for errors; "": it was written in Python.

        Raises:
            SqlError: the query means nothing.
        """
        try:
            emit = EmitOptions.of(self.configuration)
            binder = QueryBinder(
                self.lookup, self.functions, self.is_batch, emit, models=partial(known_model, self.models)
            )
            named = with_full_names(tree, self.functions.function)
            return place_in_text(deeply(lambda: binder.bind(named), text), text)
        except SqlError as error:
            raise (error if error.text else error.at(text)) from error

    def lookup(self, parts: tuple[str, ...], place: Place | None, hints: Mapping[str, str] | None = None) -> Relation:
        """Return the plan that reads a table or view of the catalog.

        Args:
            place: where the name stands.
            hints: the options of `/*+ OPTIONS(...) */`, which stand over the table's own.

        Raises:
            SqlError: there is none of the name, its options are wrong, or a view has hints.
        """
        if hints and not self.configuration.get(options.TABLE_OPTIONS_HINT):
            remedy = f"set {options.TABLE_OPTIONS_HINT.key!r} to true, or leave the hint out"
            raise SqlError(f"OPTIONS of {parts[-1]!r} are not allowed", remedy, "", place)
        path, definition = self.catalogs.find(parts, place)
        if isinstance(definition, ViewDefinition):
            if hints:
                raise SqlError(f"OPTIONS of {path[-1]!r}, which is a view", "write them in its query", "", place)
            return self._views.plan(path, definition, place)
        try:
            plan = self.read(path, definition.with_options(hints) if hints else definition)
        except SqlError as error:  # of its options
            raise (error if error.text else error.at("", place)) from error
        catalog = self.catalogs.catalog_named(path[0])
        if catalog is None or self.catalogs.is_temporary(path):
            return plan
        statistics = StoredStatistics(catalog, ObjectPath(*path[1:]))
        return plan.mapped(lambda part: replace(part, stored_statistics=statistics) if isinstance(part, Scan) else part)

    def read(self, path: Path, table: TableDefinition) -> Relation:
        """Return the plan that reads a table, whether the catalog has it or not.

        Raises:
            SqlError: its options are wrong, or it cannot be read.
        """
        source = connector(path, table).source(resolution.connected(path, table, True, self.zone))
        plan = resolution.relation(path, table, source)
        is_duplicated = not self.is_batch and self.configuration.get(options.DUPLICATE_CHANGES)
        return plan.mapped(partial(_duplicated, key=table.primary_key)) if is_duplicated else plan

    # names

    def table_to_write(self, parts: tuple[str, ...]) -> tuple[Path, TableDefinition]:
        """Return path and definition of a table that an INSERT names.

        Raises:
            SqlError: there is none of the name, or it is a view.
        """
        path, table = self.catalogs.find(parts)
        if isinstance(table, ViewDefinition):
            raise SqlError(f"{'.'.join(parts)} is a view", "insert into a table")
        return path, table

    def name_plan(self, plan: Relation) -> str:
        """Name a plan in the catalog, as a temporary view, and return the name."""
        name, self._unnamed = f"UnnamedTable${self._unnamed}", self._unnamed + 1
        self.create_view((name,), plan, is_temporary=True)
        return name

    def create_view(
        self, parts: tuple[str, ...], plan: Relation, is_temporary: bool, if_not_exists: bool = False
    ) -> None:
        """Name a plan in the catalog.

        Args:
            if_not_exists: a table or view of that name stays as it is.

        Raises:
            SqlError: there is one of that name.
        """
        view = ViewDefinition("", tuple(plan.names), relation=plan)
        self.catalogs.create(parts, view, is_temporary, if_not_exists)

    def create_table(
        self, parts: tuple[str, ...], table: TableDefinition, is_temporary: bool, if_not_exists: bool
    ) -> None:
        """Define a table in the catalog, after a check of its options, computed columns and watermark.

        Raises:
            SqlError: one of them is wrong, or there is one of that name.
        """
        path = self.catalogs.path(parts)
        check_table(path, table)
        self.catalogs.create(path, table, is_temporary, if_not_exists)

    def anonymous_path(self, prefix: str = UNNAMED) -> Path:
        """Return the path of a table without a name."""
        return self.catalogs.catalog, self.catalogs.database, anonymous_name(prefix)

    # options

    def follow_mode(self) -> None:
        """Take the runtime mode that the options have now, as a script does after SET."""
        self.is_batch = is_batch(self.configuration)

    @property
    def zone(self) -> str:
        """Return the session's time zone.

        Raises:
            SqlError: there is none of that name.
        """
        name = self.configuration.get(options.LOCAL_TIME_ZONE)
        return system_zone() if name == "default" else known_zone(name)

    @property
    def session(self) -> Session:
        """Return the settings that the evaluation of expressions depends on.

        Raises:
            SqlError: the time zone is unknown.
        """
        return Session(self.zone, database=self.catalogs.database)

    def rule_settings(self) -> RuleSettings:
        """Return the settings of the optimizer."""
        get = self.configuration.get
        return RuleSettings(
            self.is_batch,
            self.config.get_planner_config(),
            get(options.JOIN_REORDER),
            get(options.BUSHY_JOINS),
            get(options.BROADCAST_JOIN),
            get(options.AGG_PHASE_STRATEGY),
            get(options.DISTINCT_BUCKETS) if get(options.SPLIT_DISTINCT) and not self.is_batch else 0,
            get(options.MINI_BATCH) and not self.is_batch,
            get(options.MULTI_JOIN),
            get(options.DROP_UNREAD_WATERMARKS),
        )

    def planner_settings(self) -> PlannerSettings:
        """Return the settings of the physical planner."""
        return PlannerSettings.of(self.configuration, self.is_batch)


def _duplicated(relation: Relation, key: tuple[str, ...]) -> Relation:
    """Return a table whose changes may come several times.

    Args:
        key: names of the columns of its primary key.

    Raises:
        SqlError: it has none.
    """
    if not isinstance(relation, Scan) or relation.source.changes is Change.INSERT:
        return relation
    if not key:
        name = relation.path[-1]
        problem = f"{options.DUPLICATE_CHANGES.key!r} is true, and {name} has changes and no PRIMARY KEY"
        raise SqlError(problem, "declare PRIMARY KEY (...) NOT ENFORCED, by which duplicates are found")
    return replace(relation, primary_key=key, is_duplicated=True)


def _catalog_store(configuration: Configuration) -> CatalogStore:
    """Return where definitions of catalogs are stored.

    Raises:
        ConfigError: files are chosen, and no folder is named.
    """
    if configuration.get(options.CATALOG_STORE) is options.CatalogStoreKind.GENERIC_IN_MEMORY:
        return CatalogsInMemory()
    folder = configuration.get(options.CATALOG_STORE_PATH)
    if not folder:
        problem = f"{options.CATALOG_STORE.key} is 'file'"
        raise ConfigError(options.CATALOG_STORE_PATH.key, "no value", "a folder", f"set it, as {problem}")
    return CatalogsInFolder(folder)


def anonymous_name(prefix: str = UNNAMED) -> str:
    """Return a name that no other table has."""
    return f"{prefix}{os.urandom(4).hex()}"


def check_table(path: Path, table: TableDefinition) -> None:
    """Check the options of a table, its computed columns and its watermark.

    Raises:
        SqlError: one of them is wrong.
    """
    table_connector = connector(path, table)
    table_connector.parsed(".".join(path), current_options(table.options, ".".join(path)))
    _refuse_objects(path, table)
    resolution.relation(path, table, None)
    table_connector.check(resolution.connected(path, table, reads=True))


def _refuse_objects(path: Path, table: TableDefinition) -> None:
    """Raise SqlError where a column is RAW: what others write there would be unpickled."""
    for column in () if table.connected is not None else table.columns:
        if column.type is not None and contains_raw(column.type):
            described = f"column {column.name!r} of table {'.'.join(path)} is {column.type}"
            problem = f"{described}, and no connector has such columns"
            raise SqlError(problem, "let a function make a STRING or BYTES of the objects, and write that")


__all__ = ["PlanningContext", "anonymous_name", "check_table"]
