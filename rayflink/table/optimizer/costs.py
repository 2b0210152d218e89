"""Guesses of rows and costs, which EXPLAIN ESTIMATED_COST shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..plan.explain_steps import ShownStep
from ..plan.joins import BroadcastJoin, KeyedJoin
from ..plan.logical import Relation, Scan, Union
from ..plan.multi_joins import MultiJoin
from .estimates import Estimates, width


@dataclass(frozen=True)
class Cost:
    """Guesses: rows of a step, and of it and all below: rows, work, bytes read, bytes sent, bytes kept."""

    rowcount: float
    rows: float
    cpu: float
    io: float
    network: float
    memory: float

    def __str__(self) -> str:
        shown = [f"{_shown(getattr(self, name))} {name}" for name in ("rows", "cpu", "io", "network", "memory")]
        return f"rowcount = {_shown(self.rowcount)}, cumulative cost = {{{', '.join(shown)}}}"


@dataclass
class Costs:
    """The estimated costs of the steps of a plan."""

    estimates: Estimates = field(default_factory=Estimates)
    _known: dict[int, Cost] = field(default_factory=dict)

    def of(self, step: ShownStep) -> Cost:
        """Return a guess for a step."""
        cost = self._known.get(id(step))
        if cost is None:
            cost = self._known[id(step)] = self._guessed(step)
        return cost

    def _guessed(self, step: ShownStep) -> Cost:
        below = [self.of(child) for child in step.inputs]
        plan, kind = step.relation, step.text.partition("(")[0]
        if kind == "Exchange" or kind.startswith("Local"):
            plan, rowcount = step.inputs[0].relation, below[0].rowcount  # gives what comes
        else:
            rowcount = self.estimates.of(plan).rows
        row = width(plan.schema, self.estimates.of(plan).columns)
        moved = rowcount * row if kind == "Exchange" else 0.0
        read = rowcount * row if isinstance(plan, Scan) and not below else 0.0
        memory = 0.0
        if kind.startswith(("Global", "Sort", "WindowAggregate", "GroupAggregate")):
            memory = rowcount * row
        elif isinstance(plan, BroadcastJoin):
            memory = self.estimates.bytes(plan.inputs[plan.small])
        elif isinstance(plan, KeyedJoin | MultiJoin):
            memory = sum(self.estimates.bytes(side) for side in plan.inputs)
        own = 0.0 if isinstance(plan, Union) else rowcount
        return Cost(
            rowcount, own + sum(cost.rows for cost in below), own + sum(cost.cpu for cost in below),
            read + sum(cost.io for cost in below), moved + sum(cost.network for cost in below),
            memory + sum(cost.memory for cost in below),
        )  # fmt: skip


def statistics_text(plans: Sequence[Relation], estimates: Estimates) -> str:
    """Return the statistics of the tables in plans, each table once."""
    lines: dict[str, None] = {}
    for scan in (relation for plan in plans for relation in plan.walk() if isinstance(relation, Scan)):
        statistics, name = estimates.statistics_of(scan), ".".join(scan.path)
        if statistics is None:
            lines[f"{name}: nothing is known"] = None
            continue
        lines[f"{name}: {statistics.rows:.0f} rows ({statistics.how})"] = None
        for column in scan.names:
            described = str(statistics.columns.get(column, ""))
            if described:
                lines[f"  {scan.path[-1]}.{column}: {described}"] = None
    return "\n".join(lines) or "No tables are read."


def _shown(number: float) -> str:
    """Format a number as Flink does: 2.5E7.

    >>> _shown(25_000_000.0), _shown(3.0), _shown(0.0)
    ('2.5E7', '3.0', '0.0')
    """
    if number < 1e7:
        return str(round(number, 1))
    digits, _, exponent = f"{number:.2e}".partition("e")
    return f"{digits.rstrip('0') + ('0' if digits.rstrip('0').endswith('.') else '')}E{int(exponent)}"


__all__ = ["Cost", "Costs", "statistics_text"]
