"""Joins with the rows that a table has at the moment at which a row comes: FOR SYSTEM_TIME AS OF a processing time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .changelog import Change
from .joins import Join, JoinKind
from .logical import Relation, Scan
from .typed import Column, Expr


@dataclass(frozen=True)
class LookupHint:
    """The hint LOOKUP of a table; what is None was not written.

    Args:
        is_async: whether several requests may be under way at once.
        is_unordered: whether results may leave in another order than rows came.
        capacity: requests under way at most.
        timeout_ms: time for a request with all its repetitions.
        retries_misses: whether keys without rows are asked for again.
        delay_ms: pause before they are.
        most_attempts: how often they are asked for again.
        is_shuffled: whether rows are partitioned by the key before the join.
    """

    is_async: bool | None = None
    is_unordered: bool | None = None
    capacity: int | None = None
    timeout_ms: int | None = None
    retries_misses: bool = False
    delay_ms: int = 0
    most_attempts: int = 0
    is_shuffled: bool = False

    def __str__(self) -> str:
        parts: list[str] = []
        if self.is_async is not None:
            parts.append(f"async=[{str(self.is_async).lower()}]")
        if self.is_unordered is not None:
            parts.append(f"output=[{'ALLOW_UNORDERED' if self.is_unordered else 'ORDERED'}]")
        if self.capacity is not None:
            parts.append(f"capacity=[{self.capacity}]")
        if self.timeout_ms is not None:
            parts.append(f"timeout=[{self.timeout_ms} ms]")
        if self.retries_misses:
            parts.append(f"retry=[lookup_miss, FIXED_DELAY, {self.delay_ms} ms, {self.most_attempts}]")
        if self.is_shuffled:
            parts.append("shuffle=[true]")
        return "".join(f", {part}" for part in parts)


@dataclass(frozen=True)
class SnapshotJoin(Join):
    """A join as it is written: each row with those that the right side has at the row's time.

    Args:
        time: number of the column of the left side with that time, a time attribute.
        hint: of the table.
    """

    time: int = 0
    hint: LookupHint = LookupHint()

    def explain_line(self) -> str:
        return f"TemporalJoin(time=[{self.left.names[self.time]}], {super().explain_line().partition('(')[2]}"


@dataclass(frozen=True)
class LookupKey:
    """A column of a table by which its rows are found.

    Args:
        name: of the column.
        value: over the columns of the input, or a constant; of the column's type.
    """

    name: str
    value: Expr

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


@dataclass(frozen=True)
class LookupJoin(Relation):
    """Each row of the input with the rows of a table that are found by keys when it comes.

    The table is no input: its source is asked. The columns are those of the input, then `exprs`.

    Args:
        table: the rows that are found.
        kind: INNER, or LEFT, which keeps rows that find none.
        keys: at least one.
        where: condition over the columns of the table; None: there is none.
        exprs: over the columns of the table.
        condition: over the columns of the result; None: there is none.
        resolved_by: numbers of the input's columns by which found rows are stored, so that a row that is taken back
            takes back what was found when it came; None: they are not stored.
    """

    input: Relation
    table: Scan
    kind: JoinKind
    keys: tuple[LookupKey, ...]
    where: Expr | None
    exprs: tuple[Expr, ...]
    condition: Expr | None
    hint: LookupHint = LookupHint()
    resolved_by: tuple[int, ...] | None = None

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    def with_inputs(self, inputs: Sequence[Relation]) -> Relation:
        return replace(self, input=inputs[0])

    @property
    def exprs_of_rows(self) -> tuple[Expr, ...]:
        conditions = (expr for expr in (self.where, self.condition) if expr is not None)
        return (*(key.value for key in self.keys), *self.exprs, *conditions)

    def with_exprs(self, change: Callable[[Expr], Expr]) -> Relation:
        return replace(
            self, keys=tuple(replace(key, value=change(key.value)) for key in self.keys),
            exprs=tuple(map(change, self.exprs)),
            where=None if self.where is None else change(self.where),
            condition=None if self.condition is None else change(self.condition),
        )  # fmt: skip

    @property
    def width(self) -> int:
        """Return the number of columns of the input."""
        return len(self.input.schema)

    def required_distribution(self, input_index: int) -> tuple[int, ...] | None:
        """Distribute by the keys that are columns, where the hint asks for it."""
        columns = tuple(key.value.index for key in self.keys if isinstance(key.value, Column))
        return columns if self.hint.is_shuffled and columns else None

    def takes_changes(self) -> Change:
        return Change.ALL

    def gives_changes(self, inputs: Sequence[Change]) -> Change:
        return inputs[0]

    def requires_update_before(self, is_wanted: bool) -> bool:
        """Require them: a row that is replaced may have found rows that the new one does not find."""
        return True

    def explain_line(self) -> str:
        table = ", ".join((".".join(self.table.known_path), *self.table.source.pushed()))
        parts = [f"table=[{table}]", f"joinType=[{self.kind.value}]", f"lookup=[{', '.join(map(str, self.keys))}]"]
        if self.where is not None:
            parts.append(f"where=[{self.where}]")
        if self.condition is not None:
            parts.append(f"joinCondition=[{self._named(self.condition)}]")
        stored = "" if self.resolved_by is None else ", upsertMaterialize=[true]"
        return f"LookupJoin({', '.join(parts)}, select=[{', '.join(self.names)}]{self.hint}{stored})"

    def _named(self, condition: Expr) -> Expr:
        names = self.names
        return condition.mapped(
            lambda part: replace(part, name=names[part.index]) if isinstance(part, Column) else part
        )


__all__ = ["LookupHint", "LookupJoin", "LookupKey", "SnapshotJoin"]
