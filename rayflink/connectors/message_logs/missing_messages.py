"""The policy for messages that a log has deleted before they were read."""

from __future__ import annotations

from enum import Enum


class MissingMessages(Enum):
    """The treatment of messages that a log has deleted before the source has read them."""

    FAIL = "fail"
    """The job fails, and its error says how many are missing."""
    SKIP = "skip"
    """They are counted in the metric `numMessagesMissing` and logged, and the source goes on behind them."""


__all__ = ["MissingMessages"]
