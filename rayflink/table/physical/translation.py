"""The state of a translation from plans to steps, and the steps that several families of relations need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from rayflink.common.options.option_types import DURATION
from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.graph.transformations import next_id
from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..plan.async_steps import awaits
from ..plan.changelog import Change, ChangelogModes
from ..plan.explain_steps import calc_text
from ..plan.groups import GroupAggregate
from ..plan.joins import StreamJoin
from ..plan.logical import Filter, Project, Relation, Schema, Sink, length_text
from ..plan.multi_joins import MultiJoin
from ..plan.op_columns import FromChangelog
from ..plan.typed import Expr, Session
from ..runtime.async_calc import AsyncCalcOperator
from ..runtime.calc import CalcOperator
from ..runtime.key_columns import columns_key
from ..types import DataType, DataTypes
from .async_steps import async_steps
from .operator_pins import Span
from .planner_settings import PlannerSettings

if TYPE_CHECKING:
    from rayflink.datastream import StreamExecutionEnvironment


class Translation:
    """Plans on their way to steps of one stream program; a relation that occurs twice is translated once.

    Args:
        env: the environment whose program gets the steps.
        session: the settings that evaluation depends on, such as the time zone.
        settings: how plans are translated.
        translate: adds the steps of one relation, after those of its inputs; see `physical_planner`.
        plans: all that are translated; what they share has to fit each of them.
        modes: of the steps; None: all updates include the row before.
    """

    def __init__(
        self, env: StreamExecutionEnvironment, session: Session, settings: PlannerSettings, translate: Translate,
        plans: Iterable[Relation], modes: ChangelogModes | None = None,
    ) -> None:  # fmt: skip
        self.env, self.session, self.settings, self._translate = env, session, settings, translate
        self._modes = modes
        self.limits: set[int] = set()
        """Ids of the steps that end their inputs."""
        self.scans_with_watermarks: dict[tuple[Relation, Expr, Expr], StreamBuilder] = {}
        """Tables with their watermarks, by table, watermark expression and time."""
        self.ordered_changelogs = _ordered_changelogs(plans)
        """Relations whose rows are a changelog by one of their columns, so that their order counts."""
        self.uids: dict[str, Relation] = {}
        """Calls of process table functions by what identifies their state."""
        self.spans: list[Span] = []
        """The steps that were added for each relation."""
        self._streams: dict[Relation, StreamBuilder] = {}
        self._changes: dict[Relation, Change] = {}

    def stream(self, plan: Relation) -> StreamBuilder:
        """Translate a relation to a stream of Arrow batches with its columns.

        Raises:
            SqlError: part of the plan cannot be run.
        """
        stream = self._streams.get(plan)
        if stream is None:
            first = next_id()
            stream = self._translate(self, plan)
            self.spans.append(Span(plan, first, next_id()))
            if self.settings.reuses(plan):
                self._streams[plan] = stream
        return stream

    def changes(self, plan: Relation) -> Change:
        """Return the changes that the rows of a relation go through."""
        changes = self._changes.get(plan)
        if changes is None:
            changes = self._changes[plan] = plan.gives_changes([self.changes(below) for below in plan.inputs])
        return changes

    def wants_before(self, plan: Relation) -> bool:
        """Return whether updates of the rows of a relation must include the row before."""
        return self._modes is None or self._modes.wants_before(plan)

    def is_order_kept(self, plan: Relation) -> bool:
        """Return whether steps without state keep the parallelism of this input, so that changes stay in order."""
        return plan in self.ordered_changelogs or self.changes(plan) not in (Change.INSERT, Change.NONE)

    def keep_order(self, below: Relation, stream: StreamBuilder, step: StreamBuilder) -> StreamBuilder:
        """Give a step the parallelism of its input where rows change; see `is_order_kept`."""
        return step.keep_parallelism(stream) if self.is_order_kept(below) else step

    def ttl_ms(self, plan: Relation) -> int:
        """Return how long state of a relation is kept that is not used, in milliseconds; 0: for ever."""
        hint = plan.ttl if isinstance(plan, GroupAggregate) else None
        return self.settings.state_ttl_ms if hint is None else DURATION.read(hint[1]).to_millis()

    def side_ttl_ms(self, plan: StreamJoin | MultiJoin, index: int) -> int:
        """Return the same of the rows of one side of a join, by its number."""
        hint = plan.ttls[index]
        return self.settings.state_ttl_ms if hint is None else DURATION.read(hint[1]).to_millis()

    # steps

    def add_calc(
        self, stream: StreamBuilder, condition: Expr | None, exprs: Sequence[Expr], schema: Schema, plan: Relation
    ) -> StreamBuilder:
        """Add a step that filters rows and computes columns.

        Args:
            condition: keeps the rows for which it is true; None: all.
            exprs: the columns of the result; none: those of the input.
            schema: the columns of the result.
            plan: the relation that EXPLAIN shows.
        """
        is_calc = isinstance(plan, (Project, Filter))
        line, below = calc_text(plan) if is_calc else (plan.explain_line(), plan.inputs[0])
        if awaits(condition) or any(map(awaits, exprs)):
            columns = tuple(exprs) or tuple(below.column(index) for index in range(len(below.schema)))
            steps = async_steps(condition, columns, len(below.schema))
            settings = self.settings.async_scalars, self.settings.async_tables
            factory = Factory(AsyncCalcOperator, steps, arrow_schema(schema), self.session, *settings)
            return stream.add_operator("AsyncCalc", factory).set_description(line)
        factory = Factory(CalcOperator, condition, tuple(exprs), arrow_schema(schema), self.session)
        return stream.add_operator("Calc", factory).set_description(line)


Translate: TypeAlias = Callable[[Translation, Relation], StreamBuilder]


def _ordered_changelogs(plans: Iterable[Relation]) -> set[Relation]:
    """Return what is below tables that are written by a key, and below columns that say what rows do."""
    ordered = set[Relation]()
    for plan in plans:
        for node in plan.walk():
            if isinstance(node, FromChangelog) or (isinstance(node, Sink) and node.sink.row_key):
                ordered.update(node.input.walk())
    return ordered


def hash_partition(stream: StreamBuilder, names: Sequence[str]) -> StreamBuilder:
    """Send rows with equal values in the named columns to the same subtask; without columns send all rows to one."""
    return stream.hash_partition(columns_key(names)) if names else stream.single_partition()


def add_keyed_operator(
    stream: StreamBuilder, name: str, factory: Factory, keys: Sequence[str], state_identity: str = ""
) -> StreamBuilder:
    """Add an operator over partitioned rows.

    Args:
        keys: names of the columns by which the rows are partitioned; without any there is one subtask.
        state_identity: describes what the state belongs to, and thereby which operator it is: it decides whether
            state restores into a changed query. Empty: the operator is known by its place in the program.
    """
    step = stream.add_operator(name, factory, columns_key(keys), state_identity or None)
    return step if keys else step.set_parallelism(1)


def line_with_ttl(line: str, ttl_ms: int) -> str:
    """Return a line of a plan with the time to live of its state.

    Args:
        ttl_ms: 0: the state does not expire.
    """
    return f"{line[:-1]}, stateTtl=[{length_text(ttl_ms)}])" if ttl_ms else line


def row_type(relation: Relation) -> DataType:
    """Return the type of the relation's rows, with the columns named f0, f1, ..."""
    columns = enumerate(relation.schema)
    return DataTypes.ROW([DataTypes.FIELD(f"f{index}", column.type) for index, column in columns])


__all__ = ["Translate", "Translation", "add_keyed_operator", "hash_partition", "line_with_ttl", "row_type"]
