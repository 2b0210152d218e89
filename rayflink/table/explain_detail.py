"""The details that `explain` can add to a plan."""

from enum import Enum

__all__ = ["ExplainDetail"]


class ExplainDetail(Enum):
    """A detail that `explain` can add to a plan.

    >>> from rayflink.table import EnvironmentSettings, TableEnvironment
    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> plan = t_env.explain_sql("SELECT UPPER(w) FROM (VALUES ('a')) AS t(w)", ExplainDetail.CHANGELOG_MODE)
    >>> print(plan.partition("== Optimized Physical Plan ==\\n")[2].partition("\\n\\n")[0])
    Calc(select=[UPPER(EXPR$0) AS EXPR$0], changelogMode=[I])
    +- Values(tuples=[[{ a }]], changelogMode=[I])
    """

    ESTIMATED_COST = 0
    """Rows and costs of each step, as far as they can be guessed."""

    CHANGELOG_MODE = 1
    """The changes that each step makes to rows: insertions, updates, deletions."""

    JSON_EXECUTION_PLAN = 2
    """The operators in JSON."""

    PLAN_ADVICE = 3
    """Advice that could make the query faster."""
