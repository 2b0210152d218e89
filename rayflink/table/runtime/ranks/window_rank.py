"""Window Top-N and deduplication: the first rows of each key in each window, when the window is over.

Of rows that are equal in the order those that came first are chosen; where windows are deduplicated by the last row,
those that came last.

Source: apache/flink WindowRankProcessor, RowTimeWindowDeduplicateProcessor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch, Batch

from ..aggregates.grouping import grouped
from ..aggregates.partial_aggregates import concatenated
from ..aggregates.window_spec import WindowSpec
from ..keyed_state.frame_memory import Columns
from ..windows.input_rows import local_ms
from ..windows.local_phase import LocalPhaseOperator
from ..windows.slice_store import SliceStore
from ..windows.sliced_windows import FiredWindow, SlicedWindows
from ..windows.slicing import Slicing
from ..windows.table_window_operator import TableWindowOperator
from ..windows.window_time import WindowTime
from .ranking import RankedRows, Ranking

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class RankReduction:
    """Leaves those of the rows at hand that may be among the first ones; a `Reduction`.

    Args:
        ranking: which rows are wanted.
    """

    def __init__(self, ranking: Ranking) -> None:
        self._ranked = RankedRows(ranking)

    def reduce(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        ranked = self._ranked
        columns = ranked.from_rows(rows)
        ends = [] if ranked.end_column is None else [columns[ranked.end_column]]
        groups = grouped([*ends, *columns[: ranked.width]], rows.num_rows)
        return pa.RecordBatch.from_arrays(ranked.merge(columns, groups), schema=ranked.schema)

    def needs_rows_before(self, watermark: int) -> bool:
        return True


class ArrivingRankedRows:
    """Reads the rows that a local phase has sent, with the ends of their windows; a `SliceInput`.

    Args:
        ranked: the columns of the rows.
        zone: in whose local time the windows lie.
    """

    def __init__(self, ranked: RankedRows, zone: str) -> None:
        self._ranked, self._zone = ranked, zone

    def read(self, batch: Batch, time: WindowTime) -> tuple[NDArray[np.int64], Columns] | None:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        if not len(batch):
            return None
        assert self._ranked.end_column is not None, "windows have bounds"
        columns = list(batch.data.columns)
        return local_ms(columns[self._ranked.end_column], self._zone, "window_end"), columns


class RankFiring:
    """Numbers the rows of windows by key; a `WindowFiring`.

    Args:
        ranked: which rows are wanted.
        schema: of the result: the columns that came in, and the number.
    """

    def __init__(self, ranked: RankedRows, schema: pa.Schema) -> None:
        self._ranked, self._schema = ranked, schema

    def fire(self, windows: Sequence[FiredWindow], store: SliceStore) -> Iterator[ArrowBatch]:
        if len(windows) == 1:
            for part in store.in_parts(windows[0].pieces):
                yield self._numbered(concatenated(part), [])
            return
        columns = concatenated([piece for window in windows for piece in window.pieces])
        assert self._ranked.end_column is not None, "windows have bounds"
        yield self._numbered(columns, [columns[self._ranked.end_column]])

    def _numbered(self, columns: Columns, ends: list[pa.Array]) -> ArrowBatch:
        groups = grouped([*ends, *columns[: self._ranked.width]], len(columns[0]))
        return ArrowBatch(pa.RecordBatch.from_arrays(self._ranked.numbered(columns, groups), schema=self._schema))


def local_rank(ranking: Ranking) -> LocalPhaseOperator:
    """Return the first phase: it leaves those of the rows at hand that may be among the first ones.

    Args:
        ranking: which rows are wanted.
    """
    return LocalPhaseOperator(ranking.input, RankReduction(ranking))


def window_rank(ranking: Ranking, window: WindowSpec, schema: pa.Schema) -> TableWindowOperator:
    """Return the second phase: it takes rows partitioned by the `key_names` of the ranking, in windows of event time.

    Args:
        ranking: as for the first phase.
        window: that of the ranking.
        schema: of the result: the columns that came in, and the number.
    """
    ranked = RankedRows(ranking)
    rows, firing = ArrivingRankedRows(ranked, window.shift_zone), RankFiring(ranked, schema)
    return TableWindowOperator(window, SlicedWindows(Slicing(window), ranked, rows, firing))


__all__ = ["ArrivingRankedRows", "RankFiring", "RankReduction", "local_rank", "window_rank"]
