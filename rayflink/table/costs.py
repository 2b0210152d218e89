"""Guesses of rows and costs, which EXPLAIN ESTIMATED_COST shows."""

from __future__ import annotations

from dataclasses import dataclass, field

from .groups import GroupAggregate
from .logical import Filter, Project, Scan, Schema, Sort, Union, Values, WindowAggregate, WindowTable
from .steps import ShownStep
from .typed import Call, Expr
from .types import DataType

UNKNOWN_ROWS = 1e8
"""Of a table of which nothing is known, as Flink guesses it."""


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
    """Of the steps of a plan."""

    _known: dict[int, Cost] = field(default_factory=dict)

    def of(self, step: ShownStep) -> Cost:
        """A guess for a step."""
        found = self._known.get(id(step))
        if found is None:
            found = self._known[id(step)] = self._guessed(step)
        return found

    def _guessed(self, step: ShownStep) -> Cost:
        below = [self.of(one) for one in step.inputs]
        plan, kind = step.relation, step.text.partition("(")[0]
        rowcount = sum(one.rowcount for one in below)
        moved = rowcount * _width(step.inputs[0].relation.schema) if kind == "Exchange" else 0.0
        if kind == "Exchange" or kind.startswith("Local"):
            plan = step.inputs[0].relation  # gives what comes
        elif isinstance(plan, (Scan, Values)):
            held = len(plan.rows) if isinstance(plan, Values) else plan.source.rows
            rowcount = UNKNOWN_ROWS if held is None else float(held)
        elif isinstance(plan, Project):
            rowcount *= _share(plan.input.condition) if isinstance(plan.input, Filter) else 1
        elif isinstance(plan, Filter):
            rowcount *= _share(plan.condition)
        elif isinstance(plan, WindowTable):
            windowing = plan.windowing
            rowcount *= windowing.size_ms / windowing.slide_ms if windowing.slide_ms else 1
        elif isinstance(plan, WindowAggregate | GroupAggregate):
            rowcount = max(1.0, rowcount / 10)
        elif isinstance(plan, Sort) and plan.limit is not None:
            rowcount = min(rowcount, plan.limit)
        read = rowcount * _width(plan.schema) if isinstance(plan, Scan) and not below else 0.0
        kept = rowcount * _width(plan.schema) if kind.startswith(("Global", "Sort", "WindowAggregate")) else 0.0
        own = 0.0 if isinstance(plan, Union) else rowcount
        return Cost(
            rowcount, own + sum(one.rows for one in below), own + sum(one.cpu for one in below),
            read + sum(one.io for one in below), moved + sum(one.network for one in below),
            kept + sum(one.memory for one in below),
        )  # fmt: skip


def _share(condition: Expr) -> float:
    """Of the rows that pass: of an equation 15 in 100, of another comparison half."""
    if not isinstance(condition, Call):
        return 1.0
    name = condition.function.name
    if name == "AND":
        return _share(condition.args[0]) * _share(condition.args[1])
    if name == "OR":
        first, second = _share(condition.args[0]), _share(condition.args[1])
        return first + second - first * second
    return {"=": 0.15, "IS NOT NULL": 0.9, "IS NULL": 0.1, "<>": 0.85}.get(name, 0.5)


def _width(schema: Schema) -> float:
    return float(sum(_bytes(one.type) for one in schema))


def _bytes(kind: DataType) -> int:
    return 16 if kind.is_text or kind.is_bytes or kind.items or kind.fields else 8


def _shown(number: float) -> str:
    """As Flink writes it: 2.5E7.

    >>> _shown(25_000_000.0), _shown(3.0), _shown(0.0)
    ('2.5E7', '3.0', '0.0')
    """
    if number < 1e7:
        return str(round(number, 1))
    digits, _, exponent = f"{number:.2e}".partition("e")
    return f"{digits.rstrip('0') + ('0' if digits.rstrip('0').endswith('.') else '')}E{int(exponent)}"


__all__ = ["Cost", "Costs"]
