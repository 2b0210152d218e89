"""Joins in the logical plan: as a query writes them, and as they are run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias

from .changelog import Change
from .logical import Attribute, Relation, Schema, Windowing
from .typed import Column, Expr, Literal

Ttls: TypeAlias = tuple[tuple[str, str] | None, tuple[str, str] | None]


class JoinKind(Enum):
    """The kind of a join: the fate of rows that match no row of the other side."""

    INNER = "InnerJoin"
    LEFT = "LeftOuterJoin"
    RIGHT = "RightOuterJoin"
    FULL = "FullOuterJoin"
    SEMI = "LeftSemiJoin"
    ANTI = "LeftAntiJoin"

    @property
    def keeps_left(self) -> bool:
        """Return whether a row of the left side that matches none is in the result, with nulls for the right side."""
        return self in (JoinKind.LEFT, JoinKind.FULL)

    @property
    def keeps_right(self) -> bool:
        """Return whether a row of the right side that matches none is in the result, with nulls for the left side."""
        return self in (JoinKind.RIGHT, JoinKind.FULL)

    @property
    def is_of_left(self) -> bool:
        """Return whether the result has the columns of the left side alone."""
        return self in (JoinKind.SEMI, JoinKind.ANTI)


@dataclass(frozen=True)
class _OnTwo(Relation):
    left: Relation
    right: Relation
    kind: JoinKind

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.left, self.right)

    def with_inputs(self, inputs: Sequence[Relation]) -> Relation:
        return replace(self, left=inputs[0], right=inputs[1])

    def _describe_condition(self, condition: Expr) -> str:
        """Return a condition with the names that columns have in the result, where both sides are in it."""
        names = [attribute.name for attribute in joined_schema(self.left.schema, self.right.schema, JoinKind.INNER)]

        def named(part: Expr) -> Expr:
            return replace(part, name=names[part.index]) if isinstance(part, Column) else part

        return str(condition.mapped(named))

    @property
    def width(self) -> int:
        """Return the number of columns of the left side; those of the right one follow in a condition."""
        return len(self.left.schema)


@dataclass(frozen=True)
class Join(_OnTwo):
    """The pairs of rows for which a condition is true.

    Args:
        condition: over the columns of the left side, then those of the right one.
        is_whole: both sides are whole tables, and the join may wait for their ends.
        ttls: of the left and of the right side, (table, time after which a row is forgotten that is not written), in a
            stream; None: the time is `table.exec.state.ttl`.
        is_hinted: a hint asks for it to be run together with other joins of streams, see `MultiJoin`.
    """

    condition: Expr
    is_whole: bool = False
    ttls: Ttls = field(default=(None, None), kw_only=True)
    is_hinted: bool = field(default=False, kw_only=True)

    @property
    def exprs_of_rows(self) -> tuple[Expr, ...]:
        return (self.condition,)

    def explain_line(self) -> str:
        shown = "" if is_true(self.condition) else f", where=[{self._describe_condition(self.condition)}]"
        return f"Join(joinType=[{self.kind.value}]{shown}, select=[{', '.join(self.names)}])"


@dataclass(frozen=True)
class Keys:
    """Columns of both sides that are equal in a pair.

    Args:
        left: numbers of columns of the left side.
        right: of the right side, of the same types.
        nulls_match: of each, whether a null is equal to a null.
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    nulls_match: tuple[bool, ...]


@dataclass(frozen=True)
class KeyedJoin(_OnTwo):
    """A join that is run by equal keys; as such it waits for the ends of both sides.

    Args:
        condition: what else a pair must fulfil; None: nothing.
    """

    keys: Keys
    condition: Expr | None

    @property
    def exprs_of_rows(self) -> tuple[Expr, ...]:
        return () if self.condition is None else (self.condition,)

    def required_distribution(self, input_index: int) -> tuple[int, ...] | None:
        return (self.keys.left, self.keys.right)[input_index]

    def _shown(self) -> list[str]:
        left, right = self.left.names, self.right.names
        sign = {False: "=", True: "IS NOT DISTINCT FROM"}
        pairs = zip(self.keys.left, self.keys.right, self.keys.nulls_match, strict=True)
        where = [f"{left[left_key]} {sign[nulls]} {right[right_key]}" for left_key, right_key, nulls in pairs]
        where += [self._describe_condition(self.condition)] if self.condition is not None else []
        shown = [f"where=[{' AND '.join(where)}]"] if where else []
        return [f"joinType=[{self.kind.value}]", *shown, f"select=[{', '.join(self.names)}]"]

    def explain_line(self) -> str:
        return f"HashJoin({', '.join(self._shown())})"


@dataclass(frozen=True)
class BroadcastJoin(KeyedJoin):
    """A join of whole tables where every subtask has all rows of the small one.

    Args:
        small: the number of that side.
    """

    small: int

    def required_distribution(self, input_index: int) -> tuple[int, ...] | None:
        return None

    def explain_line(self) -> str:
        name = "HashJoin" if self.keys.left else "NestedLoopJoin"
        shown = [*self._shown(), "isBroadcast=[true]", f"build=[{('left', 'right')[self.small]}]"]
        return f"{name}({', '.join(shown)})"


