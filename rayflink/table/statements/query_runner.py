"""Runs plans as jobs."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rayflink.common.options import registry as options
from rayflink.common.types import Row
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.streams.stream import DataStream

from ..binding.expressions import cast
from ..binding.queries import project
from ..connectors.connector_registry import connector
from ..connectors.contract import TableSink
from ..definitions import ColumnDefinition, Path, TableDefinition
from ..environment_settings import ensure_mode
from ..errors import SqlError, nearest
from ..explain_detail import ExplainDetail
from ..optimizer.optimizer import RuleSettings, optimized
from ..optimizer.rules.share_scans import share_scans
from ..parsing.nesting import deeply, too_deep
from ..physical.physical_planner import PhysicalPlanner, PlannerSettings
from ..plan.changelog import ChangelogMode, ChangelogModes
from ..plan.changelog_fold import materialized
from ..plan.logical import Attribute, Relation, Scan, Sink
from ..plan.logical import Schema as Attributes
from ..plan.type_rules import widens
from ..plan.typed import Column, Expr, Literal, Session
from ..plan.upsert_keys import ensure_key
from ..table_config import TableConfig
from ..table_result import CloseableIterator, Printing, TableResult
from ..types import DataTypes
from . import resolution
from .insert_plan import Insertion, constants, partition_values, with_partition

if TYPE_CHECKING:
    import pyarrow

    from ..schema import Schema


class QueryRunner:
    """Makes jobs of plans.

    Args:
        env: whose programs they become.
        config: says by which rules.
        is_batch: the rows of a result are all insertions.
        database: gives the name of the current one.
    """

    def __init__(
        self, env: StreamExecutionEnvironment, config: TableConfig, is_batch: bool, database: Callable[[], str]
    ) -> None:
        self._env, self._config, self.is_batch, self._database = env, config, is_batch, database

    @property
    def _session(self) -> Session:
        return Session(self.zone, database=self._database())

    @property
    def zone(self) -> str:
        """Return the session's time zone.

        Raises:
            SqlError: there is none of that name.
        """
        given = self._env.get_configuration().get(options.LOCAL_TIME_ZONE)
        return system_zone() if given == "default" else known_zone(given)

    def optimized(self, plans: Sequence[Relation]) -> list[Relation]:
        """Return the plans as they are run.

        Raises:
            SqlError: a step does not take the changes that another gives.
            ConfigError: `execution.runtime-mode` has changed since the environment was created.
        """
        ensure_mode(self._env.get_configuration(), self.is_batch)
        session, rules = self._session, self._rules()
        found = [deeply(partial(optimized, plan, session, rules)) for plan in plans]
        settings = self._settings()
        if settings.reuse_plans and settings.reuse_sources:
            found = share_scans(found)
        modes = deeply(partial(ChangelogModes, found))
        if self.is_batch:
            self._check_whole(found, modes)
        return found

    def _check_whole(self, plans: Sequence[Relation], modes: ChangelogModes) -> None:
        """Raise SqlError where rows of a table change later, in batch mode."""
        scans = (one for plan in plans for one in plan.walk() if isinstance(one, Scan))
        found = next((one for one in scans if not modes.of(one).is_append_only), None)
        if found is not None:
            problem = f"the rows of {found.explain_line()} change later, and in batch mode rows only come"
            raise SqlError(problem, "run it in streaming mode, or give ChangelogMode.insert_only()", "", found.place)

    def drawn(self, plan: Relation) -> TableResult:
        """Run a query; its rows come while it runs."""
        ensure_key(plan)
        with self._apart():
            [run] = self.optimized([plan])
            stream = self.planner().stream(run)
            rows = stream.stream.execute_and_collect(self._name("collect"))
        assert not isinstance(rows, list)
        printing = Printing(self.zone, self._env.get_configuration().get(options.PRINTED_WIDTH))
        return TableResult(plan.schema, CloseableIterator(rows), None, not self.is_batch, printing=printing)

    def whole(self, plan: Relation) -> pyarrow.Table:
        """Run a query to its end.

        Raises:
            SqlError: it has none.
        """
        import pyarrow

        from rayflink.common.records.arrow_rows import rows_to_arrow
        from rayflink.datastream.streams.results import columns_of

        from ..conversion.arrow_columns import arrow_schema

        [run] = self.optimized([plan])
        schema = arrow_schema(plan.schema)
        with self._apart():
            planner = self.planner()
            stream = planner.stream(run)
            endless = planner.endless_source(stream)
            if endless is not None:
                remedy = "write its rows by INSERT INTO, or draw them with execute().collect(), or add LIMIT"
                raise SqlError(f"the query reads {endless.name!r}, which has no end", remedy)
            if ChangelogModes([run], before=True).of(run).is_append_only:
                return columns_of(stream.stream, schema, self._name("collect"))
            rows = materialized(stream.stream.execute_and_collect(self._name("collect")))
        return pyarrow.Table.from_batches([rows_to_arrow(rows, schema)] if rows else [], schema)

    def insert(self, sinks: Sequence[Sink]) -> TableResult:
        """Run queries as one job that writes their rows; without waiting for it where `execution.attached` is false."""
        targets = [".".join(one.path) for one in sinks]
        with self._apart():
            self.attach(sinks)
            job = self._env.execute_async(self._name(f"insert-into_{'_'.join(targets)}"))
        if not self._env.get_configuration().get(options.ATTACHED, True):  # `rayflink run -d`
            job.detach()
            job = None
        schema = [Attribute(name, DataTypes.BIGINT(False)) for name in targets]
        return TableResult(schema, [Row(*(-1 for _ in targets))], job)

    def attach(self, sinks: Sequence[Sink]) -> None:
        """Make queries and the tables they write part of the environment's program."""
        planner = self.planner()
        for plan in self.optimized(sinks):
            assert isinstance(plan, Sink)
            planner.write(plan)

    def sink(self, path: Path, table: TableDefinition, insertion: Insertion) -> Sink:
        """Return the plan of an INSERT.

        Raises:
            SqlError: the table does not take the rows.
        """
        name = ".".join(path)
        sink = connector(path, table).sink(resolution.connected(path, table, reads=False))
        values = partition_values(table, name, insertion.partition)
        plan, columns = with_partition(insertion.plan, table, insertion.columns, values)
        if insertion.overwrites:
            sink = self._overwriting(sink, name, values)
        declared = tuple(one.type for one in table.columns if one.is_written and one.type is not None)
        return Sink((), _fitted(plan, table, columns, name), path, sink, declared, place=plan.place)

    def _overwriting(self, sink: TableSink, name: str, partition: Mapping[str, Expr]) -> TableSink:
        """Return a sink whose rows take the place of those that are there.

        Raises:
            SqlError: it cannot, or the rows never end.
        """
        if not self.is_batch:
            remedy = "write INSERT INTO, or run it in batch mode: EnvironmentSettings.in_batch_mode()"
            raise SqlError("INSERT OVERWRITE in streaming mode", remedy)
        found = sink.overwriting(constants(partition))
        if found is None:
            raise SqlError(f"{name} does not take INSERT OVERWRITE", "write INSERT INTO, or take 'filesystem'")
        return found

    def explained(self, plans: Sequence[Relation], details: Collection[ExplainDetail] = ()) -> str:
        """Explain how the plans would be run."""
        from ..explain import explained
        from ..plan.explain_steps import ShownPlan

        run, settings = self.optimized(plans), self._settings()
        with self._apart():
            planner = self.planner()
            for plan in run:
                if isinstance(plan, Sink):
                    planner.write(plan)
                else:
                    planner.stream(plan).run_without_sink()
            shown = ShownPlan(settings.two_phase, settings.reuses)
            return explained(plans, run, shown, details, self._env.get_execution_plan)

    def stream(self, plan: Relation) -> DataStream:
        """Return the rows of a plan as a stream of the environment's program.

        Raises:
            SqlError: they change later.
        """
        [run] = self.optimized([plan])
        if not ChangelogModes([run]).of(run).is_append_only:
            problem = "to_data_stream() of a query whose rows change later: a stream would count them twice"
            raise SqlError(problem, "use to_changelog_stream(), or let the query give each row once")
        return self._into_stream(plan, None, ChangelogMode.insert_only())

    def changelog(self, plan: Relation, schema: Schema | None, mode: ChangelogMode) -> DataStream:
        """Return the rows of a plan and their changes as a stream of the environment's program.

        Args:
            schema: of the records; None: as the plan's.
            mode: what they may do.

        Raises:
            SqlError: the rows do something else, or are not of the schema.
        """
        from ..physical.stream_sinks import target

        return self._into_stream(plan, target(schema, plan.schema), mode)

    def _into_stream(self, plan: Relation, definition: TableDefinition | None, mode: ChangelogMode) -> DataStream:
        from ..physical.stream_sinks import deletes_before, sink_of

        path = ("default_catalog", "default_database", "Unregistered_DataStream_Sink")
        columns = () if definition is None else definition.columns
        ensure_key(plan, [at for at, one in enumerate(columns) if definition and one.name in definition.primary_key])
        fitted = plan if definition is None else _fitted(plan, definition, None, "the target schema")
        sink = sink_of(fitted, definition, mode)
        declared = () if definition is None else tuple(one.type for one in definition.columns if one.type is not None)
        [run] = self.optimized([Sink((), fitted, path, sink, declared, place=plan.place)])
        assert isinstance(run, Sink)
        if not mode.before and deletes_before(run):
            run = replace(run, sink=replace(sink, deletes_before=True))
        stream = self.planner().write(run)
        assert isinstance(stream, DataStream)
        return stream

    def planner(self) -> PhysicalPlanner:
        """Writes steps of plans into the environment's program."""
        return PhysicalPlanner(self._env, self._session, self._settings())

    def _rules(self) -> RuleSettings:
        get = self._env.get_configuration().get
        return RuleSettings(
            self.is_batch,
            self._config.get_planner_config(),
            get(options.JOIN_REORDER),
            get(options.BUSHY_JOINS),
            get(options.BROADCAST_JOIN),
            get(options.AGG_PHASE_STRATEGY),
            get(options.DISTINCT_BUCKETS) if get(options.SPLIT_DISTINCT) and not self.is_batch else 0,
        )

    def _settings(self) -> PlannerSettings:
        get = self._env.get_configuration().get
        two_phase = get(options.AGG_PHASE_STRATEGY) is not options.AggPhaseStrategy.ONE_PHASE
        return PlannerSettings(
            two_phase, get(options.REUSE_SUB_PLAN), get(options.REUSE_SOURCE),
            get(options.SOURCE_IDLE_TIMEOUT).to_millis(), get(options.NOT_NULL_ENFORCER),
            get(options.TYPE_LENGTH_ENFORCER), get(options.STATE_TTL).to_millis(),
        )  # fmt: skip

    @contextmanager
    def _apart(self) -> Iterator[None]:
        """Yield a program of its own, as parallel as queries are."""
        config = self._env.get_configuration()
        wanted, known = config.get(options.TABLE_PARALLELISM), config.get_string(options.PARALLELISM.key, None)
        with self._env.apart():
            if wanted > 0:
                config.set(options.PARALLELISM, wanted)
            try:
                yield
            except RecursionError as error:
                raise too_deep() from error
            finally:
                if wanted > 0:
                    config.remove_config(options.PARALLELISM.key)
                    if known is not None:
                        config.set_string(options.PARALLELISM.key, known)

    def _name(self, default: str) -> str:
        return self._env.get_configuration().get_string("pipeline.name", None) or default


