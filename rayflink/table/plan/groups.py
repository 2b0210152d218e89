"""Groups of rows in the logical plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .logical import AggregateCall, Relation


@dataclass(frozen=True)
class GroupAggregate(Relation):
    """Aggregates by columns over all rows of a table: the columns of `grouping`, then one for each call.

    Without columns to group by it gives one row, also of no rows. Of a stream there are no calls, and each group comes
    with its first row.

    Args:
        grouping: numbers of the columns; rows with NULL in one are a group, too.
        is_whole: rows are those of a whole table, and results may wait for its end.
        is_one_phase: rows are partitioned as they are, and not aggregated before.
        ttl: (name of the table, how long a group is known of which nothing comes) in a stream; None: as long as
            `table.exec.state.ttl` says.
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
