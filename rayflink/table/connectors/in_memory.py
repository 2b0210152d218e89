"""Columns in the program's memory as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.frames.frame_source import FramePart, FrameSource

from ..runtime.lookups.lookup_function import TableLookup
from .contract import TableSource
from .lookups.whole_tables import RowsInMemory, whole_lookup
from .statistics.in_memory_statistics import statistics_of
from .statistics.table_statistics import TableStatistics

if TYPE_CHECKING:
    import pyarrow

    from rayflink.datastream import StreamExecutionEnvironment
    from rayflink.datastream.streams.stream import DataStream

BLOCK_ROWS = 1 << 16


class HeldColumns:
    """Blocks of columns that travel with the program, as a store that a `FrameSource` reads.

    Args:
        blocks: in order.
    """

    travels = True

    def __init__(self, blocks: Sequence[pyarrow.RecordBatch]) -> None:
        self._blocks = list(blocks)

    @property
    def surroundings(self) -> Mapping[str, str]:
        """None are needed."""
        return {}

    def append(self, partition: int, attempt: int, number: int, block: pyarrow.RecordBatch) -> str:
        """Do nothing: the rows are there already."""
        raise NotImplementedError("the columns of a table in memory are given once")

    def keep(self, parts: Sequence[FramePart]) -> None:
        """Do nothing: all rows stay."""

    def hold(self) -> None:
        """Do nothing: the rows travel with the job."""

    def need_while(self, needed: Callable[[], bool]) -> None:
        """Do nothing: the rows live as long as this object."""

    def read(self, part: FramePart, number: int) -> pyarrow.RecordBatch:
        """Return a block."""
        return self._blocks[number]

    def leave(self) -> None:
        """Do nothing: the rows go with this object."""


class HeldTable(TableSource):
    """Rows of a pyarrow Table, in their order.

    Args:
        table: whose columns have the types of the relation.
        names: of the columns that are read.
    """

    def __init__(self, table: pyarrow.Table, names: Sequence[str] | None = None) -> None:
        self._table, self._names = table, tuple(names if names is not None else table.column_names)
        self.rows = table.num_rows
        self._statistics: TableStatistics | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HeldTable) and (self._table is other._table and self._names == other._names)

    def __hash__(self) -> int:
        return hash((id(self._table), self._names))

    def projected(self, names: Sequence[str]) -> TableSource:
        return HeldTable(self._table, names)

    def limited(self, rows: int) -> TableSource | None:
        return HeldTable(self._table.slice(0, rows), self._names)

    def statistics(self) -> TableStatistics:
        if self._statistics is None:
            self._statistics = statistics_of(self._table.select(list(self._names)))
        return self._statistics

    def lookup(self, keys: Sequence[str]) -> TableLookup | None:
        return whole_lookup(RowsInMemory(self._table.select(list(dict.fromkeys([*self._names, *keys])))), keys)

    def pushed(self) -> tuple[str, ...]:
        whole = list(self._names) == self._table.column_names
        return () if whole else (f"project=[{', '.join(self._names)}]",)

    def stream(self, env: StreamExecutionEnvironment, strategy: WatermarkStrategy | None, name: str) -> DataStream:
        chosen = self._table.select(list(self._names)).combine_chunks()
        blocks = chosen.to_batches(max_chunksize=BLOCK_ROWS)
        frame_part = FramePart(0, 0, "", len(blocks), chosen.num_rows, chosen.nbytes)
        source = FrameSource(HeldColumns(blocks), [frame_part], chosen.schema)
        return env.from_source(source, strategy, name).set_parallelism(1)
