"""The rules of an operator with patterns that change: those that are in effect, and those that wait for their time.

Of two rules of one id the one with the greater version is in effect, in whatever order they come, so the subtasks of
an operator agree though the rules of several sources reach them in several orders. An id whose pattern was removed
keeps the version of its removal.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from operator import attrgetter

from ..rules import PatternRule, RuleName


@dataclass(frozen=True)
class PendingRule:
    """A rule that takes effect at a time.

    Args:
        timestamp: epoch milliseconds; events of this time are the first that it applies to.
        rule: the rule.
    """

    timestamp: int
    rule: PatternRule


_order = attrgetter("timestamp", "rule.pattern_id", "rule.version")


@dataclass
class RuleBook:
    """The rules that an operator knows.

    Args:
        current: id -> the rule in effect, which may be one that removes the pattern.
        pending: rules whose time is to come, in the order in which they take effect.
        disabled: names of rules a condition of which has failed, so that they no longer match.
    """

    current: dict[str, PatternRule] = field(default_factory=dict)
    pending: list[PendingRule] = field(default_factory=list)
    disabled: set[RuleName] = field(default_factory=set)

    def refusal(self, rule: PatternRule) -> str | None:
        """Return why a rule cannot take effect now; None if it can.

        >>> book = RuleBook({"large": PatternRule("large", 2)})
        >>> book.refusal(PatternRule("large", 3)) is None
        True
        >>> book.refusal(PatternRule("large", 1))
        "version 1 of the pattern 'large' is not newer than version 2, which is in effect"
        """
        current = self.current.get(rule.pattern_id)
        if current is None or rule.version > current.version:
            return None
        return (
            f"version {rule.version} of the pattern {rule.pattern_id!r} is not newer than version {current.version}, "
            "which is in effect"
        )

    def wait(self, rule: PatternRule, timestamp: int) -> None:
        """Let a rule take effect at a time."""
        pending = PendingRule(timestamp, rule)
        if pending not in self.pending:
            insort(self.pending, pending, key=_order)

    def next_change(self) -> int | None:
        """Return the timestamp at which the next rule takes effect; None if none waits."""
        return self.pending[0].timestamp if self.pending else None

    def take_due(self, until: int) -> list[PatternRule]:
        """Remove and return the rules that take effect up to a time, in their order."""
        due = [pending.rule for pending in self.pending if pending.timestamp <= until]
        del self.pending[: len(due)]
        return due

    def take_outdated(self) -> list[PatternRule]:
        """Remove and return the rules that wait for their time, and can no longer take effect.

        >>> book = RuleBook({"large": PatternRule("large", 2)})
        >>> book.wait(PatternRule("large", 1), timestamp=10)
        >>> book.take_outdated(), book.pending
        ([PatternRule('large', 1, None)], [])
        """
        outdated = [pending.rule for pending in self.pending if self.refusal(pending.rule) is not None]
        if outdated:
            self.pending = [pending for pending in self.pending if self.refusal(pending.rule) is None]
        return outdated

    def forget_disabled(self) -> None:
        """Forget the disabled rules in the place of which a newer one is, or none."""
        self.disabled &= {rule.name for rule in self.current.values()}

    def changes_soon(self, name: RuleName) -> bool:
        """Return whether another rule of this id waits for its time."""
        return any(pending.rule.pattern_id == name[0] for pending in self.pending)


__all__ = ["PendingRule", "RuleBook"]
