"""The changes of the results of groups that are emitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ..changes import changed, replaced_rows
from ..keyed_state.frame_memory import Columns
from ..keyed_state.key_rows import take_rows

if TYPE_CHECKING:
    from .segments import Numbers, Truths


@dataclass(frozen=True)
class Shown:
    """Results that may be shown.

    Args:
        after, before: results behind each change, and before it.
        has_after, has_before: whether the group has any row then.
        places: the row that brings it.
    """

    after: Columns
    before: Columns
    has_after: Truths
    has_before: Truths
    places: Numbers


class ResultChanges:
    """Makes changes of results.

    Args:
        schema: of the result: keys, then aggregates.
        expires: groups expire; then an update shows that a group is in use, as in Flink, even if the result stays.
        with_before: whether an update includes the row before.
    """

    def __init__(self, schema: pa.Schema, expires: bool, with_before: bool) -> None:
        self._schema, self._expires, self._with_before = schema, expires, with_before

    def of(self, keys: Columns, shown: Shown) -> pa.RecordBatch:
        """Return the changes of results, in the order of the rows that bring them.

        Args:
            keys: columns of the key of these rows.
        """
        both = shown.has_before & shown.has_after
        is_shown = shown.has_before | shown.has_after
        if not self._expires:
            is_shown &= ~both | changed(shown.after, shown.before, both) if shown.after else ~both
        chosen = np.flatnonzero(is_shown)
        chosen = chosen[np.argsort(shown.places[chosen], kind="stable")]
        keys = take_rows(keys, shown.places[chosen])
        return replaced_rows(
            self._batch(keys, take_rows(shown.after, chosen), len(chosen)),
            self._batch(keys, take_rows(shown.before, chosen), len(chosen)),
            shown.has_after[chosen], shown.has_before[chosen], self._with_before,
        )  # fmt: skip

    def _batch(self, keys: Columns, results: Columns, rows: int) -> pa.RecordBatch:
        columns = [column if column.type == field.type else column.cast(field.type)
                   for column, field in zip([*keys, *results], self._schema, strict=True)]  # fmt: skip
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


__all__ = ["ResultChanges", "Shown"]
