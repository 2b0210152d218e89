"""The test kit: operators under every hardship, and whole jobs from a seed. See docs/testing.md."""

from .elements import active, at, columns, end, idle, in2, rec, side, wm
from .hardships import HARDSHIPS, verify
from .harness import OperatorHarness, Place

__all__ = [
    "HARDSHIPS",
    "OperatorHarness",
    "Place",
    "active",
    "at",
    "columns",
    "end",
    "idle",
    "in2",
    "rec",
    "side",
    "verify",
    "wm",
]
