"""Chooses the rows of a batch of columns that a pattern needs, before any becomes a Python value."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

from rayflink.common.records.batches import ArrowBatch, RowBatch, rows_of
from rayflink.operators.user_function import timestamps_of

from ..nfa.masks import EventConditions
from ..nfa.matcher import UNKNOWN, Matcher

MOST_UNDECIDED = 6
"""Conditions on Python values beyond which all rows become Python values."""


class ChosenRows(NamedTuple):
    """The rows of a batch that may change a match or are late.

    Args:
        batch: these rows.
        masks: of them.
        skipped: number of the other rows.
    """

    batch: RowBatch
    masks: list[int]
    skipped: int


class RowChoice:
    """Chooses rows by the conditions on columns, which are evaluated once for a batch.

    A row is left out where its mask can change no match, whatever the conditions are that need it as a Python value.

    Args:
        conditions, matcher: of the pattern.
    """

    def __init__(self, conditions: EventConditions, matcher: Matcher) -> None:
        self._conditions, self._matcher = conditions, matcher
        self._bits = [0]
        undecided = conditions.undecided
        self.is_possible = conditions.are_on_columns and len(undecided) <= MOST_UNDECIDED
        """Whether columns tell which rows are left out."""
        if self.is_possible:
            self._bits = [sum(bits) for bits in product(*((0, 1 << index) for index in undecided))]
        self._is_complete = not undecided
        self._needed: dict[int, bool] = {}

    def choose(self, batch: ArrowBatch, watermark: int | None) -> ChosenRows:
        """Return the rows that are needed.

        Args:
            watermark: rows up to it are late; None where none is.
        Raises:
            MalformedPatternException: a condition does not take the columns; names its line.
        """
        import pyarrow

        masks = self._conditions.column_masks(batch.data)
        distinct, which = np.unique(masks, return_inverse=True)
        is_needed = np.array([self._is_needed(mask) for mask in distinct.tolist()], dtype=np.bool_)[which]
        if watermark is not None:
            is_needed |= batch.timestamps <= watermark
        places = np.flatnonzero(is_needed)
        if len(places) < len(batch):
            stamps = None if batch.timestamps is None else batch.timestamps[places]
            batch = ArrowBatch(batch.data.take(pyarrow.array(places)), stamps)
        values = list(rows_of(batch))
        chosen = masks[places].tolist()
        if not self._is_complete:
            chosen = self._conditions.complete(chosen, values)
        return ChosenRows(RowBatch(values, timestamps_of(batch)), chosen, len(masks) - len(places))

    def _is_needed(self, mask: int) -> bool:
        answer = self._needed.get(mask)
        if answer is None:
            matters = self._matcher.matters
            answer = self._needed[mask] = mask == UNKNOWN or any(matters(mask | bits) for bits in self._bits)
        return answer


__all__ = ["ChosenRows", "RowChoice"]