@dataclass(frozen=True)
class StreamJoin(KeyedJoin):
    """A join of streams whose rows stay in its state for ever, or until their time to live is over.

    Args:
        ttls: of the left and of the right side, (table, time after which a row is forgotten that is not written); None:
            the time is `table.exec.state.ttl`.
        unique: numbers of the columns of a unique key of each side, by which its rows are stored; none: it has none.
        is_upsert: rows that replace others by these keys may come without the row before.
        is_hinted: see `Join`.
    """

    ttls: Ttls = (None, None)
    unique: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    is_upsert: bool = False
    is_hinted: bool = False

    def takes_changes(self) -> Change:
        return Change.ALL

    def gives_changes(self, inputs: Sequence[Change]) -> Change:
        if self.kind not in (JoinKind.INNER, JoinKind.SEMI):
            return Change.ALL
        changes = Change.NONE
        for side in inputs:
            changes |= side
        return changes

    def requires_update_before(self, is_wanted: bool) -> bool:
        return is_wanted or not self.is_upsert

    def has_key_as_unique(self, index: int) -> bool:
        """Return whether the columns of a side that are equal in a pair identify its rows."""
        keys = (self.keys.left, self.keys.right)[index]
        return bool(self.unique[index]) and set(self.unique[index]) <= set(keys)

    def explain_line(self) -> str:
        specs = [f"{name}InputSpec=[{self._input_spec(index)}]" for index, name in enumerate(("left", "right"))]
        hints = [f"{'='.join(ttl)}" for ttl in self.ttls if ttl is not None]
        hinted = [f"stateTtlHints=[[[STATE_TTL options:{{{', '.join(hints)}}}]]]"] if hints else []
        return f"Join({', '.join([*self._shown(), *specs, *hinted])})"

    def _input_spec(self, index: int) -> str:
        if not self.unique[index]:
            return "NoUniqueKey"
        return "JoinKeyContainsUniqueKey" if self.has_key_as_unique(index) else "HasUniqueKey"


@dataclass(frozen=True)
class WindowJoin(KeyedJoin):
    """A join of rows of equal windows, run when the windows are over.

    Args:
        windowing: of both sides.
        left_bounds: numbers of the left side's columns window_start and window_end.
        right_bounds: of the right side's.
    """

    windowing: Windowing
    left_bounds: tuple[int, int]
    right_bounds: tuple[int, int]

    def required_distribution(self, input_index: int) -> tuple[int, ...] | None:
        """Distribute by the keys, else by the end of the windows."""
        return super().required_distribution(input_index) or ((self.left_bounds, self.right_bounds)[input_index][1],)

    def explain_line(self) -> str:
        return f"WindowJoin(window=[{self.windowing.describe_without_time()}], {', '.join(self._shown())})"


@dataclass(frozen=True)
class Interval:
    """The bounds of the times of a pair: `lower_ms` <= right time - left time <= `upper_ms`.

    Args:
        left, right: numbers of the columns with the times, each of its side.
        is_event_time: else the times are those at which rows come.
    """

    left: int
    right: int
    lower_ms: int
    upper_ms: int
    is_event_time: bool = True


@dataclass(frozen=True)
class IntervalJoin(KeyedJoin):
    """A join of rows whose times lie near each other."""

    interval: Interval

    def explain_line(self) -> str:
        interval = self.interval
        times = f"leftTimeIndex={self.left.names[interval.left]}, rightTimeIndex={self.right.names[interval.right]}"
        bounds = f"lowerBound={interval.lower_ms}, upperBound={interval.upper_ms}"
        is_row_time = str(interval.is_event_time).lower()
        return f"IntervalJoin(interval=[{bounds}, isRowTime={is_row_time}, {times}], {', '.join(self._shown())})"


def is_true(expr: Expr) -> bool:
    """Return whether it is the constant."""
    return isinstance(expr, Literal) and expr.value is True


def joined_schema(left: Schema, right: Schema, kind: JoinKind) -> Schema:
    """Return the columns of a join, each with a name of its own; an optional side has nulls, and no time."""
    if kind.is_of_left:
        return left
    names: set[str] = set()
    attributes: list[Attribute] = []
    for side, may_miss in ((left, kind.keeps_right), (right, kind.keeps_left)):
        for attribute in side:
            number, name = 0, attribute.name
            while name in names:
                name, number = f"{attribute.name}{number}", number + 1
            names.add(name)
            result = Attribute(name, attribute.type.nullable()) if may_miss else replace(attribute, name=name)
            attributes.append(result)
    return tuple(attributes)


__all__ = [
    "BroadcastJoin", "Interval", "IntervalJoin", "Join", "JoinKind", "KeyedJoin", "Keys", "StreamJoin", "Ttls",
    "WindowJoin", "is_true", "joined_schema",
]  # fmt: skip
