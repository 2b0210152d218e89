"""PyFlink's module of the changes that streams of rows have."""

from .changelog import ChangelogMode

__all__ = ["ChangelogMode"]
