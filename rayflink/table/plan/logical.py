"""The logical plan: what a query means, as a frozen tree of relations with the columns of each.

A column may have a part in time: it is an event or processing time attribute, or the bounds of the windows to which its
rows belong. Rules and the planner ask for that instead of looking at names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from ..definitions import TableDefinition
from ..types import DataType
from .aggregate_call import AggregateCall
from .changelog import Change
from .conflicts import OnConflict
from .scan_abilities import ScanAbility
from .typed import Call, Column, Expr, Literal, Place


class TimePart(Enum):
    """The part that a column has in time."""

    ROWTIME = "rowtime"
    PROCTIME = "proctime"
    WINDOW_START = "window_start"
    WINDOW_END = "window_end"
    WINDOW_TIME = "window_time"


class WindowKind(Enum):
    """The windowing table functions."""

    TUMBLE = "TUMBLE"
    HOP = "HOP"
    CUMULATE = "CUMULATE"
    SESSION = "SESSION"


@dataclass(frozen=True)
class Windowing:
    """The assignment of rows to windows; lengths in milliseconds.

    Args:
        size_ms: size of a window; the greatest size of CUMULATE; the gap of SESSION.
        slide_ms: slide of HOP; step of CUMULATE.
        time: number of the time attribute's column.
        partition: numbers of the columns that partition sessions.
        by_local_time: windows are aligned in the session's time zone, as the time attribute is TIMESTAMP_LTZ.
    """

    kind: WindowKind
    size_ms: int
    slide_ms: int = 0
    offset_ms: int = 0
    time: int = 0
    is_event_time: bool = True
    partition: tuple[int, ...] = ()
    by_local_time: bool = False

    def describe(self, names: Sequence[str]) -> str:
        """Return the windows as EXPLAIN shows them."""
        parts = [f"time_col=[{names[self.time]}]" if self.time < len(names) else "time_col=[?]"]
        if self.kind is WindowKind.SESSION:
            parts.append(f"gap=[{length_text(self.size_ms)}]")
            if self.partition:
                parts.append(f"partition keys=[{', '.join(names[index] for index in self.partition)}]")
        elif self.kind is WindowKind.TUMBLE:
            parts.append(f"size=[{length_text(self.size_ms)}]")
        elif self.kind is WindowKind.HOP:
            parts += [f"size=[{length_text(self.size_ms)}]", f"slide=[{length_text(self.slide_ms)}]"]
        else:
            parts += [f"max_size=[{length_text(self.size_ms)}]", f"step=[{length_text(self.slide_ms)}]"]
        if self.offset_ms:
            parts.append(f"offset=[{length_text(self.offset_ms)}]")
        return f"{self.kind.value}({', '.join(parts)})"

    def describe_without_time(self) -> str:
        """Return the windows as EXPLAIN shows them, without their time column."""
        described = replace(self, time=0, partition=()).describe(["time"]).replace("time_col=[time], ", "")
        return f"{described} of local time" if self.by_local_time else described


def length_text(length_ms: int) -> str:
    """Return a length of time as Flink's plans write it.

    >>> length_text(90_000), length_text(3_600_000), length_text(1_500)
    ('90 s', '1 h', '1500 ms')
    """
    for unit, text in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")):
        if length_ms and length_ms % unit == 0:
            return f"{length_ms // unit} {text}"
    return f"{length_ms} ms"


@dataclass(frozen=True)
class Attribute:
    """A column of a relation.

    Args:
        part: its role in time; None for an ordinary column.
        windowing: the windows of which a column with such a role is a bound.
    """

    name: str
    type: DataType
    part: TimePart | None = None
    windowing: Windowing | None = field(default=None, compare=False)

    @property
    def is_time(self) -> bool:
        """Return whether the column is a time attribute, by which rows can be assigned to windows."""
        return self.part in (TimePart.ROWTIME, TimePart.PROCTIME, TimePart.WINDOW_TIME)

    @property
    def is_event_time(self) -> bool:
        """Return whether the column is the event time that watermarks refer to."""
        return self.part in (TimePart.ROWTIME, TimePart.WINDOW_TIME)

    def __str__(self) -> str:
        shown = {TimePart.ROWTIME: " *ROWTIME*", TimePart.WINDOW_TIME: " *ROWTIME*", TimePart.PROCTIME: " *PROCTIME*"}
        nothing = "" if self.type.is_nullable else " NOT NULL"
        return f"{self.type.nullable()}{shown.get(self.part, '') if self.part else ''}{nothing}"


Schema = tuple[Attribute, ...]
ANONYMOUS = "Anonymous_"
"""Prefix of the names of tables that a descriptor says."""
UNNAMED = "Unregistered_"
"""Prefix of the names of tables that the program did not name."""


@dataclass(frozen=True)
class Relation:
    """A step of the plan, whose rows have the columns of `schema`."""

    schema: Schema
    place: Place | None = field(default=None, compare=False, kw_only=True)
    view: tuple[str, ...] = field(default=(), compare=False, kw_only=True)
    """Catalog, database and name of the view whose rows these are; of a table without a name a view that reads it."""

    @property
    def inputs(self) -> tuple[Relation, ...]:
        """Return the relations whose rows are its input."""
        return ()

    def with_inputs(self, inputs: Sequence[Relation]) -> Relation:
        """Return the same relation on other inputs."""
        return self

    @property
    def names(self) -> list[str]:
        """Return the names of the columns."""
        return [attribute.name for attribute in self.schema]

    def walk(self) -> Iterator[Relation]:
        """Yield the relation and all relations below it."""
        yield self
        for relation in self.inputs:
            yield from relation.walk()

    def mapped(self, change: Callable[[Relation], Relation]) -> Relation:
        """Return the tree with each relation replaced by `change` of it, inputs first."""
        inputs = tuple(relation.mapped(change) for relation in self.inputs)
        same = all(new is old for new, old in zip(inputs, self.inputs, strict=True))
        return change(self if same else self.with_inputs(inputs))

    @property
    def exprs_of_rows(self) -> tuple[Expr, ...]:
        """Return the expressions that are computed for each row."""
        return ()

    def with_exprs(self, change: Callable[[Expr], Expr]) -> Relation:
        """Return the same relation with its expressions replaced by equivalent ones."""
        return self

    @property
    def is_repeatable(self) -> bool:
        """Return whether its rows are the same each time, apart from clocks: then two uses may be computed once."""
        calls = (call for relation in self.walk() for expr in relation.exprs_of_rows for call in expr.walk())
        return all(call.function.is_deterministic or call.function.is_clock for call in calls if isinstance(call, Call))

    def required_distribution(self, input_index: int) -> tuple[int, ...] | None:
        """Return the numbers of the columns by which the rows of an input must be partitioned to subtasks.

        The result is () if one subtask must receive all rows, and None if rows may stay where they are.
        """
        return None

    def takes_changes(self) -> Change:
        """Return the changes that the rows of its inputs may have."""
        return Change.INSERT

    def gives_changes(self, inputs: Sequence[Change]) -> Change:
        """Return the changes of its rows, for the changes of its inputs."""
        return Change.INSERT

    def requires_update_before(self, is_wanted: bool) -> bool:
        """Return whether its inputs must emit the row before an update; `is_wanted`: whether it must emit it itself."""
        return is_wanted

    @property
    def produces_update_before(self) -> bool:
        """Return whether it can emit the row before an update."""
        return True

    @property
    def instead(self) -> str:
        """Return the remedy for a query in which it does not accept the changes of its inputs."""
        return "aggregate by windows before"

    def explain_line(self) -> str:
        """Return its line in a plan, as EXPLAIN shows it."""
        raise NotImplementedError(type(self).__name__)

    def column(self, index: int) -> Column:
        """Return one of its columns as an expression."""
        attribute = self.schema[index]
        return Column(attribute.type, index, attribute.name)


@dataclass(frozen=True)
class _OnOne(Relation):
    input: Relation

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    def with_inputs(self, inputs: Sequence[Relation]) -> Relation:
        return replace(self, input=inputs[0])


class _OfEachRow(Relation):
    """A relation that processes each change as it processes a row."""

    def takes_changes(self) -> Change:
        return Change.ALL

    def gives_changes(self, inputs: Sequence[Change]) -> Change:
        changes = Change.NONE
        for change in inputs:
            changes |= change
        return changes


@dataclass(frozen=True)
class Scan(Relation):
    """The rows of a table.

    Args:
        path: catalog, database and name; or a made-up name for a table without one.
        source: reads the rows, see `sources.TableSource`; contains the projections and filters pushed into it.
        primary_key: names of the columns that its definition says to be the key.
        is_duplicated: the same change may come several times.
        definition: of the table, with the options of hints; None: it is bound to this program.
        abilities: what was pushed into the source, in this order.
        stored_statistics: returns a `TableStatistics`, those of its catalog, or None; None: the catalog has none.
    """

    path: tuple[str, ...]
    source: Any
    primary_key: tuple[str, ...] = ()
    is_duplicated: bool = False
    definition: TableDefinition | None = field(default=None, compare=False, repr=False)
    abilities: tuple[ScanAbility, ...] = field(default=(), compare=False, repr=False)
    stored_statistics: Callable[[], Any] | None = field(default=None, compare=False, repr=False)

    def with_ability(self, source: object, ability: ScanAbility, schema: Schema | None = None) -> Scan:
        """Return the same with something pushed into its source."""
        abilities = (*self.abilities, ability)
        return replace(self, schema=self.schema if schema is None else schema, source=source, abilities=abilities)

    @property
    def is_named(self) -> bool:
        """Return whether it is a table of the catalog."""
        return not self.path[-1].startswith(UNNAMED)

    @property
    def known_path(self) -> tuple[str, ...]:
        """Return the path, of a table without a name that of the view that reads it."""
        return self.path if self.is_named or not self.view else self.view

    def gives_changes(self, inputs: Sequence[Change]) -> Change:
        return Change(self.source.changes)

    @property
    def produces_update_before(self) -> bool:
        return bool(self.source.produces_update_before) and not self.is_duplicated

    @property
    def instead(self) -> str:
        return str(self.source.instead)

    def explain_line(self) -> str:
        pushed = self.source.pushed()
        return f"TableSourceScan(table=[[{', '.join((*self.known_path, *pushed))}]], fields=[{', '.join(self.names)}])"


@dataclass(frozen=True)
class Values(Relation):
    """Rows of constants; each row holds Python values as pyarrow takes them for the types."""

    rows: tuple[tuple[Any, ...], ...]

    def __eq__(self, other: object) -> bool:
        """Compare rows as literals: 0.0 is not -0.0."""
        if not isinstance(other, Values) or self.schema != other.schema:
            return False
        return self.rows is other.rows or repr(self.rows) == repr(other.rows)

    def explain_line(self) -> str:
        shown = ", ".join("{ " + ", ".join(map(str, row)) + " }" for row in self.rows)
        return f"Values(tuples=[[{shown}]])"


@dataclass(frozen=True)
class Project(_OnOne, _OfEachRow):
    """New columns of each row."""

    exprs: tuple[Expr, ...]

    @property
    def exprs_of_rows(self) -> tuple[Expr, ...]:
        return self.exprs

    def with_exprs(self, change: Callable[[Expr], Expr]) -> Relation:
        return replace(self, exprs=tuple(map(change, self.exprs)))

    def describe_columns(self) -> list[str]:
        """Return its columns, as plans show them."""
        pairs = zip(self.exprs, self.names, strict=True)
        return [str(expr) if str(expr) == name else f"{expr} AS {name}" for expr, name in pairs]

    def explain_line(self) -> str:
        return f"Project(select=[{', '.join(self.describe_columns())}])"


@dataclass(frozen=True)
class Filter(_OnOne, _OfEachRow):
    """The rows for which a condition is true."""

    condition: Expr

    @property
    def exprs_of_rows(self) -> tuple[Expr, ...]:
        return (self.condition,)

    def with_exprs(self, change: Callable[[Expr], Expr]) -> Relation:
        return replace(self, condition=change(self.condition))

    def requires_update_before(self, is_wanted: bool) -> bool:
        return True  # a row that no longer passes has to be taken back

    def explain_line(self) -> str:
        return f"Filter(where=[{self.condition}])"


@dataclass(frozen=True)
class WatermarkAssigner(_OnOne, _OfEachRow):
    """Makes a column the event time, and watermarks by an expression of each row."""

    time: int
    expression: Expr

    def explain_line(self) -> str:
        described = "SOURCE_WATERMARK()" if isinstance(self.expression, Literal) else self.expression
        return f"WatermarkAssigner(rowtime=[{self.names[self.time]}], watermark=[{described}])"


@dataclass(frozen=True)
class WindowTable(_OnOne):
    """Each row in each of its windows: the columns window_start, window_end and window_time are added."""

    windowing: Windowing

    def explain_line(self) -> str:
        return f"WindowTableFunction(window=[{self.windowing.describe(self.input.names)}])"

    def required_distribution(self, input_index: int) -> tuple[int, ...] | None:
        return self.windowing.partition if self.windowing.kind is WindowKind.SESSION else None


@dataclass(frozen=True)
class Unnest(_OnOne, _OfEachRow):
    """Each row beside the elements of a collection; of a table function the rows that it gives.

    The columns are `row_columns`, then one for each part of an element, then its number from 1 with `has_ordinality`.

    Args:
        collection: an array, a map or a multiset; fields of elements that are rows are parts.
        row_columns: numbers of columns of the input.
        is_left: a row without elements stands beside nulls.
        without_updates: elements come and go, and are no updates of each other: those of table aggregate functions.
    """

    collection: Expr
    row_columns: tuple[int, ...]
    is_left: bool = False
    has_ordinality: bool = False
    without_updates: bool = False

    @property
    def exprs_of_rows(self) -> tuple[Expr, ...]:
        return (self.collection,)

    def requires_update_before(self, is_wanted: bool) -> bool:
        return True  # another row may have other elements

    def gives_changes(self, inputs: Sequence[Change]) -> Change:
        updates = Change.INSERT | Change.DELETE
        return updates if self.without_updates and inputs[0] & Change.UPDATE else inputs[0]

    def explain_line(self) -> str:
        call = self.collection
        is_function = isinstance(call, Call) and call.function.gives_rows
        invoked = f"table({call})" if is_function else f"UNNEST({call})"
        parts = [f"invocation=[{invoked}]", f"select=[{', '.join(self.names)}]"]
        return f"Correlate({', '.join(parts)}, joinType=[{'LEFT' if self.is_left else 'INNER'}])"


@dataclass(frozen=True)
class Emission:
    """The times at which a group window emits results in addition to its end; lengths in milliseconds.

    Args:
        early_ms: before its end, so long after its first row and again by this interval; 0: by each row; None: not.
        late_ms: the same of rows that come behind its end.
        lateness_ms: how long behind its end it takes rows.
    """

    early_ms: int | None = None
    late_ms: int | None = None
    lateness_ms: int = 0

    def __str__(self) -> str:
        parts = []
        for name, delay in (("early", self.early_ms), ("late", self.late_ms)):
            if delay is not None:
                parts.append(f"{name} delay {delay} millisecond" if delay else f"{name} no delay")
        return ", ".join(parts)


class PartialFinal(Enum):
    """The step of an aggregate that is computed in two steps."""

    NONE = "NONE"
    PARTIAL = "PARTIAL"
    FINAL = "FINAL"


@dataclass(frozen=True)
class WindowAggregate(_OnOne):
    """Aggregates by columns and window.

    The columns are those of `grouping`, one for each call, then window_start, window_end and window_time.

    Args:
        windowing: puts rows into windows; None: they are in windows already, with the bounds in `bounds`.
        bounds: numbers of the columns window_start and window_end.
        emission: results are shown before the windows' ends, or again behind them; None: once, at the end.
        partial_final: of parts of a key's rows, or of what these gave; else of all rows of a key.
    """

    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    windowing: Windowing | None
    bounds: tuple[int, int] | None = None
    emission: Emission | None = None
    partial_final: PartialFinal = PartialFinal.NONE

    def gives_changes(self, inputs: Sequence[Change]) -> Change:
        return Change.INSERT if self.emission is None else Change.INSERT | Change.UPDATE

    def required_distribution(self, input_index: int) -> tuple[int, ...] | None:
        return self.grouping

    @property
    def has_local_phase(self) -> bool:
        """Return whether rows may be aggregated before they are partitioned, too."""
        if self.emission is not None:
            return False
        if self.windowing is not None:
            return self.windowing.is_event_time and self.windowing.kind is not WindowKind.SESSION
        assert self.bounds is not None
        inner = self.input.schema[self.bounds[0]].windowing
        return inner is not None and inner.is_event_time

    def explain_line(self) -> str:
        names = self.input.names
        parts = [f"groupBy=[{', '.join(names[index] for index in self.grouping)}]"] if self.grouping else []
        if self.windowing is not None:
            parts.append(f"window=[{self.windowing.describe(names)}]")
        elif self.bounds is not None:
            parts.append(f"window=[win_start=[{names[self.bounds[0]]}], win_end=[{names[self.bounds[1]]}]]")
        if self.partial_final is not PartialFinal.NONE:
            parts.append(f"partialFinalType=[{self.partial_final.value}]")
        results = zip(self.calls, self.schema[len(self.grouping) :], strict=False)
        calls = [f"{call.describe(names)} AS {column.name}" for call, column in results]
        shown = [names[index] for index in self.grouping] + calls + self.names[len(self.grouping) + len(self.calls) :]
        emitted = f", emit=[{self.emission}]" if self.emission is not None else ""
        return f"WindowAggregate({', '.join(parts)}, select=[{', '.join(shown)}]{emitted})"


@dataclass(frozen=True)
class Union(_OfEachRow):
    """The rows of several relations of the same types."""

    sources: tuple[Relation, ...]

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return self.sources

    def with_inputs(self, inputs: Sequence[Relation]) -> Relation:
        return replace(self, sources=tuple(inputs))

    def explain_line(self) -> str:
        return f"Union(all=[true], union=[{', '.join(self.names)}])"


@dataclass(frozen=True)
class Sort(_OnOne):
    """The rows in an order, or some of them.

    Args:
        keys: (number of a column, descending, nulls first) each.
        offset: rows to leave out first.
        limit: rows to give at most; None: all.
    """

    keys: tuple[tuple[int, bool, bool], ...]
    offset: int = 0
    limit: int | None = None

    def required_distribution(self, input_index: int) -> tuple[int, ...] | None:
        return ()

    @property
    def instead(self) -> str:
        return "take the rows to Python by collect(), and stop there when there are enough"

    def explain_line(self) -> str:
        parts = [f"orderBy=[{order_text(self.names, self.keys)}]"] if self.keys else []
        if self.offset:
            parts.append(f"offset=[{self.offset}]")
        if self.limit is not None:
            parts.append(f"fetch=[{self.limit}]")
        return f"{'Sort' if self.keys else 'Limit'}({', '.join(parts)})"


def order_text(names: Sequence[str], keys: Sequence[tuple[int, bool, bool]]) -> str:
    """Return an order as plans show it; the place of nulls is shown where it is not the default."""
    described = []
    for index, down, nulls_first in keys:
        nulls = "" if nulls_first is not down else f" NULLS {'FIRST' if nulls_first else 'LAST'}"
        described.append(f"{names[index]} {'DESC' if down else 'ASC'}{nulls}")
    return ", ".join(described)


@dataclass(frozen=True)
class Sink(_OnOne):
    """Rows that are written to a table; gives none.

    Args:
        path: catalog, database and name.
        sink: what takes them, see `contract.TableSink`.
        declared: types of its columns.
        needs_before: updates must include the row before, for it may have another key.
        on_conflict: the treatment of several rows of the query with one primary key; None: the query does not say.
        definition: of the table; None: it is bound to this program, or its rows are replaced.
    """

    path: tuple[str, ...]
    sink: Any = field(compare=False)
    declared: tuple[DataType, ...] = ()
    needs_before: bool = False
    on_conflict: OnConflict | None = None
    definition: TableDefinition | None = field(default=None, compare=False, repr=False)

    def takes_changes(self) -> Change:
        return Change.INSERT if self.sink.is_append_only else Change.ALL

    def gives_changes(self, inputs: Sequence[Change]) -> Change:
        return Change.NONE

    def requires_update_before(self, is_wanted: bool) -> bool:
        return bool(self.sink.requires_update_before or self.needs_before)

    @property
    def instead(self) -> str:
        return str(self.sink.instead)

    def explain_line(self) -> str:
        conflicts = "" if self.on_conflict is None else f", conflictStrategy=[{self.on_conflict.name}]"
        return f"Sink(table=[{'.'.join(self.path)}], fields=[{', '.join(self.input.names)}]{conflicts})"
