"""Groups of rows in the logical plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .logical import AggregateCall, Relation


@dataclass(frozen=True)
class GroupAggregate(Relation):
    """GROUP BY; without calls it is SELECT DISTINCT and UNION.

    Its columns are those of `grouping`, then one for each call. Without columns to group by it gives one row, even if
    its input has none. On streams it has no calls, and each group is emitted with its first row.

    Args:
        grouping: numbers of the columns; rows with NULL in one are a group, too.
        is_whole: it runs in batch mode: results wait for the end of the input.
        is_one_phase: rows are partitioned as they are, and not aggregated before.
        ttl: (table, time after which a group without new rows is forgotten), on streams; None: the time is
            `table.exec.state.ttl`.
    """

    input: Relation
    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    is_whole: bool = True
    is_one_phase: bool = False
    ttl: tuple[str, str] | None = None

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    def with_inputs(self, inputs: Sequence[Relation]) -> Relation:
        return replace(self, input=inputs[0])

    def required_distribution(self, at: int) -> tuple[int, ...] | None:
        return self.grouping

    def explain_line(self) -> str:
        names = self.input.names
        keys = [names[at] for at in self.grouping]
        results = zip(self.calls, self.names[len(keys) :], strict=True)
        shown = keys + [f"{call.describe(names)} AS {name}" for call, name in results]
        grouped = f"groupBy=[{', '.join(keys)}], " if keys else ""
        hint = "" if self.ttl is None else f", stateTtlHints=[[[STATE_TTL options:{{{'='.join(self.ttl)}}}]]]"
        return f"GroupAggregate({grouped}select=[{', '.join(shown)}]{hint})"


__all__ = ["GroupAggregate"]
