"""Explains how a query is run, in Flink's words.

Source: apache/flink PlannerBase.explain; the headings and the form of the plans.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ..explain_detail import ExplainDetail
from ..optimizer.costs import Costs, statistics_text
from ..plan.changelog import ChangelogModes
from ..plan.explain_steps import ShownPlan, ShownStep, tree_text
from ..plan.logical import Relation, WindowAggregate
from ..plan.plan_format import plan_text


def explained(
    written: Sequence[Relation], run: Sequence[Relation], shown: ShownPlan, details: Collection[ExplainDetail],
    json: Callable[[], str],
) -> str:  # fmt: skip
    """Return the plans as written, and as they are run.

    Args:
        written: before rules were applied.
        run: behind them.
        shown: makes steps of them.
        details: further details.
        json: gives the operators.
    """
    costs = Costs()
    advised = ExplainDetail.PLAN_ADVICE in details
    line = _line(run, details, costs)
    roots = [shown.of(plan) for plan in run]
    parts = [
        "== Abstract Syntax Tree ==\n" + "\n\n".join(plan_text(plan) for plan in written),
        f"== Optimized Physical Plan{' With Advice' if advised else ''} ==\n" + tree_text(roots, line, reuse=False),
    ]
    if advised:
        parts.append(_advice(run, shown.two_phase))
    parts.append(_execution(roots))
    if ExplainDetail.JSON_EXECUTION_PLAN in details:
        parts.append(f"== Physical Execution Plan ==\n{json()}")
    if ExplainDetail.ESTIMATED_COST in details:
        parts.append(f"== Statistics ==\n{statistics_text(run, costs.estimates)}")
    return "\n\n".join(parts) + "\n"


def execution_plan(
    run: Sequence[Relation], shown: ShownPlan, details: Collection[ExplainDetail], json: Callable[[], str]
) -> str:
    """Return plans as they are run, whose statements are not known; see `explained`."""
    roots, costs = [shown.of(plan) for plan in run], Costs()
    parts = [_execution(roots)]
    if details and set(details) != {ExplainDetail.JSON_EXECUTION_PLAN}:
        parts = ["== Optimized Physical Plan ==\n" + tree_text(roots, _line(run, details, costs), reuse=False), *parts]
    if ExplainDetail.JSON_EXECUTION_PLAN in details:
        parts.append(f"== Physical Execution Plan ==\n{json()}")
    return "\n\n".join(parts) + "\n"


def _execution(roots: Sequence[ShownStep]) -> str:
    return "== Optimized Execution Plan ==\n" + tree_text(roots, lambda step: step.text, reuse=True)


def _line(
    run: Sequence[Relation], details: Collection[ExplainDetail], costs: Costs
) -> Callable[[ShownStep], str]:
    """Return how the line of a step is shown with its details."""
    modes = ChangelogModes(run)

    def line(step: ShownStep) -> str:
        text = step.text
        if ExplainDetail.CHANGELOG_MODE in details:
            text = f"{text[:-1]}, changelogMode={modes.of(step.relation)})"
        return f"{text}: {costs.of(step)}" if ExplainDetail.ESTIMATED_COST in details else text

    return line


def _advice(plans: Sequence[Relation], two_phase: bool) -> str:
    if two_phase or not any(isinstance(node, WindowAggregate) and node.has_local_phase
                            for plan in plans for node in plan.walk()):  # fmt: skip
        return "No available advice..."
    line = "You might want to set 'table.optimizer.agg-phase-strategy' to 'AUTO': windows are then aggregated"
    return (
        f"advice[1]: [ADVICE] {line} before rows are distributed, too, so that a key with many rows delays no subtask."
    )


__all__ = ["execution_plan", "explained"]
