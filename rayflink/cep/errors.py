"""The error of a pattern that cannot be matched as it is written."""

from __future__ import annotations

from rayflink.common.errors import PlanError


class MalformedPatternException(PlanError):
    """A pattern is put together in a way that has no meaning, or that no automaton can be made of.

    Args:
        problem: what was found.
        remedy: what to write instead.
        line: of the user's program, or "".
    """


__all__ = ["MalformedPatternException"]
