"""Groups of rows in the logical plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .aggregate_call import AggregateCall
from .changelog import Change, changes_of
from .logical import Relation

_ORDERED = {"FIRST_VALUE", "LAST_VALUE", "LISTAGG", "ARRAY_AGG", "COLLECT", "PERCENTILE"}
"""Aggregates to which the order of rows makes a difference, or that store all values."""
_MERGEABLE = {"COUNT", "SUM", "AVG", "STDDEV_POP", "STDDEV_SAMP", "VAR_POP", "VAR_SAMP"}
_MERGEABLE_IF_ROWS_STAY = {"MIN", "MAX", "FIRST_VALUE", "LAST_VALUE"}


@dataclass(frozen=True)
class MiniBatch:
    """The size of mini-batches.

    Args:
        rows: that wait at most.
        latency_ms: how long they wait at most.
    """

    rows: int
    latency_ms: int

    def of_parts(self) -> MiniBatch:
        """Return the size of mini-batches of rows that were in mini-batches before: they wait a tenth as long."""
        return replace(self, latency_ms=max(self.latency_ms // 10, 1))


@dataclass(frozen=True)
class GroupAggregate(Relation):
    """GROUP BY; without calls it is SELECT DISTINCT and UNION.

    Its columns are those of `grouping`, then one for each call. Without columns to group by it gives one row, even if
    its input has none. On streams each row changes the result of its group, and a group without rows has none; without
    calls a group is emitted with its first row.

    Args:
        grouping: numbers of the columns; rows with NULL in one are a group, too.
        is_whole: it runs in batch mode: results wait for the end of the input.
        is_one_phase: rows are partitioned as they are, and not aggregated before; in batch mode.
        has_local_phase: on streams, rows of a mini-batch are aggregated before they are partitioned as well.
        splits_distinct: on streams, the values of DISTINCT aggregates are found by group and value, so that several
            subtasks share those of one group.
        ttl: (table, time after which a group without new rows is forgotten), on streams; None: the time is
            `table.exec.state.ttl`.
    """

    input: Relation
    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    is_whole: bool = True
    is_one_phase: bool = False
    has_local_phase: bool = False
    splits_distinct: bool = False
    ttl: tuple[str, str] | None = None

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    def with_inputs(self, inputs: Sequence[Relation]) -> Relation:
        return replace(self, input=inputs[0])

    def required_distribution(self, input_index: int) -> tuple[int, ...] | None:
        return self.grouping

    def takes_changes(self) -> Change:
        return Change.INSERT if self.is_whole else Change.ALL

    def gives_changes(self, inputs: Sequence[Change]) -> Change:
        changes = inputs[0]
        if self.is_whole or (not self.calls and changes in (Change.INSERT, Change.NONE)):
            return Change.INSERT
        deletes = Change.DELETE if changes & (Change.UPDATE | Change.DELETE) else Change.NONE
        return Change.INSERT | Change.UPDATE | deletes

    def requires_update_before(self, is_wanted: bool) -> bool:
        return True  # what the row before added to a group is taken back

    @property
    def is_mergeable(self) -> bool:
        """Return whether results of parts of the rows of a stream can be merged."""
        return all(call.name in _MERGEABLE or (call.name in _MERGEABLE_IF_ROWS_STAY and not self._retracts)
                   for call in self.calls)  # fmt: skip

    @property
    def distinct_arguments(self) -> tuple[int, ...]:
        """Return the columns whose values DISTINCT aggregates count once; MIN and MAX take all."""
        selecting = ("MIN", "MAX")
        return tuple(dict.fromkeys(call.arguments[0] for call in self.calls
                                   if call.distinct and call.name not in selecting))  # fmt: skip

    @property
    def is_splittable(self) -> bool:
        """Return whether DISTINCT aggregates are there, and no aggregate depends on the order of rows.

        Behind the steps of several columns the rows that have one value come on several ways. Of those that have come
        so far there may be none left, but some whose value counts: a group must not go then, and so rows must stay.
        """
        is_in_order = len(self.distinct_arguments) == 1 or not self._retracts
        return bool(self.distinct_arguments) and is_in_order and not any(map(_is_ordered, self.calls))

    @property
    def _retracts(self) -> bool:
        return bool(changes_of(self.input) & (Change.UPDATE | Change.DELETE))

    @property
    def instead(self) -> str:
        return "give the input a stream with UPDATE_BEFORE rows"

    def explain_line(self) -> str:
        names = self.input.names
        keys = [names[index] for index in self.grouping]
        results = zip(self.calls, self.names[len(keys) :], strict=True)
        shown = keys + [f"{call.describe(names)} AS {name}" for call, name in results]
        grouped = f"groupBy=[{', '.join(keys)}], " if keys else ""
        hint = "" if self.ttl is None else f", stateTtlHints=[[[STATE_TTL options:{{{'='.join(self.ttl)}}}]]]"
        return f"GroupAggregate({grouped}select=[{', '.join(shown)}]{hint})"


def _is_ordered(call: AggregateCall) -> bool:
    """Return whether the order of rows makes a difference to an aggregate, or may do so."""
    return call.function is not None or call.name in _ORDERED


__all__ = ["GroupAggregate", "MiniBatch"]
