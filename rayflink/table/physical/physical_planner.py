"""The physical planner: adds the steps of a logical plan to a stream program.

Each family of relations has a module here, with a function for each kind of relation that adds its steps behind those
of its inputs. This module chooses the function.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rayflink.common.errors import assert_never
from rayflink.datastream.streams.step import Step, transformation_of
from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.graph.transformations import Transformation, next_id

from ..plan.changelog import Change, ChangelogModes
from ..plan.groups import GroupAggregate
from ..plan.joins import BroadcastJoin, IntervalJoin, Join, KeyedJoin, StreamJoin, WindowJoin
from ..plan.logical import (
    Filter,
    Project,
    Relation,
    Scan,
    Sink,
    Sort,
    Union,
    Unnest,
    Values,
    WatermarkAssigner,
    WindowAggregate,
    WindowTable,
)
from ..plan.lookup_joins import LookupJoin
from ..plan.matching import MatchRecognize
from ..plan.multi_joins import MultiJoin
from ..plan.op_columns import FromChangelog, ToChangelog
from ..plan.over import OverAggregate
from ..plan.plan_nodes import node_of
from ..plan.process_tables import ProcessTable
from ..plan.ranks import Deduplicate, Rank, WindowRank
from ..plan.temporal_joins import TemporalJoin
from ..plan.typed import Session
from ..plan.upserts import ChangelogNormalize, NumberCopies, UpsertMaterialize
from .operator_pins import Span, steps_by_relation
from .physical_first_rows import translate_first_rows
from .physical_groups import translate_group_aggregate, translate_stream_groups
from .physical_joins import translate_join, unsupported_join
from .physical_lookup_joins import translate_lookup_join
from .physical_matching import translate_match
from .physical_multi_joins import translate_multi_join
from .physical_over import is_by_time, translate_numbers, translate_over
from .physical_process_tables import translate_process_table
from .physical_ranks import translate_rank, translate_sort, translate_window_rank
from .physical_rows import (
    translate_calc,
    translate_changelog_column,
    translate_union,
    translate_unnest,
)
from .physical_sinks import write_table
from .physical_sources import translate_scan, translate_values, translate_watermarks
from .physical_temporal_joins import translate_temporal_join
from .physical_upserts import translate_last_rows, translate_upserts
from .physical_windows import translate_window_aggregate, translate_window_table
from .planner_settings import PlannerSettings
from .translation import Translation

if TYPE_CHECKING:
    from rayflink.datastream import StreamExecutionEnvironment


class PhysicalPlanner:
    """Adds the steps of plans to the program of an environment; a relation that is used twice is translated once.

    Args:
        env: the environment whose program gets the steps.
        session: the settings that evaluation depends on, such as the time zone.
        plans: all that are translated.
        settings: how plans are translated; None: the defaults.
        modes: of the plans that are translated; None: all updates include the row before.
    """

    def __init__(
        self, env: StreamExecutionEnvironment, session: Session, plans: Iterable[Relation],
        settings: PlannerSettings | None = None, modes: ChangelogModes | None = None,
    ) -> None:  # fmt: skip
        self._translation = Translation(env, session, settings or PlannerSettings(), translate, plans, modes)
        self._roots: list[Transformation] = []

    def stream(self, plan: Relation) -> StreamBuilder:
        """Translate a plan to a stream of Arrow batches with the plan's columns.

        Raises:
            SqlError: part of the plan cannot be run.
        """
        return self._translation.stream(plan)

    def write(self, plan: Sink) -> Step:
        """Write the rows of a query into a table; returns the last step.

        Raises:
            SqlError: part of the plan cannot be run.
        """
        first = next_id()
        step = write_table(self._translation, plan)
        self._translation.spans.append(Span(plan, first, next_id()))
        self._roots.append(transformation_of(step))
        return step

    def steps(self) -> list[tuple[Relation, Transformation]]:
        """Return the steps that were added for written plans, each with its relation, in their order."""
        return steps_by_relation(self._translation.spans, self._roots)

    def endless_source(self, stream: StreamBuilder) -> Transformation | None:
        """Return a source of a translated stream without an end, and without a LIMIT behind it; None: all end."""
        return stream.endless_source(self._translation.limits)


def translate(translation: Translation, plan: Relation) -> StreamBuilder:
    """Add the steps of a relation to the program, and return the last one.

    Raises:
        SqlError: it cannot be run.
    """
    node = node_of(plan)
    match node:
        case Scan():
            return translate_scan(translation, node)
        case Values():
            return translate_values(translation, node)
        case WatermarkAssigner():
            return translate_watermarks(translation, node)
        case Project() | Filter():
            return translate_calc(translation, node)
        case Union():
            return translate_union(translation, node)
        case Unnest():
            return translate_unnest(translation, node)
        case ToChangelog() | FromChangelog():
            return translate_changelog_column(translation, node)
        case WindowTable():
            return translate_window_table(translation, node)
        case WindowAggregate():
            return translate_window_aggregate(translation, node)
        case GroupAggregate() if node.is_whole:
            return translate_group_aggregate(translation, node)
        case GroupAggregate() if node.calls or translation.changes(node.input) & (Change.UPDATE | Change.DELETE):
            return translate_stream_groups(translation, node)
        case Deduplicate() if node.keeps_last:
            return translate_last_rows(translation, node)
        case GroupAggregate() | Deduplicate():
            return translate_first_rows(translation, node)
        case ChangelogNormalize() | UpsertMaterialize() | NumberCopies():
            return translate_upserts(translation, node)
        case MatchRecognize():
            return translate_match(translation, node)
        case ProcessTable():
            return translate_process_table(translation, node)
        case Sort():
            return translate_sort(translation, node)
        case WindowRank():
            return translate_window_rank(translation, node)
        case Rank() if not node.is_whole and node.last is None and node.first == 1 and is_by_time(node):
            return translate_numbers(translation, node)
        case Rank():
            return translate_rank(translation, node)
        case OverAggregate():
            return translate_over(translation, node)
        case TemporalJoin():
            return translate_temporal_join(translation, node)
        case WindowJoin() | IntervalJoin() | StreamJoin() | BroadcastJoin() | KeyedJoin():
            return translate_join(translation, node)
        case MultiJoin():
            return translate_multi_join(translation, node)
        case LookupJoin():
            return translate_lookup_join(translation, node)
        case Join():
            raise unsupported_join(node)
        case Sink():
            raise AssertionError("a sink is written, see PhysicalPlanner.write")
        case _:
            assert_never(node)


__all__ = ["PhysicalPlanner", "PlannerSettings", "translate"]
