"""Runs plans as jobs of a stream environment."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from rayflink.common.options import registry as options
from rayflink.common.records.arrow_rows import rows_to_arrow
from rayflink.common.types import Row
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.streams.results import columns_of
from rayflink.datastream.streams.stream import DataStream

from ..conversion.arrow_columns import arrow_schema
from ..definitions import TableDefinition
from ..environment_settings import ensure_mode
from ..errors import SqlError
from ..explain_detail import ExplainDetail
from ..explaining.explain_text import execution_plan, explained
from ..explaining.plan_drawing import PlanDrawing, drawn_plan
from ..optimizer.awaited_calls import awaited_in_calcs
from ..optimizer.nondeterministic_updates import ensure_deterministic_updates, resolve_lookups
from ..optimizer.optimizer import optimized
from ..optimizer.rules.drop_unread_watermarks import tables_with_readers, tables_without_watermarks
from ..optimizer.share_scans import share_scans
from ..optimizer.upsert_sources import normalize_upserts
from ..parsing.nesting import deeply, too_deep
from ..physical.operator_pins import StoredOperator, pin_operators
from ..physical.physical_planner import PhysicalPlanner
from ..physical.planner_settings import PlannerSettings
from ..physical.stream_sinks import deletes_before, sink_of, target
from ..plan.changelog import ChangelogMode, ChangelogModes, changelog_modes
from ..plan.changelog_fold import materialized
from ..plan.explain_steps import ShownPlan
from ..plan.logical import Attribute, Relation, Scan, Sink
from ..plan.typed import Session
from ..plan.upsert_keys import ensure_key, ensure_one_group
from ..table_result import CloseableIterator, Printing, TableResult
from ..types import DataTypes
from .insert_plan import fit_columns
from .planning_context import PlanningContext
from .previews import Preview, preview_of

if TYPE_CHECKING:
    import pyarrow

    from ..schema import Schema


@dataclass(frozen=True)
class PlannedInserts:
    """Queries with the tables that they write, as they are run.

    Args:
        sinks: after all rules.
        session: the settings that evaluation depends on.
        settings: how they are translated.
        operators: of relations whose steps have ids of their own, as a compiled plan says.
    """

    sinks: tuple[Sink, ...]
    session: Session
    settings: PlannerSettings
    operators: tuple[tuple[Relation, tuple[StoredOperator, ...]], ...] = ()


@dataclass(frozen=True)
class QueryBounds:
    """The ends of a query, known before it is run.

    Args:
        endless_source: a source that it reads and that has no end; None: all have one.
        is_append_only: whether its rows never change later.
    """

    endless_source: str | None
    is_append_only: bool


class QueryRunner:
    """Optimizes plans and runs them as jobs of a stream environment.

    Args:
        env: the environment whose programs they become.
        context: the options, by which plans are optimized and translated.
    """

    def __init__(self, env: StreamExecutionEnvironment, context: PlanningContext) -> None:
        self.env, self.context = env, context

    def optimize(self, plans: Sequence[Relation]) -> list[Relation]:
        """Return the plans as they are run: after all rules, with common scans shared, and checked.

        Raises:
            SqlError: a step does not take the changes that another gives.
            ConfigError: `execution.runtime-mode` has changed since the environment was created.
        """
        context = self.context
        ensure_mode(context.configuration, context.is_batch)
        settings = context.planner_settings()
        shares_scans = settings.reuse_plans and settings.reuse_sources
        optimized_plans = [awaited_in_calcs(plan) for plan in self._by_rules(plans, shares_scans)]
        if shares_scans:
            optimized_plans = share_scans(optimized_plans)
        if context.is_batch:
            _ensure_no_conflict_clause(plans)
        else:
            strategy = context.configuration.get(options.UPSERT_MATERIALIZE)
            requires = context.configuration.get(options.REQUIRE_ON_CONFLICT)
            optimized_plans = deeply(partial(normalize_upserts, optimized_plans, strategy, requires))
            if settings.nondeterministic_updates is options.NonDeterministicUpdates.TRY_RESOLVE:
                optimized_plans = deeply(partial(resolve_lookups, optimized_plans))
                deeply(partial(ensure_deterministic_updates, optimized_plans))
        modes = deeply(partial(ChangelogModes, optimized_plans))
        if context.is_batch:
            _ensure_append_only(optimized_plans, modes)
        return optimized_plans

    def _by_rules(self, plans: Sequence[Relation], shares_scans: bool) -> list[Relation]:
        """Return the plans after all rules.

        Args:
            shares_scans: a table is read once, so all plans read it with watermarks if one of them needs these.
        """
        session, rules = self.context.session, self.context.rule_settings()
        results = [deeply(partial(optimized, plan, session, rules)) for plan in plans]
        read = frozenset().union(*map(tables_with_readers, results)) if shares_scans and len(plans) > 1 else frozenset()
        if all(read.isdisjoint(tables_without_watermarks(result)) for result in results):
            return results
        rules = replace(rules, tables_with_readers=read)
        return [deeply(partial(optimized, plan, session, rules)) for plan in plans]

    def run(self, plan: Relation) -> TableResult:
        """Run a query; its rows come while it runs."""
        with self.apart():
            [optimized_plan] = self.optimize([plan])
            stream = self._planner([optimized_plan]).stream(optimized_plan).stream
            rows = stream.execute_and_collect(self._job_name("collect"))
        printing = Printing(self.context.zone, self.context.configuration.get(options.PRINTED_WIDTH))
        iterator = CloseableIterator(rows, plan.schema)
        return TableResult(plan.schema, iterator, None, not self.context.is_batch, printing=printing)

    def run_to_arrow(self, plan: Relation) -> pyarrow.Table:
        """Run a query to its end, and return all its rows.

        Raises:
            SqlError: it has none.
        """
        import pyarrow

        [optimized_plan] = self.optimize([plan])
        schema, job_name = arrow_schema(plan.schema), self._job_name("collect")
        with self.apart():
            planner = self._planner([optimized_plan])
            stream = planner.stream(optimized_plan)
            endless = planner.endless_source(stream)
            if endless is not None:
                remedy = "write its rows by INSERT INTO, or draw them with execute().collect(), or add LIMIT"
                raise SqlError(f"the query reads {endless.name!r}, which has no end", remedy)
            if ChangelogModes([optimized_plan], before=True).of(optimized_plan).is_append_only:
                return columns_of(stream.stream, schema, job_name)
            rows = materialized(stream.stream.execute_and_collect(job_name))
        return pyarrow.Table.from_batches([rows_to_arrow(rows, schema)] if rows else [], schema)

    def plan_inserts(self, sinks: Sequence[Sink]) -> PlannedInserts:
        """Return queries with the tables that they write, as they are run.

        Raises:
            SqlError: a table does not take what its query gives.
        """
        for sink in sinks:
            if not sink.sink.requires_update_before and not self._materializes:
                ensure_one_group(sink.input, [sink.input.names.index(name) for name in sink.sink.key])
        planned = [plan for plan in self.optimize(sinks) if isinstance(plan, Sink)]
        return PlannedInserts(tuple(planned), self.context.session, self.context.planner_settings())

    def bounds_of(self, plan: Relation) -> QueryBounds:
        """Say what a query would do if it were run.

        Raises:
            SqlError: it cannot be run.
        """
        [optimized_plan] = self.optimize([plan])
        with self.apart():
            planner = self._planner([optimized_plan])
            endless = planner.endless_source(planner.stream(optimized_plan))
        is_append_only = ChangelogModes([optimized_plan], before=True).of(optimized_plan).is_append_only
        return QueryBounds(None if endless is None else endless.name, is_append_only)

    def preview(self, plan: Relation) -> Preview:
        """Return the first rows of a query, for notebooks."""
        return preview_of(self, plan)

    def run_inserts(self, sinks: Sequence[Sink]) -> TableResult:
        """Run queries as one job that writes their rows; without waiting for it where `execution.attached` is false."""
        with self.apart():
            planned = self.plan_inserts(sinks)
        return self.run_planned(planned)

    def run_planned(self, planned: PlannedInserts) -> TableResult:
        """Run the same, planned."""
        targets = [".".join(sink.path) for sink in planned.sinks]
        with self.apart():
            self.write_planned(planned)
            job = self.env.execute_async(self._job_name(f"insert-into_{'_'.join(targets)}"))
        if not self.context.configuration.get(options.ATTACHED, True):  # `rayflink run -d`
            job.detach()
            job = None
        schema = [Attribute(name, DataTypes.BIGINT(False)) for name in targets]
        return TableResult(schema, [Row(*(-1 for _ in targets))], job)

    def add_inserts(self, sinks: Sequence[Sink]) -> None:
        """Make queries and the tables they write part of the environment's program."""
        self.write_planned(self.plan_inserts(sinks))

    def write_planned(self, planned: PlannedInserts) -> PhysicalPlanner:
        """Make them, planned, part of the environment's program, and return the planner that has its steps."""
        modes = deeply(partial(changelog_modes, planned.sinks))
        planner = PhysicalPlanner(self.env, planned.session, planned.sinks, planned.settings, modes)
        for sink in planned.sinks:
            planner.write(sink)
        if planned.operators:
            pin_operators(planner.steps(), planned.operators)
        return planner

    def explain(self, plans: Sequence[Relation], details: Collection[ExplainDetail] = ()) -> str:
        """Explain how the plans would be run."""
        optimized_plans, settings = self.optimize(plans), self.context.planner_settings()
        with self.apart():
            planner = self._planner(optimized_plans)
            for plan in optimized_plans:
                if isinstance(plan, Sink):
                    planner.write(plan)
                else:
                    planner.stream(plan).run_without_sink()
            shown = ShownPlan(settings.two_phase, settings.reuses)
            return explained(plans, optimized_plans, shown, details, self.env.get_execution_plan)

    def draw(self, plans: Sequence[Relation]) -> PlanDrawing:
        """Draw how the plans would be run."""
        settings = self.context.planner_settings()
        return drawn_plan(self.optimize(plans), ShownPlan(settings.two_phase, settings.reuses))

    def explain_planned(self, planned: PlannedInserts, details: Collection[ExplainDetail] = ()) -> str:
        """Explain how queries would be run that are planned already."""
        with self.apart():
            self.write_planned(planned)
            shown = ShownPlan(planned.settings.two_phase, planned.settings.reuses)
            return execution_plan(planned.sinks, shown, details, self.env.get_execution_plan)

    def add_stream(self, plan: Relation) -> DataStream:
        """Return the rows of a plan as a stream of the environment's program.

        Raises:
            SqlError: they change later.
        """
        [optimized_plan] = self.optimize([plan])
        if not ChangelogModes([optimized_plan]).of(optimized_plan).is_append_only:
            problem = "to_data_stream() of a query whose rows change later: a stream would count them twice"
            raise SqlError(problem, "use to_changelog_stream(), or let the query give each row once")
        return self._add_stream(plan, None, ChangelogMode.insert_only())

    def add_changelog_stream(self, plan: Relation, schema: Schema | None, mode: ChangelogMode) -> DataStream:
        """Return the rows of a plan and their changes as a stream of the environment's program.

        Args:
            schema: of the records; None: as the plan's.
            mode: what they may do.

        Raises:
            SqlError: the rows do something else, or are not of the schema.
        """

        return self._add_stream(plan, target(schema, plan.schema), mode)

    def _add_stream(self, plan: Relation, definition: TableDefinition | None, mode: ChangelogMode) -> DataStream:
        path = ("default_catalog", "default_database", "Unregistered_DataStream_Sink")
        columns = () if definition is None else definition.columns
        key = () if definition is None else definition.primary_key
        key_columns = [index for index, column in enumerate(columns) if column.name in key]
        if not (mode.before or self._materializes):
            ensure_one_group(plan, key_columns)
        if not (mode.before or key):
            ensure_key(plan)
        fitted = plan if definition is None else fit_columns(plan, definition, None, "the target schema")
        sink = sink_of(fitted, definition, mode)
        declared = tuple(column.type for column in columns if column.type is not None)
        [optimized_plan] = self.optimize([Sink((), fitted, path, sink, declared, place=plan.place)])
        assert isinstance(optimized_plan, Sink)
        if not mode.before and (optimized_plan.needs_before or deletes_before(optimized_plan)):
            optimized_plan = replace(optimized_plan, sink=replace(sink, deletes_before=True))
        stream = self._planner([optimized_plan]).write(optimized_plan)
        assert isinstance(stream, DataStream)
        return stream

    @property
    def _materializes(self) -> bool:
        """Return whether rows of each key are stored where several groups may have one."""
        return self.context.configuration.get(options.UPSERT_MATERIALIZE) is not options.UpsertMaterialize.NONE

    def planner(self, plans: Sequence[Relation]) -> PhysicalPlanner:
        """Return a planner that adds the steps of plans to the environment's program."""
        return PhysicalPlanner(self.env, self.context.session, plans, self.context.planner_settings())

    def _planner(self, plans: Sequence[Relation]) -> PhysicalPlanner:
        """Return a planner of optimized plans, which leaves out rows before updates where no step wants them."""
        modes = deeply(partial(changelog_modes, plans))
        return PhysicalPlanner(self.env, self.context.session, plans, self.context.planner_settings(), modes)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Begin a program of its own, with the parallelism of queries."""
        config = self.context.configuration
        wanted, known = config.get(options.TABLE_PARALLELISM), config.get_string(options.PARALLELISM.key, None)
        with self.env.apart():
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

    def _job_name(self, default: str) -> str:
        return self.context.configuration.get_string("pipeline.name", None) or default


def _ensure_no_conflict_clause(plans: Sequence[Relation]) -> None:
    """Raise SqlError where an INSERT in batch mode has ON CONFLICT."""
    for plan in plans:
        if isinstance(plan, Sink) and plan.on_conflict is not None:
            problem = f"ON CONFLICT {plan.on_conflict.value} in batch mode, where rows are final"
            raise SqlError(problem, "leave it out, or run the statement in streaming mode", "", plan.place)


def _ensure_append_only(plans: Sequence[Relation], modes: ChangelogModes) -> None:
    """Raise SqlError where rows of a table change later, in batch mode."""
    scans = (node for plan in plans for node in plan.walk() if isinstance(node, Scan))
    changing = next((scan for scan in scans if not modes.of(scan).is_append_only), None)
    if changing is not None:
        problem = f"the rows of {changing.explain_line()} change later, and in batch mode rows only come"
        raise SqlError(problem, "run it in streaming mode, or give ChangelogMode.insert_only()", "", changing.place)


__all__ = ["PlannedInserts", "QueryRunner"]
