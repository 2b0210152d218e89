"""Explains how a query is run, in Flink's words.

Source: apache/flink PlannerBase.explain; the headings and the form of the plans.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ..explain_detail import ExplainDetail
from ..optimizer.costs import Costs, statistics_text
from ..plan.changelog import ChangelogModes
from ..plan.explain_steps import ShownPlan, ShownStep, tree_text
from ..plan.logical import Relation
from ..plan.plan_format import plan_text
from .plan_advice import plan_advice


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
    costs, roots = Costs(), [shown.of(plan) for plan in run]
    parts = ["== Abstract Syntax Tree ==\n" + "\n\n".join(plan_text(plan) for plan in written)]
    parts += [*_physical(run, roots, shown, details, costs), _execution(roots)]
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
        parts = [*_physical(run, roots, shown, details, costs), *parts]
    if ExplainDetail.JSON_EXECUTION_PLAN in details:
        parts.append(f"== Physical Execution Plan ==\n{json()}")
    return "\n\n".join(parts) + "\n"


def _execution(roots: Sequence[ShownStep]) -> str:
    return "== Optimized Execution Plan ==\n" + tree_text(roots, lambda step: step.text, reuse=True)


def _physical(
    run: Sequence[Relation], roots: Sequence[ShownStep], shown: ShownPlan, details: Collection[ExplainDetail],
    costs: Costs,
) -> list[str]:  # fmt: skip
    """Return the physical plan with its details, and advice behind it."""
    modes = ChangelogModes(run)
    advice = plan_advice(run, shown.two_phase) if ExplainDetail.PLAN_ADVICE in details else None

    def line(step: ShownStep) -> str:
        text = step.text if advice is None else advice.of(step.relation, step.text)
        if ExplainDetail.CHANGELOG_MODE in details:
            text = f"{text[:-1]}, changelogMode={modes.of(step.relation)})"
        return f"{text}: {costs.of(step)}" if ExplainDetail.ESTIMATED_COST in details else text

    title = "== Optimized Physical Plan With Advice ==" if advice is not None else "== Optimized Physical Plan =="
    parts = [f"{title}\n{tree_text(roots, line, reuse=False)}"]
    return parts if advice is None else [*parts, str(advice)]


__all__ = ["execution_plan", "explained"]
