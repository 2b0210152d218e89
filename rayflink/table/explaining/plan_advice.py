"""Advice on plans: what could make them faster, and where changes may be lost.

Source: apache/flink PhysicalPlanAnalyzer: GroupAggregationAnalyzer and NonDeterministicUpdateAnalyzer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import SqlError
from ..optimizer.nondeterministic_updates import ensure_deterministic_updates
from ..plan.groups import GroupAggregate
from ..plan.logical import Relation, WindowAggregate

_GROUPS = (
    "[ADVICE] You might want to enable local-global two-phase optimization by configuring "
    "('table.exec.mini-batch.enabled' to 'true', 'table.exec.mini-batch.allow-latency' to a positive long value, "
    "'table.exec.mini-batch.size' to a positive long value)."
)
_WINDOWS = (
    "[ADVICE] You might want to set 'table.optimizer.agg-phase-strategy' to 'AUTO': windows are then aggregated "
    "before rows are distributed, too, so that a key with many rows delays no subtask."
)
_REMEDY = "Compute it before rows change, or by a function that always gives the same result"


@dataclass(frozen=True)
class PlanAdvice:
    """Pieces of advice, and the steps that they are on.

    Args:
        lines: each once.
        numbers: a relation -> the number of its advice, from 1.
    """

    lines: tuple[str, ...]
    numbers: dict[Relation, int]

    def of(self, relation: Relation, text: str) -> str:
        """Return the text of a step with the number of its advice."""
        name, parenthesis, attributes = text.partition("(")
        is_own = relation in self.numbers and name.endswith("Aggregate")
        return f"{name}{parenthesis}advice=[{self.numbers[relation]}], {attributes}" if is_own else text

    def __str__(self) -> str:
        if not self.lines:
            return "No available advice..."
        return "\n".join(f"advice[{number}]: {line}" for number, line in enumerate(self.lines, start=1))


def plan_advice(plans: Sequence[Relation], two_phase: bool) -> PlanAdvice:
    """Return advice on plans as they are run.

    Args:
        two_phase: windows are aggregated before rows are distributed, too.
    """
    lines: list[str] = []
    numbers: dict[Relation, int] = {}
    for relation in (relation for plan in plans for relation in plan.walk()):
        line = _line_on(relation, two_phase)
        if line and line not in lines:
            lines.append(line)
        if line:
            numbers[relation] = lines.index(line) + 1
    try:
        ensure_deterministic_updates(plans)
    except SqlError as error:
        lines.append(f"[WARNING] {error.problem}. {_REMEDY}.")
    return PlanAdvice(tuple(lines), numbers)


def _line_on(relation: Relation, two_phase: bool) -> str:
    if isinstance(relation, GroupAggregate):
        is_single = not (relation.is_whole or relation.has_local_phase or relation.splits_distinct)
        return _GROUPS if is_single and relation.calls and relation.is_mergeable else ""
    return _WINDOWS if isinstance(relation, WindowAggregate) and relation.has_local_phase and not two_phase else ""


__all__ = ["PlanAdvice", "plan_advice"]
