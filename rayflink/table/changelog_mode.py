"""PyFlink's module of the changes that streams of rows have."""

from .plan.changelog import ChangelogMode

__all__ = ["ChangelogMode"]
