"""Translates logical plans to the steps of a stream program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from rayflink.common.functions.function_classes import KeyBy
from rayflink.common.options.registry import NotNullEnforcer, TypeLengthEnforcer
from rayflink.common.time import Duration
from rayflink.datastream.streams.step import Step as ProgramStep
from rayflink.datastream.streams.stream import DataStream
from rayflink.graph import transformations as graph
from rayflink.graph.checks import endless_source
from rayflink.graph.partitioners import Broadcast, Global, KeyGroup
from rayflink.operators.factory import Factory

from ..connectors.in_memory import HeldTable
from ..conversion.arrow_columns import arrow_schema
from ..environment_settings import is_batch
from ..errors import SqlError
from ..optimizer.conditions import is_movable
from ..optimizer.rules.merge_projections_and_filters import inlined
from ..plan.changelog import Change
from ..plan.explain_steps import calc_text
from ..plan.groups import GroupAggregate
from ..plan.joins import BroadcastJoin, IntervalJoin, Join, KeyedJoin, WindowJoin
from ..plan.lineage import lineage, rows_of
from ..plan.logical import (
    Attribute,
    Filter,
    Project,
    Relation,
    Scan,
    Schema,
    Sink,
    Sort,
    Union,
    Unnest,
    Values,
    WatermarkAssigner,
    WindowAggregate,
    WindowKind,
    WindowTable,
)
from ..plan.op_columns import FromChangelog, ToChangelog
from ..plan.ranks import Deduplicate, Rank, WindowRank
from ..plan.typed import Column, Expr, Literal, Session
from ..runtime.aggregates.window_spec import WindowSpec
from ..runtime.calc import CalcOperator
from ..runtime.constraints import ConstraintOperator, Length
from ..runtime.event_time import watermark_strategy
from ..runtime.key_columns import KeyColumns
from ..runtime.op_columns import KindsToStrings, StringsToKinds
from ..runtime.ranks.bounded_rank import RowNumbers
from ..runtime.ranks.ranking import Ranking
from ..runtime.ranks.sorting import LimitOperator, LocalLimitOperator, SortOperator
from ..runtime.ranks.window_rank import LocalRank
from ..runtime.unnest import UnnestOperator
from ..runtime.windows.emitting_window import EmittingWindowAggregate
from ..runtime.windows.global_window import GlobalWindowAggregate, OnePhaseWindowAggregate
from ..runtime.windows.local_window import LocalWindowAggregate
from ..runtime.windows.session_table import SessionTable
from ..runtime.windows.session_window import SessionWindowAggregate
from ..runtime.windows.window_table import WindowTableOperator
from ..types import MOST_LENGTH, DataTypes, Root
from . import physical_first_rows, physical_groups, physical_ranks
from .physical_joins import join_factory, refused, side_identity
from .physical_windows import assigned_windows, attached_windows, window_aggregation

if TYPE_CHECKING:
    from rayflink.common.watermarks import WatermarkStrategy
    from rayflink.datastream import StreamExecutionEnvironment

Step = TypeVar("Step", bound=ProgramStep)


@dataclass(frozen=True)
class PlannerSettings:
    """Settings of the translation from plans to steps.

    Args:
        two_phase: aggregate before rows are partitioned as well.
        reuse_plans: compute common parts of the plans once.
        reuse_sources: read tables that occur several times once.
        idle_timeout_ms: a source without rows for this long does not hold event time back; 0: it always does.
        not_null: how NULL is treated in a column that must not be NULL.
        type_length: how strings are treated whose length is not that of their column's type.
        state_ttl_ms: how long unused state without an end of its own is kept; 0: for ever.
    """

    two_phase: bool = True
    reuse_plans: bool = True
    reuse_sources: bool = True
    idle_timeout_ms: int = 0
    not_null: NotNullEnforcer = NotNullEnforcer.ERROR
    type_length: TypeLengthEnforcer = TypeLengthEnforcer.IGNORE
    state_ttl_ms: int = 0

    def reuses(self, plan: Relation) -> bool:
        """Return whether a relation that occurs twice is translated once."""
        if not self.reuse_plans or isinstance(plan, Sink):
            return False
        return plan.is_repeatable and (self.reuse_sources or not isinstance(plan, Scan))


class PhysicalPlanner:
    """Adds the steps of plans to the program of an environment; a relation that is used twice is translated once.

    Args:
        env: the environment whose program gets the steps.
        session: the settings that evaluation depends on, such as the time zone.
        settings: how plans are translated; None: the defaults.
    """

    def __init__(
        self, env: StreamExecutionEnvironment, session: Session, settings: PlannerSettings | None = None
    ) -> None:
        self._env, self._session, self._settings = env, session, settings or PlannerSettings()
        self._streams: dict[Relation, DataStream] = {}
        self._watermarked: dict[tuple[Relation, Expr, Expr], DataStream] = {}
        """Tables with their watermarks, by table, watermark expression and time."""
        self._changes_of: dict[Relation, Change] = {}
        self.limits: set[int] = set()
        """Ids of the steps that end their inputs."""
        self._ordered_changelogs: set[Relation] = set()
        """Relations whose rows are a changelog by one of their columns, so that their order counts."""

    def stream(self, plan: Relation) -> DataStream:
        """Translate a plan to a stream of Arrow batches with the plan's columns.

        Raises:
            SqlError: part of the plan cannot be run.
        """
        stream = self._streams.get(plan)
        if stream is None:
            stream = self._PLANNERS[type(plan)](self, plan)
            if self._settings.reuses(plan):
                self._streams[plan] = stream
        return stream

    def write(self, plan: Sink) -> Any:
        """Write the rows of a query into a table; returns the last step."""
        stream = self._constrained(plan, self.stream(plan.input))
        sink = plan.sink.attach(stream, f"Sink: {plan.path[-1]}")
        step = self._keep_parallelism_if_changelog(plan.input, stream, sink)
        if isinstance(step._transformation, graph.Sink):
            step._transformation.identity = f"into {'.'.join(plan.path)}"
        return step

    def _constrained(self, plan: Sink, stream: DataStream) -> DataStream:
        """Apply the constraints of the table to the rows."""
        pairs = list(enumerate(zip(plan.declared, plan.input.schema, strict=True))) if plan.declared else []
        not_null = [index for index, (kind, column) in pairs if column.type.is_nullable and not kind.is_nullable]
        mode = self._settings.type_length
        lengths: list[Length] = []
        if mode is not TypeLengthEnforcer.IGNORE:
            pads = mode is TypeLengthEnforcer.TRIM_PAD
            sized = [(index, kind) for index, (kind, _) in pairs if kind.is_text or kind.is_bytes]
            lengths = [Length(index, kind.length, kind.root in (Root.CHAR, Root.BINARY), pads) for index, kind in sized
                       if kind.length < MOST_LENGTH]  # fmt: skip
        if not (not_null or lengths):
            return stream
        drops = self._settings.not_null is NotNullEnforcer.DROP
        factory = Factory(ConstraintOperator, ".".join(plan.path), plan.input.names, not_null, drops, lengths)
        about = f"ConstraintEnforcer(NotNull=[{', '.join(plan.input.names[index] for index in not_null)}])"
        step = stream._add_operator("ConstraintEnforcer", factory).set_description(about)
        return self._keep_parallelism_if_changelog(plan.input, stream, step)

    def _keep_parallelism_if_changelog(self, below: Relation, stream: DataStream, step: Step) -> Step:
        """Give a step the parallelism of its input where rows change, so that the changes of a row stay in order.

        Source: apache/flink ExecNode: steps without state have the parallelism of their input.
        """
        if below in self._ordered_changelogs or self._changes(below) not in (Change.INSERT, Change.NONE):
            width = width_of(stream._transformation)
            if width is not None and step._transformation.parallelism is None:
                step.set_parallelism(width)
        return step

    def _changes(self, plan: Relation) -> Change:
        changes = self._changes_of.get(plan)
        if changes is None:
            changes = self._changes_of[plan] = plan.gives_changes([self._changes(below) for below in plan.inputs])
        return changes

    # steps

    def _scan(self, plan: Relation, strategy: Any = None) -> DataStream:
        assert isinstance(plan, Scan)
        newest = graph.next_id()
        source = plan.source.in_order() if plan in self._ordered_changelogs else plan.source
        stream: DataStream = source.stream(self._env, strategy, plan.known_path[-1])
        if is_batch(self._env.get_configuration()) and endless_source([stream._transformation]) is not None:
            problem = f"{plan.explain_line()} has no end, and in batch mode a query sees all rows of its tables"
            remedy = "run it in streaming mode, or give the table an end, as by 'number-of-rows' of datagen"
            raise SqlError(problem, remedy, "", plan.place)
        if len(plan.path) > 1 and plan.is_named:
            _identify(stream._transformation, f"from {'.'.join(plan.path)}", newest)
        return stream.set_description(plan.explain_line())

    def _watermarks(self, plan: Relation) -> DataStream:
        """Generate watermarks in the source, for each split: the expression is over the source's columns."""
        assert isinstance(plan, WatermarkAssigner)
        below, expression, time = plan.input, plan.expression, plan.input.column(plan.time)
        exprs: tuple[Expr, ...] | None = None
        if isinstance(below, Project):
            exprs = below.exprs
            expression, time, below = inlined(expression, exprs), inlined(time, exprs), below.input  # type: ignore[assignment]
        if not isinstance(below, Scan):
            raise SqlError("the watermark is not declared on a table", "declare it where the table is created")
        own = isinstance(expression, Literal)  # SOURCE_WATERMARK()
        if not (is_movable(expression) and is_movable(time)):
            return self._watermarks_of_moments(plan)
        key = (below, expression, time)
        stream = self._watermarked.get(key)
        if stream is None:
            strategy = watermark_strategy(expression, time, self._session)
            stream = self._scan(below, None if own else self._with_idleness(strategy))
            if self._settings.reuses(below):
                self._watermarked[key] = stream
        if exprs is None:
            return stream
        step = self._calc(stream, None, exprs, plan.schema, plan)
        return self._keep_parallelism_if_changelog(below, stream, step)

    def _with_idleness(self, strategy: WatermarkStrategy) -> WatermarkStrategy:
        timeout_ms = self._settings.idle_timeout_ms
        return strategy.with_idleness(Duration.of_millis(timeout_ms)) if timeout_ms else strategy

    def _watermarks_of_moments(self, plan: WatermarkAssigner) -> DataStream:
        """Compute a time that differs at each evaluation once, so that rows and watermarks agree about it."""
        columns = tuple(plan.input.column(index) for index in range(len(plan.schema)))
        marked = (*plan.schema, Attribute("$watermark", plan.expression.type))
        with_mark = Project(marked, plan.input, (*columns, plan.expression))
        mark = with_mark.column(len(columns))
        strategy = self._with_idleness(watermark_strategy(mark, columns[plan.time], self._session))
        stream = self.stream(with_mark)
        step = stream.assign_timestamps_and_watermarks(strategy)
        stream = self._keep_parallelism_if_changelog(with_mark, stream, step)
        step = self._calc(stream, None, columns, plan.schema, plan)
        return self._keep_parallelism_if_changelog(with_mark, stream, step)

    def _values(self, plan: Relation) -> DataStream:
        import pyarrow

        assert isinstance(plan, Values)
        schema = arrow_schema(plan.schema)
        if not schema.names:  # SELECT without FROM: one row
            schema = pyarrow.schema([("nothing", pyarrow.int8())])
            table = pyarrow.table({"nothing": pyarrow.nulls(len(plan.rows), pyarrow.int8())})
        else:
            columns = [
                pyarrow.array([row[index] for row in plan.rows], field.type) for index, field in enumerate(schema)
            ]
            table = pyarrow.Table.from_arrays(columns, schema=schema)
        return HeldTable(table).stream(self._env, None, "Values")

    def _rows(self, plan: Relation) -> DataStream:
        """Translate a Project over a Filter, or one of them, to one step."""
        condition: Expr | None = None
        exprs: Sequence[Expr] = ()
        below = plan
        if isinstance(below, Project):
            exprs, below = below.exprs, below.input
        if isinstance(below, Filter):
            condition, below = below.condition, below.input
        stream = self.stream(below)
        step = self._calc(stream, condition, exprs, plan.schema, plan)
        step = self._keep_parallelism_if_changelog(below, stream, step)
        return step.set_parallelism(1) if isinstance(below, Sort) else step  # several subtasks would mix the order up

    def _calc(self, stream: DataStream, condition: Expr | None, exprs: Sequence[Expr], schema: Schema,
              plan: Relation) -> DataStream:  # fmt: skip
        factory = Factory(CalcOperator, condition, tuple(exprs), arrow_schema(schema), self._session)
        about = calc_text(plan)[0] if isinstance(plan, (Project, Filter)) else plan.explain_line()
        return stream._add_operator("Calc", factory).set_description(about)

    def _window_table(self, plan: Relation) -> DataStream:
        assert isinstance(plan, WindowTable)
        if plan.windowing.kind is WindowKind.SESSION:
            return self._session_table(plan)
        factory = Factory(WindowTableOperator, plan.windowing, arrow_schema(plan.schema), self._session)
        step = self.stream(plan.input)._add_operator("WindowTableFunction", factory)
        return step.set_description(plan.explain_line())

    def _session_table(self, plan: WindowTable) -> DataStream:
        keys = plan.windowing.partition
        names = [plan.input.names[key] for key in keys]
        spec = assigned_windows(plan.windowing, plan.schema[-1].type, self._session.zone)
        state_identity = f"{rows_of(plan.input, keys)} in sessions by {lineage(plan.input, plan.windowing.time)}"
        row, schema = physical_ranks.row_of(plan.input), arrow_schema(plan.schema)
        factory = Factory(SessionTable, row, keys, spec, schema, state_identity)
        partitioned = self._hash_partitioned(self.stream(plan.input), names)
        step = self._add_keyed_operator(partitioned, "WindowTableFunction", factory, names, state_identity)
        return step.set_description(plan.explain_line())

    def _window_aggregate(self, plan: Relation) -> DataStream:
        assert isinstance(plan, WindowAggregate)
        aggregation = window_aggregation(plan, self._session.zone)
        stream, line, identity = self.stream(plan.input), plan.explain_line(), aggregation.state_identity
        if not plan.has_local_phase or not self._settings.two_phase:
            names = [plan.input.names[key] for key in plan.grouping]
            partitioned = self._hash_partitioned(stream, names)
            factory = Factory(_one_phase(aggregation.window), aggregation)
            if plan.emission is not None:
                factory = Factory(EmittingWindowAggregate, aggregation, plan.emission)
            step = self._add_keyed_operator(partitioned, "WindowAggregate", factory, names, identity)
            return step.set_description(line)
        local = stream._add_operator("LocalWindowAggregate", Factory(LocalWindowAggregate, aggregation))
        names = list(aggregation.key_names)
        partitioned = self._hash_partitioned(local.set_description(line), names)
        factory = Factory(GlobalWindowAggregate, aggregation)
        step = self._add_keyed_operator(partitioned, "GlobalWindowAggregate", factory, names, identity)
        return step.set_description(line)

    def _group_aggregate(self, plan: Relation) -> DataStream:
        assert isinstance(plan, GroupAggregate)
        if not plan.is_whole:
            return self._first_of_keys(plan)
        names, local, whole = physical_groups.phases(plan)
        stream, line = self.stream(plan.input), plan.explain_line()
        if plan.is_one_phase:
            keys = [plan.input.names[key] for key in plan.grouping]
            partitioned = self._hash_partitioned(stream, keys)
            partial = self._add_keyed_operator(partitioned, "LocalGroupAggregate", local, keys)
            step = partial._add_operator("GroupAggregate", whole).set_description(line)
            return step if keys else step.set_parallelism(1)
        partial = stream._add_operator("LocalGroupAggregate", local).set_description(line)
        partitioned = self._hash_partitioned(partial, names)
        return self._add_keyed_operator(partitioned, "GroupAggregate", whole, names).set_description(line)

    def _first_of_keys(self, plan: Relation) -> DataStream:
        assert isinstance(plan, GroupAggregate | Deduplicate)
        names = [plan.input.names[key] for key in physical_first_rows.keys_of(plan)]
        ttl_ms = physical_first_rows.ttl_of(plan, self._settings.state_ttl_ms)
        factory, state_identity = physical_first_rows.first_of_keys(plan, ttl_ms)
        partitioned = self._hash_partitioned(self.stream(plan.input), names)
        step = self._add_keyed_operator(partitioned, type(plan).__name__, factory, names, state_identity)
        return step.set_description(physical_first_rows.explain_line(plan, ttl_ms))

    def _hash_partitioned(self, stream: DataStream, names: Sequence[str]) -> DataStream:
        """Send rows with equal keys to the same subtask; without a key send all rows to one."""
        strategy = KeyGroup(KeyBy(KeyColumns(names), graph.call_site(), None)) if names else Global()
        return DataStream(self._env, graph.Partition(stream._transformation, strategy))

    def _add_keyed_operator(
        self, stream: DataStream, name: str, factory: Factory, keys: Sequence[str], state_identity: str = ""
    ) -> DataStream:
        """Add an operator over partitioned rows.

        Args:
            keys: names of the columns by which the rows are partitioned; without any there is one subtask.
            state_identity: describes what the state belongs to, and thereby which operator it is: it decides whether
                state restores into a changed query. Empty: the operator is known by its place in the program.
        """
        step = stream._add_operator(name, factory, None, KeyBy(KeyColumns(keys), graph.call_site(), None))
        step._transformation.identity = state_identity or None
        return step if keys else step.set_parallelism(1)

    def _union(self, plan: Relation) -> DataStream:
        assert isinstance(plan, Union)
        schema = arrow_schema(plan.schema)
        streams = []
        for source in plan.sources:
            stream = self.stream(source)
            if arrow_schema(source.schema) != schema:
                columns = tuple(Column(column.type, index, column.name) for index, column in enumerate(source.schema))
                step = self._calc(stream, None, columns, plan.schema, plan)
                stream = self._keep_parallelism_if_changelog(source, stream, step)
            streams.append(stream)
        return streams[0].union(*streams[1:])

    def _unnest(self, plan: Relation) -> DataStream:
        assert isinstance(plan, Unnest)
        is_multiset = plan.collection.type.root is Root.MULTISET
        factory = Factory(
            UnnestOperator, plan.collection, plan.kept, plan.is_left, is_multiset, plan.has_ordinality,
            arrow_schema(plan.schema), self._session,
        )  # fmt: skip
        stream = self.stream(plan.input)
        step = stream._add_operator("Correlate", factory).set_description(plan.explain_line())
        return self._keep_parallelism_if_changelog(plan.input, stream, step)

    def _to_changelog(self, plan: Relation) -> DataStream:
        assert isinstance(plan, ToChangelog)
        stream = self.stream(plan.input)
        factory = Factory(KindsToStrings, plan.codes, arrow_schema(plan.schema))
        step = self._keep_parallelism_if_changelog(plan.input, stream, stream._add_operator("ToChangelog", factory))
        return step.set_description(plan.explain_line())

    def _from_changelog(self, plan: Relation) -> DataStream:
        """Translate a column to kinds of rows; rows keep the order of their source all the way to here."""
        assert isinstance(plan, FromChangelog)
        self._ordered_changelogs.update(plan.input.walk())
        stream = self.stream(plan.input)
        factory = Factory(StringsToKinds, plan.op, plan.codes, arrow_schema(plan.schema))
        step = self._keep_parallelism_if_changelog(plan.input, stream, stream._add_operator("FromChangelog", factory))
        return step.set_description(plan.explain_line())

    def _join(self, plan: Relation) -> DataStream:
        assert isinstance(plan, KeyedJoin)
        names = [
            [side.names[column] for column in plan.required_distribution(index) or ()]
            for index, side in enumerate(plan.inputs)
        ]
        left, right = (self._hash_partitioned(self.stream(plan.inputs[index]), names[index]) for index in (0, 1))
        keys = [KeyBy(KeyColumns(columns), graph.call_site(), None) for columns in names]
        step = graph.TwoInput(
            left._transformation, right._transformation, join_factory(plan, self._session), *keys,
            name=type(plan).__name__, identity=" with ".join(side_identity(plan, index) for index in (0, 1)),
        )  # fmt: skip
        self._env.add(step)
        stream = DataStream(self._env, step).set_description(plan.explain_line())
        return stream if all(names) else stream.set_parallelism(1)

    def _broadcast_join(self, plan: Relation) -> DataStream:
        assert isinstance(plan, BroadcastJoin)
        sides = [self.stream(side)._transformation for side in plan.inputs]
        sides[plan.small] = graph.Partition(sides[plan.small], Broadcast())
        step = graph.TwoInput(sides[0], sides[1], join_factory(plan, self._session), name="BroadcastJoin")
        self._env.add(step)
        return DataStream(self._env, step).set_description(plan.explain_line())

    def _refused_join(self, plan: Relation) -> DataStream:
        assert isinstance(plan, Join)
        raise refused(plan)

    def _sort(self, plan: Relation) -> DataStream:
        """Sort in one subtask; with a limit, each subtask before it forwards at most that many rows."""
        assert isinstance(plan, Sort)
        stream, name = self.stream(plan.input), "Sort" if plan.keys else "Limit"
        if plan.limit is not None:  # each subtask drops rows that cannot be in the result
            most = plan.offset + plan.limit
            local = Factory(SortOperator, plan.keys, 0, most) if plan.keys else Factory(LocalLimitOperator, 0, most)
            stream = stream._add_operator(f"Local{name}", local).set_description(plan.explain_line())
        partitioned = DataStream(self._env, graph.Partition(stream._transformation, Global()))
        ordered = Factory(SortOperator, plan.keys, plan.offset, plan.limit)
        factory = ordered if plan.keys else Factory(LimitOperator, plan.offset, plan.limit)
        step = partitioned._add_operator(name, factory).set_parallelism(1).set_description(plan.explain_line())
        step._transformation.identity = None if plan.keys else f"first of {rows_of(plan.input)}"
        if plan.limit is not None and not plan.keys:
            self.limits.add(step._transformation.id)
        return step

    def _rank(self, plan: Relation) -> DataStream:
        """Number the rows of whole tables: all of them, or the first ones of each key."""
        assert isinstance(plan, Rank)
        if not plan.is_whole:
            raise physical_ranks.refused(plan)
        if plan.last is not None:
            return self._first_rows(plan, *physical_ranks.first_rows(plan))
        names = [f"c{index}" for index in range(len(plan.input.schema))]
        columns = [plan.input.column(index) for index in range(len(names))]
        named = tuple(replace(column, name=name) for column, name in zip(plan.input.schema, names, strict=True))
        keys = [names[key] for key in plan.partition]
        partitioned = self._hash_partitioned(self._calc(self.stream(plan.input), None, columns, named, plan), keys)
        factory = Factory(RowNumbers, plan.partition, plan.keys, arrow_schema(plan.schema))
        return self._add_keyed_operator(partitioned, "Rank", factory, keys).set_description(plan.explain_line())

    def _window_rank(self, plan: Relation) -> DataStream:
        assert isinstance(plan, WindowRank)
        inner = plan.input.schema[plan.bounds[0]].windowing
        assert inner is not None
        time_type = DataTypes.TIMESTAMP_LTZ(3) if inner.by_local_time else DataTypes.TIMESTAMP(3)
        window = attached_windows(plan.bounds, inner, time_type, self._session.zone)
        return self._first_rows(plan, *physical_ranks.first_rows_of_windows(plan, window))

    def _first_rows(self, plan: Rank, ranking: Ranking, factory: Factory) -> DataStream:
        name, line = type(plan).__name__, plan.explain_line()
        local = self.stream(plan.input)._add_operator(f"Local{name}", Factory(LocalRank, ranking))
        partitioned = self._hash_partitioned(local.set_description(line), ranking.key_names)
        step = self._add_keyed_operator(partitioned, name, factory, ranking.key_names, ranking.state_identity)
        return step.set_description(line)

    _PLANNERS: ClassVar[dict[type, Callable[[Any, Relation], DataStream]]] = {
        Scan: _scan,
        WatermarkAssigner: _watermarks,
        Values: _values,
        Project: _rows,
        Filter: _rows,
        WindowTable: _window_table,
        WindowAggregate: _window_aggregate,
        GroupAggregate: _group_aggregate,
        Union: _union,
        Unnest: _unnest,
        ToChangelog: _to_changelog,
        FromChangelog: _from_changelog,
        Join: _refused_join,
        KeyedJoin: _join,
        BroadcastJoin: _broadcast_join,
        WindowJoin: _join,
        IntervalJoin: _join,
        Sort: _sort,
        Rank: _rank,
        Deduplicate: _first_of_keys,
        WindowRank: _window_rank,
    }


def _identify(step: graph.Transformation, identity: str, newest: int) -> None:
    """Name the table of the sources in a step; those up to the id `newest` are the user's own and stay as they are."""
    if step.id > newest:
        if isinstance(step, graph.Source):
            step.identity = identity
        for below in step.inputs:
            _identify(below, identity, newest)


def width_of(step: graph.Transformation) -> int | None:
    """Return the parallelism of a step, of a union that of all inputs; None: the program's, or they differ."""
    if isinstance(step, graph.Union):
        widths = {width_of(below) for below in step.inputs}
        return widths.pop() if len(widths) == 1 else None
    return width_of(step.inputs[0]) if isinstance(step, graph.SideOutput) else step.parallelism


def _one_phase(spec: WindowSpec) -> Any:
    return SessionWindowAggregate if spec.kind is WindowKind.SESSION else OnePhaseWindowAggregate


__all__ = ["PhysicalPlanner", "PlannerSettings", "width_of"]
