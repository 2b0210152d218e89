"""How a query is run, in Flink's words."""

from __future__ import annotations

from collections.abc import Sequence

from .logical import Relation, plan_text
from .rules import optimized


def explained(plans: Sequence[Relation]) -> str:
    """The plans as written, and as they are run."""
    written = "\n\n".join(plan_text(plan) for plan in plans)
    run = "\n\n".join(plan_text(optimized(plan)) for plan in plans)
    return f"== Abstract Syntax Tree ==\n{written}\n\n== Optimized Physical Plan ==\n{run}\n"
