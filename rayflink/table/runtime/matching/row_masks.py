"""Computes which conditions each row meets, as masks, and which rows can change nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.cep.nfa.matcher import UNKNOWN, Matcher

from ...plan.typed import Evaluation, Expr, RowError, Session, with_common_parts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Masks = NDArray[np.int64]
    Truths = NDArray[np.bool_]


class RowMasks:
    """The conditions that depend on a row alone, evaluated by kernels.

    Args:
        conditions: over the fields of a row; condition i is bit i of a mask.

    Attributes:
        tried: number of rows for which each condition was evaluated.
        true: number of those that met it.
    """

    def __init__(self, conditions: Sequence[Expr]) -> None:
        self._conditions = with_common_parts(conditions)
        self.tried = [0] * len(conditions)
        self.true = [0] * len(conditions)

    def masks(self, fields: Sequence[pa.Array], rows: int, session: Session) -> Masks:
        """Return the mask of each row: int64[rows].

        A row for which a condition is an error has the mask UNKNOWN: the condition is evaluated again, and may fail the
        job, only where a partial match needs it.
        """
        masks = np.zeros(rows, dtype=np.int64)
        failed: list[int] = []
        evaluation = Evaluation(fields, rows, session)
        for number, condition in enumerate(self._conditions):
            try:
                answers = evaluation.column(condition)
            except RowError:
                answers = self._one_by_one(condition, fields, rows, session, failed)
            truths = answers.fill_null(False).to_numpy(zero_copy_only=False).astype(np.bool_)
            self.tried[number] += rows
            self.true[number] += int(truths.sum())
            masks |= truths.astype(np.int64) << number
        masks[failed] = UNKNOWN
        return masks

    def _one_by_one(
        self, condition: Expr, fields: Sequence[pa.Array], rows: int, session: Session, failed: list[int]
    ) -> pa.Array:
        answers: list[bool | None] = []
        for row in range(rows):
            try:
                answers.append(
                    Evaluation([column.slice(row, 1) for column in fields], 1, session).column(condition)[0].as_py()
                )
            except RowError:
                answers.append(None)
                failed.append(row)
        return pa.array(answers, pa.bool_())

    def evaluate(self, number: int, fields: Sequence[pa.Array], session: Session) -> bool:
        """Return whether one row meets a condition.

        Raises:
            RowError: it is an error.
        """
        answer = Evaluation(fields, 1, session).column(self._conditions[number])[0].as_py() is True
        self.tried[number] += 1
        self.true[number] += answer
        return answer


def rows_that_matter(matcher: Matcher, masks: Masks, begins: Masks, has_matches: Truths) -> Truths:
    """Return which rows may begin a match, or come while their key may have a partial match: bool[n].

    Args:
        masks: of rows in the order of their keys, and of their times within a key: int64[n].
        begins: the place of the first row of each row's key: int64[n].
        has_matches: whether the key of a row has partial matches before its first row: bool[n].
    """
    distinct, which = np.unique(masks, return_inverse=True)
    may_start = _flags(distinct, matcher.may_start)[which]
    is_end = _flags(distinct, matcher.ends_all)[which] & ~may_start
    places = np.arange(len(masks))
    decisive = np.maximum.accumulate(np.where(may_start | is_end, places, -1))
    before = np.concatenate([[-1], decisive[:-1]])
    is_known = before >= begins
    has_some: Truths = np.where(is_known, may_start[np.maximum(before, 0)], has_matches)
    return may_start | has_some


def _flags(masks: Masks, flag: Callable[[int], bool]) -> Truths:
    return np.array([flag(mask) for mask in masks.tolist()], dtype=np.bool_)


__all__ = ["RowMasks", "rows_that_matter"]