def _fitted(plan: Relation, table: TableDefinition, columns: tuple[str, ...] | None, name: str) -> Relation:
    """Return the query's columns as those of the table to write.

    Raises:
        SqlError: there are more or fewer, or one is of another type.
    """
    written = [one for one in table.columns if one.is_written]
    names = list(columns) if columns is not None else [one.name for one in written]
    resolution.checked_columns(names, [one.name for one in written], None, "")
    if twice := next((one for one in names if names.count(one) > 1), None):
        raise SqlError(f"column {twice!r} of {name} is given twice", "name it once")
    if len(names) != len(plan.schema):
        problem = f"the query gives {len(plan.schema)} columns, and {name} takes {len(names)}"
        remedy = f"it gives {_describe_columns(plan.schema)}; wanted is {', '.join(names)}"
        raise SqlError(problem, remedy, "", plan.place)
    exprs = []
    for one in written:
        assert one.type is not None
        if one.name not in names:
            exprs.append(_absent(one, name))
            continue
        at = names.index(one.name)
        found = plan.schema[at]
        if not widens(found.type, one.type):
            problem = f"column {one.name!r} of {name} is of type {one.type}, the query gives {found.type}"
            raise SqlError(problem, f"write CAST(... AS {one.type.nullable()}) in the query", "", plan.place)
        column = Column(found.type, at, found.name)
        exprs.append(cast(column, one.type.as_nullable(found.type.is_nullable)))
    return project(plan, exprs, [one.name for one in written])


def _absent(column: ColumnDefinition, name: str) -> Any:
    assert column.type is not None
    if not column.type.is_nullable:
        problem = f"the query gives nothing for column {column.name!r} of {name}, which is {column.type}"
        raise SqlError(problem, "name it in the INSERT, and select a value for it")
    return Literal(column.type, None)


def _describe_columns(schema: Attributes) -> str:
    return ", ".join(f"{one.name} {one.type}" for one in schema)


def known_zone(name: str) -> str:
    """Return the same name.

    Raises:
        SqlError: there is no time zone of it.
    """
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

    from ..runtime.windows.zone_shift import is_utc

    if is_utc(name):
        return name
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        problem = f"'table.local-time-zone' is {name!r}, which is no time zone{nearest(name, available_timezones())}"
        raise SqlError(problem, "give a name of the IANA database, as Europe/Berlin or UTC") from error
    return name


def system_zone() -> str:
    """Return the zone of this machine by its name."""
    named = os.environ.get("TZ", "").lstrip(":")
    if named:
        return named
    try:
        _, found, name = os.path.realpath("/etc/localtime").partition("/zoneinfo/")
    except OSError:
        return "UTC"
    return name if found else "UTC"
