"""Detects a job that fails again and again for the same reason, so that no restart will help. Pure.

A malformed line, a missing module or folder raises at each attempt; a restart strategy that restarts for ever hides it.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options

from ...messages.messages import TaskFailure

STEADY_MS = 60_000
"""An attempt that ran for longer made progress, unless it failed on the same record."""
MOST_REASONS = 64
_FRAME = re.compile(r'^\s*File "(.*)", line (\d+), in (.*)$', re.MULTILINE)
_CHANCE = re.compile(r"0x[0-9a-f]+|[0-9a-f]{8,}|\d+")


@dataclass(slots=True)
class _Repeated:
    """The number of times that one reason was seen without progress, and where it was seen last."""

    count: int
    restart: int
    record: str


class SameFailures:
    """Counts failures of one operator with the same type of error at the same place.

    The lines of the traceback are the place; where there is none, the message without its numbers is. Failures of one
    restart count once. What ends processes or connections does not count at all. A complete checkpoint is progress, and
    forgets all; so does an attempt that failed on another record and had run for more than `STEADY_MS`.

    Args:
        most: the failure with this number is the last; 0: none is.

    >>> failures = SameFailures(2)
    >>> malformed = TaskFailure("ValueError", "no number: 'x'", "", "Parse")
    >>> [failures.is_last(malformed, restart, ran_ms=5) for restart in range(2)]
    [False, True]
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._seen: OrderedDict[tuple[object, ...], _Repeated] = OrderedDict()

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> SameFailures:
        """Create the counter that `rayflink.restart-strategy.same-failure.attempts` of the job configures."""
        return cls(Configuration.from_dict(config).get(options.SAME_FAILURE_ATTEMPTS))

    def progressed(self) -> None:
        """Reset the counts: a checkpoint is complete."""
        self._seen.clear()

    def is_last(self, failure: TaskFailure, restart: int, ran_ms: int) -> bool:
        """Record a failure; return whether the job has failed so often for this reason that it ends.

        Args:
            restart: how many restarts there were before.
            ran_ms: how long the attempt had been running.
        """
        raised = failure.operator or failure.traceback  # what a lost process leaves has neither
        if not self._most or not raised or failure.is_outage:
            return False
        reason = (failure.operator, failure.kind, _place(failure))
        known = self._seen.pop(reason, None)
        if known is None or (ran_ms > STEADY_MS and failure.record != known.record):
            known = _Repeated(0, -1, failure.record)
        if known.restart != restart:
            known.count += 1
        known.restart, known.record = restart, failure.record
        self._seen[reason] = known
        while len(self._seen) > MOST_REASONS:
            self._seen.popitem(last=False)
        return known.count >= self._most

    @property
    def refusal(self) -> str:
        """Return the job's message when it ends for this reason."""
        times = "once" if self._most == 1 else f"{self._most} times"
        return (
            f"it failed so {times} at the same place, with no checkpoint complete in between, and does not restart: "
            "correct the program or its input, or set "
            f"{options.SAME_FAILURE_ATTEMPTS.key} (now {self._most}; 0: restart as restart-strategy.type says)"
        )


def _place(failure: TaskFailure) -> tuple[object, ...]:
    frames = _FRAME.findall(failure.traceback)
    return tuple(frames) if frames else (_CHANCE.sub("#", failure.message),)


__all__ = ["SameFailures"]
