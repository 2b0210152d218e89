"""From a logical plan to the steps of a stream program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from rayflink.common.functions.function_classes import KeyBy
from rayflink.common.options.registry import NotNullEnforcer, TypeLengthEnforcer
from rayflink.common.time import Duration
from rayflink.datastream.streams.stream import DataStream
from rayflink.graph import transformations as graph
from rayflink.graph.boundedness import endless_source
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
from ..plan.lineage import aggregation_of, lineage, rows_of
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
    Windowing,
    WindowKind,
    WindowTable,
)
from ..plan.op_columns import FromChangelog, ToChangelog
from ..plan.ranks import Deduplicate, Rank, WindowRank
from ..plan.typed import Column, Expr, Literal, Session
from ..runtime.aggregates.window_spec import WindowAggregation, WindowSpec
from ..runtime.aggregates.window_spec import WindowKind as SpecKind
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
from ..runtime.windows.global_window import GlobalWindowAggregate
from ..runtime.windows.global_window import WindowAggregate as WholeWindowAggregate
from ..runtime.windows.local_window import LocalWindowAggregate
from ..runtime.windows.session_table import SessionTable
from ..runtime.windows.session_window import SessionWindowAggregate
from ..runtime.windows.window_table import WindowTableOperator
from ..types import MOST_LENGTH, DataType, DataTypes, Root
from . import physical_first_rows, physical_groups, physical_ranks
from .physical_joins import join_factory, refused, side_of

if TYPE_CHECKING:
    from rayflink.common.watermarks import WatermarkStrategy
    from rayflink.datastream import StreamExecutionEnvironment


@dataclass(frozen=True)
class PlannerSettings:
    """How plans become steps.

    Args:
        two_phase: aggregate before rows are dealt, too.
        reuse_plans: what parts have in common is computed once.
        reuse_sources: tables, too.
        idle_timeout_ms: a source without rows for so long does not hold event time back; 0: it does.
        not_null: what becomes of NULL where a table has none.
        type_length: what becomes of strings of another length than their column's.
        state_ttl_ms: how long state is kept that is not used and has no end of its own; 0: for ever.
    """

    two_phase: bool = True
    reuse_plans: bool = True
    reuse_sources: bool = True
    idle_timeout_ms: int = 0
    not_null: NotNullEnforcer = NotNullEnforcer.ERROR
    type_length: TypeLengthEnforcer = TypeLengthEnforcer.IGNORE
    state_ttl_ms: int = 0

    def reuses(self, plan: Relation) -> bool:
        """Whether a relation that is there twice becomes steps once."""
        if not self.reuse_plans or isinstance(plan, Sink):
            return False
        return plan.is_repeatable and (self.reuse_sources or not isinstance(plan, Scan))


class PhysicalPlanner:
    """Writes the steps of plans into an environment; a relation that is used twice becomes steps once.

    Args:
        env: whose program it becomes part of.
        session: what evaluation depends on besides rows.
        settings: how it is done.
    """

    def __init__(
        self, env: StreamExecutionEnvironment, session: Session, settings: PlannerSettings | None = None
    ) -> None:
        self._env, self._session, self._settings = env, session, settings or PlannerSettings()
        self._made: dict[Relation, DataStream] = {}
        self._timed: dict[tuple[Relation, Expr, Expr], DataStream] = {}
        """Tables with their watermarks, by these."""
        self._changing: dict[Relation, Change] = {}
        self.limits: set[int] = set()
        """Ids of steps that end what they get rows from."""
        self._told_in_order: set[Relation] = set()
        """Relations whose rows say by a column that they change others."""

    def stream(self, plan: Relation) -> DataStream:
        """A stream of Arrow batches with the columns of the plan.

        Raises:
            SqlError: something of it cannot be run.
        """
        known = self._made.get(plan)
        if known is None:
            known = self._PLANNERS[type(plan)](self, plan)
            if self._settings.reuses(plan):
                self._made[plan] = known
        return known

    def write(self, plan: Sink) -> Any:
        """Let the rows of a query go into a table; returns the last step."""
        stream = self._constrained(plan, self.stream(plan.input))
        step = self._beside(plan.input, stream, plan.sink.attach(stream, f"Sink: {plan.path[-1]}"))
        if isinstance(step._transformation, graph.Sink):
            step._transformation.identity = f"into {'.'.join(plan.path)}"
        return step

    def _constrained(self, plan: Sink, stream: DataStream) -> DataStream:
        """The rows that the table takes."""
        pairs = list(enumerate(zip(plan.declared, plan.input.schema, strict=True))) if plan.declared else []
        not_null = [at for at, (kind, one) in pairs if one.type.is_nullable and not kind.is_nullable]
        mode = self._settings.type_length
        lengths: list[Length] = []
        if mode is not TypeLengthEnforcer.IGNORE:
            mends = mode is TypeLengthEnforcer.TRIM_PAD
            sized = [(at, kind) for at, (kind, _) in pairs if kind.is_text or kind.is_bytes]
            lengths = [Length(at, kind.length, kind.root in (Root.CHAR, Root.BINARY), mends) for at, kind in sized
                       if kind.length < MOST_LENGTH]  # fmt: skip
        if not (not_null or lengths):
            return stream
        drops = self._settings.not_null is NotNullEnforcer.DROP
        factory = Factory(ConstraintOperator, ".".join(plan.path), plan.input.names, not_null, drops, lengths)
        about = f"ConstraintEnforcer(NotNull=[{', '.join(plan.input.names[at] for at in not_null)}])"
        made = stream._one_input("ConstraintEnforcer", factory).set_description(about)
        beside: DataStream = self._beside(plan.input, stream, made)
        return beside

    def _beside(self, below: Relation, stream: DataStream, made: Any) -> Any:
        """The step with as many subtasks as the one before it, where rows change: so changes of a row stay in order.

        Source: apache/flink ExecNode: steps without state have the parallelism of their input.
        """
        if below in self._told_in_order or self._changes(below) not in (Change.INSERT, Change.NONE):
            width = width_of(stream._transformation)
            if width is not None and made._transformation.parallelism is None:
                made.set_parallelism(width)
        return made

    def _changes(self, plan: Relation) -> Change:
        known = self._changing.get(plan)
        if known is None:
            known = self._changing[plan] = plan.gives_changes([self._changes(one) for one in plan.inputs])
        return known

    # steps

    def _scan(self, plan: Relation, strategy: Any = None) -> DataStream:
        assert isinstance(plan, Scan)
        newest = graph.next_id()
        source = plan.source.in_order() if plan in self._told_in_order else plan.source
        stream: DataStream = source.stream(self._env, strategy, plan.known_path[-1])
        if is_batch(self._env.get_configuration()) and endless_source([stream._transformation]) is not None:
            problem = f"{plan.explain_line()} has no end, and in batch mode a query sees all rows of its tables"
            remedy = "run it in streaming mode, or give the table an end, as by 'number-of-rows' of datagen"
            raise SqlError(problem, remedy, "", plan.place)
        if len(plan.path) > 1 and plan.is_named:
            _identify(stream._transformation, f"from {'.'.join(plan.path)}", newest)
        return stream.set_description(plan.explain_line())

    def _watermarks(self, plan: Relation) -> DataStream:
        """Watermarks are made where the source's splits are told apart: the expression is over the source's columns."""
        assert isinstance(plan, WatermarkAssigner)
        below, expression, time = plan.input, plan.expression, plan.input.column(plan.time)
        exprs: tuple[Expr, ...] | None = None
        if isinstance(below, Project):
            exprs = below.exprs
            expression, time, below = inlined(expression, exprs), inlined(time, exprs), below.input  # type: ignore[assignment]
        if not isinstance(below, Scan):
            raise SqlError("a watermark on what is no table", "declare it where the table is created")
        own = isinstance(expression, Literal)  # SOURCE_WATERMARK()
        if not (is_movable(expression) and is_movable(time)):
            return self._watermarks_of_moments(plan)
        key = (below, expression, time)
        stream = self._timed.get(key)
        if stream is None:
            strategy = watermark_strategy(expression, time, self._session)
            stream = self._scan(below, None if own else self._with_idleness(strategy))
            if self._settings.reuses(below):
                self._timed[key] = stream
        if exprs is None:
            return stream
        made: DataStream = self._beside(below, stream, self._calc(stream, None, exprs, plan.schema, plan))
        return made

    def _with_idleness(self, strategy: WatermarkStrategy) -> WatermarkStrategy:
        timeout_ms = self._settings.idle_timeout_ms
        return strategy.with_idleness(Duration.of_millis(timeout_ms)) if timeout_ms else strategy

    def _watermarks_of_moments(self, plan: WatermarkAssigner) -> DataStream:
        """What gives another value each time is computed once: the watermark is about the times that rows show."""
        columns = tuple(plan.input.column(at) for at in range(len(plan.schema)))
        marked = (*plan.schema, Attribute("$watermark", plan.expression.type))
        with_mark = Project(marked, plan.input, (*columns, plan.expression))
        mark = with_mark.column(len(columns))
        strategy = self._with_idleness(watermark_strategy(mark, columns[plan.time], self._session))
        stream = self.stream(with_mark)
        stream = self._beside(with_mark, stream, stream.assign_timestamps_and_watermarks(strategy))
        made: DataStream = self._beside(with_mark, stream, self._calc(stream, None, columns, plan.schema, plan))
        return made

    def _values(self, plan: Relation) -> DataStream:
        import pyarrow

        assert isinstance(plan, Values)
        schema = arrow_schema(plan.schema)
        if not schema.names:  # SELECT without FROM: one row
            schema = pyarrow.schema([("nothing", pyarrow.int8())])
            table = pyarrow.table({"nothing": pyarrow.nulls(len(plan.rows), pyarrow.int8())})
        else:
            columns = [pyarrow.array([row[at] for row in plan.rows], field.type) for at, field in enumerate(schema)]
            table = pyarrow.Table.from_arrays(columns, schema=schema)
        return HeldTable(table).stream(self._env, None, "Values")

    def _rows(self, plan: Relation) -> DataStream:
        """Project and Filter, as one step."""
        condition: Expr | None = None
        exprs: Sequence[Expr] = ()
        below = plan
        if isinstance(below, Project):
            exprs, below = below.exprs, below.input
        if isinstance(below, Filter):
            condition, below = below.condition, below.input
        stream = self.stream(below)
        made: DataStream = self._beside(below, stream, self._calc(stream, condition, exprs, plan.schema, plan))
        return made.set_parallelism(1) if isinstance(below, Sort) else made  # several subtasks would mix the order up

    def _calc(self, stream: DataStream, condition: Expr | None, exprs: Sequence[Expr], schema: Schema,
              plan: Relation) -> DataStream:  # fmt: skip
        factory = Factory(CalcOperator, condition, tuple(exprs), arrow_schema(schema), self._session)
        about = calc_text(plan)[0] if isinstance(plan, (Project, Filter)) else plan.explain_line()
        return stream._one_input("Calc", factory).set_description(about)

    def _window_table(self, plan: Relation) -> DataStream:
        assert isinstance(plan, WindowTable)
        if plan.windowing.kind is WindowKind.SESSION:
            return self._session_table(plan)
        factory = Factory(WindowTableOperator, plan.windowing, arrow_schema(plan.schema), self._session)
        return self.stream(plan.input)._one_input("WindowTableFunction", factory).set_description(plan.explain_line())

    def _session_table(self, plan: WindowTable) -> DataStream:
        keys = plan.windowing.partition
        names = [plan.input.names[at] for at in keys]
        spec = self._windows(plan.windowing, plan.schema[-1].type)
        of = f"{rows_of(plan.input, keys)} in sessions by {lineage(plan.input, plan.windowing.time)}"
        factory = Factory(SessionTable, physical_ranks.row_of(plan.input), keys, spec, arrow_schema(plan.schema), of)
        dealt = self._dealt(self.stream(plan.input), names)
        return self._one(dealt, "WindowTableFunction", factory, names, of).set_description(plan.explain_line())

    def _window_aggregate(self, plan: Relation) -> DataStream:
        assert isinstance(plan, WindowAggregate)
        aggregation = self._aggregation(plan)
        stream = self.stream(plan.input)
        about = plan.explain_line()
        spec = aggregation.window
        if not plan.has_local_phase or not self._settings.two_phase:
            names = [plan.input.names[at] for at in plan.grouping]
            dealt = self._dealt(stream, names)
            factory = Factory(_whole(spec), aggregation)
            if plan.emission is not None:
                factory = Factory(EmittingWindowAggregate, aggregation, plan.emission)
            return self._one(dealt, "WindowAggregate", factory, names, aggregation.of).set_description(about)
        local = stream._one_input("LocalWindowAggregate", Factory(LocalWindowAggregate, aggregation))
        names = list(aggregation.key_names)
        dealt = self._dealt(local.set_description(about), names)
        factory = Factory(GlobalWindowAggregate, aggregation)
        made = self._one(dealt, "GlobalWindowAggregate", factory, names, aggregation.of)
        return made.set_description(about)

    def _group_aggregate(self, plan: Relation) -> DataStream:
        assert isinstance(plan, GroupAggregate)
        if not plan.is_whole:
            return self._first_of_keys(plan)
        names, local, whole = physical_groups.phases(plan)
        if plan.is_one_phase:
            keys = [plan.input.names[at] for at in plan.grouping]
            partial = self._one(self._dealt(self.stream(plan.input), keys), "LocalGroupAggregate", local, keys)
            aggregated = partial._one_input("GroupAggregate", whole).set_description(plan.explain_line())
            return aggregated if keys else aggregated.set_parallelism(1)
        partial = self.stream(plan.input)._one_input("LocalGroupAggregate", local).set_description(plan.explain_line())
        dealt = self._dealt(partial, names)
        return self._one(dealt, "GroupAggregate", whole, names).set_description(plan.explain_line())

    def _first_of_keys(self, plan: Relation) -> DataStream:
        assert isinstance(plan, GroupAggregate | Deduplicate)
        names = [plan.input.names[at] for at in physical_first_rows.keys_of(plan)]
        ttl_ms = physical_first_rows.ttl_of(plan, self._settings.state_ttl_ms)
        factory, of = physical_first_rows.first_of_keys(plan, ttl_ms)
        made = self._one(self._dealt(self.stream(plan.input), names), type(plan).__name__, factory, names, of)
        return made.set_description(physical_first_rows.explain_line(plan, ttl_ms))

    def _dealt(self, stream: DataStream, names: Sequence[str]) -> DataStream:
        """Rows of equal keys to the same subtask; without a key all to one."""
        strategy = KeyGroup(KeyBy(KeyColumns(names), graph.call_site(), None)) if names else Global()
        return DataStream(self._env, graph.Partition(stream._transformation, strategy))

    def _one(self, stream: DataStream, name: str, factory: Factory, keys: Sequence[str], of: str = "") -> DataStream:
        """An operator that is dealt rows; `of` says what its state is of, and so which operator it is."""
        made = stream._one_input(name, factory, None, KeyBy(KeyColumns(keys), graph.call_site(), None))
        made._transformation.identity = of or None
        return made if keys else made.set_parallelism(1)

    def _aggregation(self, plan: WindowAggregate) -> WindowAggregation:
        calls = physical_groups.aggregates_of(plan.calls)
        names = [f"c{at}" for at in range(len(plan.grouping) + len(calls))]
        row, of = physical_ranks.row_of(plan.input), aggregation_of(plan)
        return WindowAggregation(row, plan.grouping, calls, self._spec(plan), tuple(names), of)

    def _spec(self, plan: WindowAggregate) -> WindowSpec:
        time_type = plan.schema[-1].type
        if plan.windowing is not None:
            return self._windows(plan.windowing, time_type)
        assert plan.bounds is not None
        inner = plan.input.schema[plan.bounds[0]].windowing
        assert inner is not None
        return self._attached(plan.bounds, inner, time_type)

    def _windows(self, windowing: Windowing, time_type: DataType) -> WindowSpec:
        """Windows into which rows are put."""
        session = windowing.kind is WindowKind.SESSION
        return WindowSpec(
            SpecKind(windowing.kind.value),
            size_ms=0 if session else windowing.size_ms,
            slide_ms=windowing.slide_ms,
            offset_ms=windowing.offset_ms,
            gap_ms=windowing.size_ms if session else 0,
            time_column=windowing.time if windowing.is_event_time else None,
            zone=self._session.zone,
            time_type=time_type,
            is_event_time=windowing.is_event_time,
        )

    def _attached(self, bounds: tuple[int, int], inner: Windowing, time_type: DataType) -> WindowSpec:
        """Windows in which rows are already."""
        return WindowSpec(
            SpecKind.TUMBLE,
            size_ms=inner.size_ms if inner.kind is not WindowKind.SESSION else 1,
            start_column=bounds[0],
            end_column=bounds[1],
            zone=self._session.zone,
            time_type=time_type,
            is_event_time=inner.is_event_time,
        )

    def _union(self, plan: Relation) -> DataStream:
        assert isinstance(plan, Union)
        schema = arrow_schema(plan.schema)
        streams = []
        for one in plan.sources:
            stream = self.stream(one)
            if arrow_schema(one.schema) != schema:
                columns = tuple(Column(kind.type, at, kind.name) for at, kind in enumerate(one.schema))
                stream = self._beside(one, stream, self._calc(stream, None, columns, plan.schema, plan))
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
        made = stream._one_input("Correlate", factory).set_description(plan.explain_line())
        beside: DataStream = self._beside(plan.input, stream, made)
        return beside

    def _to_changelog(self, plan: Relation) -> DataStream:
        assert isinstance(plan, ToChangelog)
        stream = self.stream(plan.input)
        factory = Factory(KindsToStrings, plan.codes, arrow_schema(plan.schema))
        made: DataStream = self._beside(plan.input, stream, stream._one_input("ToChangelog", factory))
        return made.set_description(plan.explain_line())

    def _from_changelog(self, plan: Relation) -> DataStream:
        """Rows stay in the order in which they are told from their source on."""
        assert isinstance(plan, FromChangelog)
        self._told_in_order.update(plan.input.walk())
        stream = self.stream(plan.input)
        factory = Factory(StringsToKinds, plan.op, plan.codes, arrow_schema(plan.schema))
        made: DataStream = self._beside(plan.input, stream, stream._one_input("FromChangelog", factory))
        return made.set_description(plan.explain_line())

    def _join(self, plan: Relation) -> DataStream:
        assert isinstance(plan, KeyedJoin)
        names = [
            [side.names[one] for one in plan.required_distribution(at) or ()] for at, side in enumerate(plan.inputs)
        ]
        left, right = (self._dealt(self.stream(side), own) for side, own in zip(plan.inputs, names, strict=True))
        keys = [KeyBy(KeyColumns(own), graph.call_site(), None) for own in names]
        step = graph.TwoInput(
            left._transformation, right._transformation, join_factory(plan, self._session), *keys,
            name=type(plan).__name__, identity=" with ".join(side_of(plan, at) for at in (0, 1)),
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
        """Of a limited number of rows, each subtask gives so many at most."""
        assert isinstance(plan, Sort)
        stream, name = self.stream(plan.input), "Sort" if plan.keys else "Limit"
        if plan.limit is not None:  # each subtask leaves out what none of the result can be
            most = plan.offset + plan.limit
            local = Factory(SortOperator, plan.keys, 0, most) if plan.keys else Factory(LocalLimitOperator, 0, most)
            stream = stream._one_input(f"Local{name}", local).set_description(plan.explain_line())
        dealt = DataStream(self._env, graph.Partition(stream._transformation, Global()))
        ordered = Factory(SortOperator, plan.keys, plan.offset, plan.limit)
        factory = ordered if plan.keys else Factory(LimitOperator, plan.offset, plan.limit)
        made = dealt._one_input(name, factory).set_parallelism(1).set_description(plan.explain_line())
        made._transformation.identity = None if plan.keys else f"first of {rows_of(plan.input)}"
        if plan.limit is not None and not plan.keys:
            self.limits.add(made._transformation.id)
        return made

    def _rank(self, plan: Relation) -> DataStream:
        """All rows of whole tables with their numbers, or the first of each key."""
        assert isinstance(plan, Rank)
        if not plan.is_whole:
            raise physical_ranks.refused(plan)
        if plan.last is not None:
            return self._first_rows(plan, *physical_ranks.first_rows(plan))
        names = [f"c{at}" for at in range(len(plan.input.schema))]
        columns = [plan.input.column(at) for at in range(len(names))]
        named = tuple(replace(one, name=name) for one, name in zip(plan.input.schema, names, strict=True))
        keys = [names[at] for at in plan.partition]
        dealt = self._dealt(self._calc(self.stream(plan.input), None, columns, named, plan), keys)
        factory = Factory(RowNumbers, plan.partition, plan.keys, arrow_schema(plan.schema))
        return self._one(dealt, "Rank", factory, keys).set_description(plan.explain_line())

    def _window_rank(self, plan: Relation) -> DataStream:
        assert isinstance(plan, WindowRank)
        inner = plan.input.schema[plan.bounds[0]].windowing
        assert inner is not None
        time_type = DataTypes.TIMESTAMP_LTZ(3) if inner.by_local_time else DataTypes.TIMESTAMP(3)
        window = self._attached(plan.bounds, inner, time_type)
        return self._first_rows(plan, *physical_ranks.first_rows_of_windows(plan, window))

    def _first_rows(self, plan: Rank, ranking: Ranking, factory: Factory) -> DataStream:
        name, about = type(plan).__name__, plan.explain_line()
        local = self.stream(plan.input)._one_input(f"Local{name}", Factory(LocalRank, ranking)).set_description(about)
        dealt = self._dealt(local, ranking.key_names)
        return self._one(dealt, name, factory, ranking.key_names, ranking.of).set_description(about)

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
    """Say of what table the sources of a step are that were made behind another; a user's own stay what they are."""
    if step.id > newest:
        if isinstance(step, graph.Source):
            step.identity = identity
        for one in step.inputs:
            _identify(one, identity, newest)


def width_of(step: graph.Transformation) -> int | None:
    """The subtasks of a step, of a union those of all; None: as many as the program says, or they are mixed anyway."""
    if isinstance(step, graph.Union):
        widths = {width_of(one) for one in step.inputs}
        return widths.pop() if len(widths) == 1 else None
    return width_of(step.inputs[0]) if isinstance(step, graph.SideOutput) else step.parallelism


def _whole(spec: WindowSpec) -> Any:
    return SessionWindowAggregate if spec.kind is SpecKind.SESSION else WholeWindowAggregate


__all__ = ["PhysicalPlanner", "PlannerSettings", "width_of"]
