"""Window Top-N and deduplication: the first rows of each key in each window, when the window is over.

Of rows that are equal in the order those that came first are taken; where windows are deduplicated by the last row,
those that came last.

Source: apache/flink WindowRankProcessor, RowTimeWindowDeduplicateProcessor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch, Batch, Element

from ..aggregates.grouping import grouped
from ..aggregates.partial_aggregates import concatenated
from ..aggregates.window_spec import WindowSpec
from ..keyed_state.frame_memory import Columns
from ..windows.local_phase import LocalPhase
from ..windows.sliced_rows import local_ms
from ..windows.sliced_windows import SlicedWindows
from .ranking import RankedRows, Ranking


class LocalRank(LocalPhase):
    """The first phase: of the rows at hand, those that may be among the wanted ones.

    Args:
        ranking: which are wanted.
    """

    def __init__(self, ranking: Ranking) -> None:
        super().__init__(ranking.input)
        self._ranked = RankedRows(ranking)

    def partial(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        ranked = self._ranked
        columns = ranked.from_rows(rows)
        ends = [] if ranked.end_column is None else [columns[ranked.end_column]]
        groups = grouped([*ends, *columns[: ranked.width]], rows.num_rows)
        return pa.RecordBatch.from_arrays(ranked.merge(columns, groups), schema=ranked.schema)


class WindowRankOperator(SlicedWindows):
    """The second phase: takes rows that are partitioned by the `key_names` of the ranking, in windows of event time.

    Args:
        ranking: as for the first phase.
        window: that of the ranking.
        schema: of the result: the columns that came in, and the number.
    """

    def __init__(self, ranking: Ranking, window: WindowSpec, schema: pa.Schema) -> None:
        self._ranked = RankedRows(ranking)
        super().__init__(window, self._ranked)
        self._schema = schema

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        if len(batch):
            assert self._ranked.end_column is not None, "windows have bounds"
            columns = list(batch.data.columns)
            ends = local_ms(columns[self._ranked.end_column], self._window.shift_zone, "window_end")
            self.add(ends, columns)
        return ()

    def fired(self, windows: list[tuple[int, list[Columns]]]) -> Iterator[ArrowBatch]:
        ranked = self._ranked
        if len(windows) == 1:
            for part in self._store.in_parts(windows[0][1]):
                yield self._given(concatenated(part), [])
            return
        columns = concatenated([piece for _, some in windows for piece in some])
        assert ranked.end_column is not None
        yield self._given(columns, [columns[ranked.end_column]])

    def _given(self, columns: Columns, more: list[pa.Array]) -> ArrowBatch:
        groups = grouped([*more, *columns[: self._ranked.width]], len(columns[0]))
        return ArrowBatch(pa.RecordBatch.from_arrays(self._ranked.numbered(columns, groups), schema=self._schema))


__all__ = ["LocalRank", "WindowRankOperator"]
