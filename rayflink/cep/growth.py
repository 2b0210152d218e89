"""The growth of the number of partial matches, for patterns that nothing bounds."""

from __future__ import annotations

from dataclasses import dataclass

from .pattern import AnyPattern
from .quantifier import ConsumingStrategy, Repetition


@dataclass(frozen=True)
class Growth:
    """The greatest number of partial matches of a key after n events that meet the conditions.

    Args:
        is_exponential: whether each further event may double it.
        degree: else, the power of n.

    >>> print(Growth(is_exponential=False, degree=2))
    n^2
    """

    is_exponential: bool
    degree: int

    def __str__(self) -> str:
        if self.is_exponential:
            return "2^n"
        return "1" if self.degree == 0 else "n" if self.degree == 1 else f"n^{self.degree}"

    @property
    def explodes(self) -> bool:
        """Return whether it is more than one partial match for each event."""
        return self.is_exponential or self.degree > 1


def growth_of(pattern: AnyPattern) -> Growth | None:
    """Return how the partial matches of a pattern can grow; None where `within` bounds them.

    Each event may begin a partial match. Behind `followed_by_any` each of the later events may continue it, and it
    waits for others, too. Where a loop allows combinations, each event may be taken or passed by.

    >>> from rayflink.cep.pattern import Pattern
    >>> print(growth_of(Pattern.begin("a").followed_by_any("b").one_or_more().followed_by("c")))
    n^2
    >>> print(growth_of(Pattern.begin("a").one_or_more().allow_combinations().followed_by("b")))
    2^n
    >>> growth_of(Pattern.begin("a").followed_by_any("b").one_or_more().within(1000)) is None
    True
    """
    if _is_bounded(pattern):
        return None
    steps = pattern.steps()
    degree = 1 + sum(map(_choices, steps))
    last = steps[-1]
    if last.quantifier.repetition is Repetition.SINGLE and last.group is None:
        degree -= _choices(last)  # an event that it takes completes a match, and no partial match remains
    return Growth(any(map(_is_exponential, steps)), degree)


def _is_bounded(pattern: AnyPattern) -> bool:
    return any(
        step.window_ms() is not None or (step.group is not None and _is_bounded(step.group)) for step in pattern.steps()
    )


def _is_exponential(step: AnyPattern) -> bool:
    loops = step.quantifier.repetition is Repetition.LOOPING
    if loops and step.quantifier.inner_strategy is ConsumingStrategy.SKIP_TILL_ANY:
        return True
    if step.group is None:
        return False
    inner = step.group.steps()
    return any(map(_is_exponential, inner)) or (loops and any(map(_choices, inner)))


def _choices(step: AnyPattern) -> int:
    """Return the number of steps in it that may take any of the later events."""
    any_gap = int(step.quantifier.strategy is ConsumingStrategy.SKIP_TILL_ANY)
    return any_gap + (0 if step.group is None else sum(map(_choices, step.group.steps())))


__all__ = ["Growth", "growth_of"]
