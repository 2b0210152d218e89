"""The kinds of results that statements have."""

from __future__ import annotations


class ResultKind:
    """SUCCESS: it has none, and what was to be done is done; SUCCESS_WITH_CONTENT: it has rows."""

    SUCCESS = 0
    SUCCESS_WITH_CONTENT = 1


__all__ = ["ResultKind"]
