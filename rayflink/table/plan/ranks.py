"""Numbers of rows in the logical plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .changelog import Change
from .logical import Relation, Sort, order_text

ENDLESS_ORDER = (
    "ORDER BY over an unbounded stream",
    "order by a time attribute first, ascending, or add LIMIT, or run the query in batch mode: "
    "EnvironmentSettings.in_batch_mode()",
)
"""The error of an order that would be known at the end of a stream, and its remedy."""


def is_by_time(sort: Sort) -> bool:
    """Return whether rows are ordered by a time attribute first, which ascends, so that those of a stream can be."""
    if not sort.keys or sort.offset or sort.limit is not None:
        return False
    column, is_descending, _ = sort.keys[0]
    return not is_descending and sort.input.schema[column].is_time


@dataclass(frozen=True)
class Rank(Relation):
    """Rows and their numbers, from 1, among those that are equal in some columns; the number is the last column.

    Args:
        partition: these columns.
        keys: by what they are numbered: (number of a column, descending, nulls first) each; none: as they come.
        first: rows of lesser numbers are left out.
        last: rows of greater numbers are left out; None: none are.
        is_whole: rows are those of a whole table, and their numbers may wait for its end.
        newest_first: of rows that are equal in the order the one that came last is the first.
    """

    input: Relation
    partition: tuple[int, ...]
    keys: tuple[tuple[int, bool, bool], ...]
    first: int = 1
    last: int | None = None
    is_whole: bool = False
    newest_first: bool = False

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    def with_inputs(self, inputs: Sequence[Relation]) -> Relation:
        return replace(self, input=inputs[0])

    @property
    def number(self) -> int:
        """Return the position of the number's column."""
        return len(self.input.schema)

    @property
    def is_top(self) -> bool:
        """Return whether it is of the first rows of each key of a stream, which change."""
        return type(self) is Rank and not self.is_whole and self.last is not None

    def takes_changes(self) -> Change:
        return Change.ALL if self.is_top else Change.INSERT

    def gives_changes(self, inputs: Sequence[Change]) -> Change:
        if not self.is_top:
            return Change.INSERT
        deletes = Change.DELETE if inputs[0] & (Change.UPDATE | Change.DELETE) else Change.NONE
        return Change.INSERT | Change.UPDATE | deletes

    def requires_update_before(self, is_wanted: bool) -> bool:
        return self.is_top or super().requires_update_before(is_wanted)

    def required_distribution(self, input_index: int) -> tuple[int, ...] | None:
        return self.partition

    def explain_line(self) -> str:
        return f"Rank({', '.join(self._parts(self.partition))})"

    def _parts(self, partition: Sequence[int]) -> list[str]:
        end = "" if self.last is None else f", rankEnd={self.last}"
        parts = ["rankType=[ROW_NUMBER]", f"rankRange=[rankStart={self.first}{end}]"]
        if partition:
            parts.append(f"partitionBy=[{', '.join(self.names[index] for index in partition)}]")
        order = order_text(self.names, self.keys) or f"PROCTIME() {'DESC' if self.newest_first else 'ASC'}"
        return [*parts, f"orderBy=[{order}]", f"select=[{', '.join(self.names)}]"]


@dataclass(frozen=True)
class Deduplicate(Rank):
    """The first or the last row of each key of a stream, by arrival or by event time; its number is 1.

    Args:
        keeps_last: the last row is wanted: each later row replaces the one before it.
    """

    keeps_last: bool = False

    def gives_changes(self, inputs: Sequence[Change]) -> Change:
        return Change.INSERT | Change.UPDATE if self.keeps_last else Change.INSERT

    @property
    def is_event_time(self) -> bool:
        """Return whether it is the first or last by event time; the first comes when the watermark has come to it."""
        return self.input.schema[self.keys[0][0]].is_event_time

    def explain_line(self) -> str:
        key = ", ".join(self.names[index] for index in self.partition)
        order = "ROWTIME" if self.is_event_time else "PROCTIME"
        return f"Deduplicate(keep=[{'Last' if self.keeps_last else 'First'}Row], key=[{key}], order=[{order}])"


@dataclass(frozen=True)
class WindowRank(Rank):
    """The same within windows, whose bounds are among the columns of `partition`, when they are over.

    Args:
        bounds: numbers of the columns window_start and window_end.
        is_deduplicated: the first or the last row by event time is wanted.
    """

    bounds: tuple[int, int] = (0, 0)
    is_deduplicated: bool = False

    @property
    def others(self) -> tuple[int, ...]:
        """Return columns of the partition without the bounds."""
        return tuple(index for index in self.partition if index not in self.bounds)

    def required_distribution(self, input_index: int) -> tuple[int, ...] | None:
        return self.others

    def explain_line(self) -> str:
        start, end = (self.names[index] for index in self.bounds)
        window = f"window=[win_start=[{start}], win_end=[{end}]]"
        if not self.is_deduplicated:
            return f"WindowRank({', '.join([window, *self._parts(self.others)])})"
        keys = f", partitionKeys=[{', '.join(self.names[index] for index in self.others)}]" if self.others else ""
        keep = f"keep=[{'LastRow' if self.newest_first else 'FirstRow'}]"
        return f"WindowDeduplicate({window}, {keep}{keys}, orderKey=[{self.names[self.keys[0][0]]}], order=[ROWTIME])"


__all__ = ["ENDLESS_ORDER", "Deduplicate", "Rank", "WindowRank", "is_by_time"]
