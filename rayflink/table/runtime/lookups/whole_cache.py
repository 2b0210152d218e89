"""All rows of a table in memory, found by key: `lookup.cache` = FULL, read again from time to time."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from rayflink.common.errors import described
from rayflink.common.functions.function_classes import RuntimeContext
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.text_output.logs import get_logger
from rayflink.operators.async_io.event_loops import SteppedLoop

from ..aggregates.grouping import grouped
from ..aggregates.reductions import combine_chunks
from ..keyed_state.key_rows import take_rows
from .found_rows import FoundRows
from .key_numbers import KeyNumbers
from .lookup_function import LookupFunction, LookupRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")
log = get_logger(__name__)


class TableReader(ABC):
    """Reads all rows of a table; a value that can be pickled."""

    @abstractmethod
    def read(
        self, config: Mapping[str, object], metrics: MetricGroup, is_cancelled: Callable[[], bool]
    ) -> pa.Table:
        """Return all rows.

        Args:
            config: the job's options.
            is_cancelled: asked from time to time; the rows are not needed any more.

        Raises: what keeps the table from being read.
        """


@dataclass(frozen=True)
class IndexedRows:
    """The rows of a table by key; those with NULL in a key are left out.

    Args:
        keys: numbers of the keys.
        by_key: the rows of each number.
        schema: of the rows.
    """

    keys: KeyNumbers
    by_key: FoundRows
    schema: pa.Schema

    @classmethod
    def of(cls, table: pa.Table, keys: Sequence[str]) -> IndexedRows:
        """Return the rows of a table by some of its columns."""
        columns = [combine_chunks(table.column(name)) for name in keys]
        for column in columns:
            if column.null_count:
                return cls.of(table.filter(_all_valid(columns)), keys)
        groups = grouped(columns, table.num_rows)
        numbers = KeyNumbers([column.type for column in columns])
        if table.num_rows:
            numbers.add(groups.keys)
        rows = [combine_chunks(column) for column in table.columns]
        return cls(numbers, FoundRows.of(rows, groups.codes, groups.count), table.schema)

    def look_up(self, keys: Sequence[pa.Array]) -> LookupRows:
        """Return the rows of some keys."""
        numbers = self.keys.find(keys)
        known = np.flatnonzero(numbers >= 0)
        counts = np.zeros(len(numbers), dtype=np.int64)
        counts[known] = self.by_key.counts[numbers[known]]
        chosen = FoundRows([], self.by_key.firsts[numbers[known]], counts[known]).row_numbers()
        rows = pa.RecordBatch.from_arrays(take_rows(self.by_key.columns, chosen), schema=self.schema)
        return LookupRows(rows, np.repeat(np.arange(len(numbers)), counts))


def _all_valid(columns: Sequence[pa.Array]) -> pa.Array:
    valid: NDArray[np.bool_] = np.ones(len(columns[0]), dtype=np.bool_)
    for column in columns:
        valid &= column.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(valid)


class WholeTableLookup(LookupFunction):
    """Reads a table with the first keys, and finds rows in memory; reads it again in the background.

    If the first reading fails, so does the lookup; if a later one fails, the rows before it stay, which is counted and
    logged.

    Args:
        reader: of the table.
        keys: names of the key columns.
        reload_ms: pause between two readings; None: it is read once.
        is_fixed_rate: the pause is from the begin of a reading to that of the next one, not from its end.
    """

    is_async = True
    blocks = False

    def __init__(
        self, reader: TableReader, keys: Sequence[str], reload_ms: int | None = None, is_fixed_rate: bool = False
    ) -> None:
        self._reader, self._names, self._reload_ms, self._is_fixed_rate = reader, tuple(keys), reload_ms, is_fixed_rate
        self._rows: IndexedRows | None = None
        self._loading: asyncio.Task[IndexedRows] | None = None
        self._reloads: asyncio.Task[None] | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._is_closed = False
        self._config: Mapping[str, object] = {}

    def configure(self, config: Mapping[str, object]) -> None:
        self._config = config

    def open(self, context: RuntimeContext) -> None:
        metrics = context.get_metrics_group()
        self._metrics = metrics
        self._hits, self._misses = metrics.counter("hitCount"), metrics.counter("missCount")
        self._reads, self._read_failures = metrics.counter("numTableReads"), metrics.counter("numTableReadFailures")
        metrics.gauge("numCachedRecord", lambda: 0 if self._rows is None else len(self._rows.by_key.columns[0]))

    def close(self) -> None:
        self._is_closed = True
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    async def look_up(self, keys: pa.RecordBatch) -> LookupRows:
        rows = self._rows
        if rows is None:
            if self._loading is None:
                self._loading = asyncio.ensure_future(self._read())
            loading = self._loading
            try:
                rows = self._rows = await asyncio.shield(loading)
            finally:
                if loading.done():
                    self._loading = None
            if self._reload_ms is not None and self._reloads is None:
                self._reloads = asyncio.ensure_future(self._reload(self._reload_ms / 1000))
        answer = rows.look_up(keys.columns)
        hits = len(np.unique(answer.keys)) if answer.keys is not None else 0
        self._hits.inc(hits)
        self._misses.inc(len(keys) - hits)
        return answer

    async def _read(self) -> IndexedRows:
        def work() -> IndexedRows:
            rows = self._reader.read(self._config, self._metrics, lambda: self._is_closed)
            return IndexedRows.of(rows, self._names)

        rows = await self._aside(work)
        self._reads.inc()
        return rows

    async def _reload(self, pause_s: float) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + pause_s
        while True:
            await asyncio.sleep(max(0.0, due - loop.time()))
            began = loop.time()
            try:
                self._rows = await self._read()
            except Exception as error:  # the rows before it stay, and the next reading may succeed
                self._read_failures.inc()
                log.warning("a table in memory could not be read again, its rows stay: %s", described(error))
            due = (began if self._is_fixed_rate else loop.time()) + pause_s

    async def _aside(self, work: Callable[[], T]) -> T:
        """Do work that blocks in a thread, where the loop does not follow the clock of a test."""
        loop = asyncio.get_running_loop()
        if isinstance(loop, SteppedLoop):
            return work()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="rayflink-lookup-table")
        return await loop.run_in_executor(self._pool, work)


__all__ = ["IndexedRows", "TableReader", "WholeTableLookup"]
