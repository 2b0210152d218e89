"""Compiles INSERTs to plans, and reads plans as INSERTs that can be run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options

from ..catalog.stored_definitions import Fields
from ..compiled_plans.plan_document import PlanHeader, PlanReader, PlanWriter, header_of
from ..compiled_plans.plan_forms import COMPILE_AGAIN
from ..compiled_plans.plan_tables import TableReader, TableWriter
from ..connectors.connector_registry import connector
from ..connectors.contract import TableSink, TableSource
from ..definitions import Path, TableDefinition
from ..errors import SqlError
from ..parsing.nesting import deeply
from ..physical.operator_pins import relation_key, stored_operators
from ..physical.planner_settings import OPTIONS, PlannerSettings
from ..plan.logical import Sink
from ..plan.typed import Session
from . import resolution
from .query_runner import PlannedInserts, QueryRunner
from .time_zones import known_zone


def compile_inserts(queries: QueryRunner, sinks: Sequence[Sink]) -> Fields:
    """Return the plan of INSERTs as a document.

    Raises:
        SqlError: they cannot be run, or part of the plan is bound to this program.
    """
    context = queries.context
    with queries.apart():
        planned = queries.plan_inserts(sinks)
        steps = queries.write_planned(planned).steps()
        operators = stored_operators(steps, queries.env.get_stream_graph())
    extent = context.configuration.get(options.PLAN_COMPILE_OBJECTS)
    writer = deeply(partial(PlanWriter, planned.sinks, TableWriter(context.catalogs, context.functions, extent)))
    by_node = {
        writer.node_of(relation): operators[relation_key(relation)]
        for relation in {relation_key(relation): relation for relation, _ in steps}.values()
    }
    config = context.configuration
    values = {option.key: option.type.write(config.get(option)) for option in OPTIONS}
    header = PlanHeader(context.is_batch, planned.session.zone, planned.session.database, values)
    document: Fields = deeply(partial(writer.document, header, by_node))
    return document


def read_inserts(queries: QueryRunner, document: Fields) -> PlannedInserts:
    """Return the INSERTs of a plan.

    Raises:
        SqlError: this version or this environment cannot run it.
    """
    context, header = queries.context, header_of(document)
    if header.is_batch is not context.is_batch:
        mode = "batch" if header.is_batch else "streaming"
        problem = f"the plan was compiled in {mode} mode, and this environment is in the other"
        raise SqlError(problem, f"load it in an environment of EnvironmentSettings.in_{mode}_mode()")
    restore = context.configuration.get(options.PLAN_RESTORE_OBJECTS)
    tables = TableReader(context.catalogs, context.functions, restore, _Connected(header.zone))
    nodes = deeply(lambda: list(PlanReader(tables).nodes(document)))
    sinks = tuple(node.relation for node in nodes if isinstance(node.relation, Sink))
    if not sinks:
        raise SqlError("the plan writes no table", COMPILE_AGAIN)
    session = Session(known_zone(header.zone, "the 'timeZone' of the plan"), database=header.database)
    pins = tuple((node.relation, node.operators) for node in nodes if node.operators)
    return PlannedInserts(sinks, session, _settings(context.configuration, header), pins)


def _settings(configuration: Configuration, header: PlanHeader) -> PlannerSettings:
    """Return the settings with which a plan was compiled.

    Raises:
        SqlError: it names an option that this version does not have.
    """
    known = {option.key for option in OPTIONS}
    of_plan = Configuration(configuration)
    for key, value in header.options.items():
        if key not in known:
            raise SqlError(f"the plan was compiled with {key!r}, which this version does not know", COMPILE_AGAIN)
        of_plan.set_string(key, value)
    return PlannerSettings.of(of_plan, header.is_batch)


class _Connected:
    """Connects tables by the registry of connectors.

    Args:
        zone: the session's time zone.
    """

    def __init__(self, zone: str) -> None:
        self._zone = zone

    def source(self, path: Path, table: TableDefinition) -> TableSource:
        """Return what reads a table."""
        return connector(path, table).source(resolution.connected(path, table, True, self._zone))

    def sink(self, path: Path, table: TableDefinition) -> TableSink:
        """Return what writes a table."""
        return connector(path, table).sink(resolution.connected(path, table, False, self._zone))


__all__ = ["compile_inserts", "read_inserts"]
