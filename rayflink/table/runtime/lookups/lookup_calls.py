"""Asks a table for the rows of keys: cache, repetitions of what failed or was missing, and time-outs.

All of it runs in the event loop of the operator; functions that block are called in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from inspect import isawaitable, iscoroutinefunction
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.common.errors import ConnectorError, described
from rayflink.common.functions.function_classes import RuntimeContext
from rayflink.common.text_output.logs import get_logger

from ..keyed_state.key_rows import take_rows
from .found_rows import FoundRows, rows_in_order
from .key_numbers import KeyNumbers
from .lookup_function import LookupFailed, LookupRows, TableLookup
from .partial_cache import PartialCache

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

log = get_logger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0


@dataclass(frozen=True)
class LookupSettings:
    """The way in which a table is asked.

    Args:
        capacity: requests under way at most, at least 1.
        is_ordered: whether results leave in the order of the rows.
        timeout_ms: for a request with all its repetitions; 0: for ever.
        miss_retries: how often keys without rows are asked for again; 0: they are not.
        miss_delay_ms: pause before they are.
    """

    capacity: int = 1
    is_ordered: bool = True
    timeout_ms: int = 0
    miss_retries: int = 0
    miss_delay_ms: int = 0


@dataclass(frozen=True, eq=False)
class _Load:
    """Keys that are asked for, and their rows once these are there."""

    keys: KeyNumbers
    rows: asyncio.Future[FoundRows]


class LookupCalls:
    """Finds the rows of keys.

    Args:
        table: its name, for messages.
        lookup: how it is asked.
        keys: schema of the key columns.
        rows: schema of the columns that are asked for.
        settings: time-outs and repetitions.
        in_thread: whether functions that block are called in a thread.
    """

    def __init__(
        self, table: str, lookup: TableLookup, keys: pa.Schema, rows: pa.Schema, settings: LookupSettings,
        in_thread: bool,
    ) -> None:  # fmt: skip
        self._table, self._lookup, self._keys, self._rows, self._settings = table, lookup, keys, rows, settings
        function = lookup.function
        blocks = function.blocks and not iscoroutinefunction(function.look_up)
        self._pool: ThreadPoolExecutor | None = None
        if blocks and in_thread:
            self._pool = ThreadPoolExecutor(settings.capacity, thread_name_prefix="rayflink-lookup")
        self._cache: PartialCache | None = None
        self._under_way: list[_Load] = []

    def open(self, context: RuntimeContext, now_ms: Callable[[], int]) -> None:
        """Open the function.

        Raises: whatever it raises.
        """
        metrics = context.get_metrics_group()
        if self._lookup.cache is not None:
            kinds = self._keys.types, self._rows.types
            self._cache = PartialCache(self._lookup.cache, *kinds, now_ms, metrics)
        self._now_ms, self._latest_ms = now_ms, -1
        self._loads, self._retries = metrics.counter("loadCount"), metrics.counter("numRetries")
        self._failures, self._timeouts = metrics.counter("numLoadFailures"), metrics.counter("numTimeouts")
        self._requests, self._misses = metrics.counter("numRequests"), metrics.counter("numMissRetries")
        metrics.gauge("latestLoadTime", lambda: self._latest_ms)
        self._lookup.function.open(context)

    def close(self) -> None:
        """Close the function; a call that is under way in a thread is not waited for."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._lookup.function.close()

    async def find(self, keys: Sequence[pa.Array]) -> FoundRows:
        """Return the rows of keys, at least one, no two of them equal, without nulls.

        Raises:
            LookupFailed: they could not be looked up, in time or at all.
        """
        if self._cache is None:
            return await self._load_in_time(keys)
        by_key, is_missing = self._cache.find(keys)
        missing = np.flatnonzero(is_missing)
        shared: list[tuple[Numbers, Numbers, asyncio.Future[FoundRows]]] = []
        for load in self._under_way if len(missing) else ():
            places = load.keys.find(take_rows(keys, missing))
            shared.append((missing[places >= 0], places[places >= 0], load.rows))
            missing = missing[places < 0]
        if len(missing):
            wanted = keys if len(missing) == len(is_missing) else take_rows(keys, missing)
            loaded = await self._load_once(self._cache, wanted)
            by_key = loaded if len(missing) == len(is_missing) else by_key.with_rows_of(missing, loaded)
        for numbers, places, rows in shared:
            if len(numbers):
                other = await asyncio.shield(rows)
                by_key = by_key.with_rows_of(
                    numbers, FoundRows(other.columns, other.firsts[places], other.counts[places])
                )
        return by_key

    async def _load_once(self, cache: PartialCache, keys: Sequence[pa.Array]) -> FoundRows:
        """Load rows into the cache; requests for the same keys wait for them meanwhile."""
        numbers = KeyNumbers(self._keys.types)
        numbers.add(keys)
        load = _Load(numbers, asyncio.get_running_loop().create_future())
        self._under_way.append(load)
        try:
            loaded = await self._load_in_time(keys)
        except Exception as error:
            load.rows.set_exception(error)
            load.rows.exception()  # perhaps no other request waits for it
            raise
        else:
            cache.add(keys, loaded)
            load.rows.set_result(loaded)
            return loaded
        finally:
            self._under_way.remove(load)

    async def _load_in_time(self, keys: Sequence[pa.Array]) -> FoundRows:
        timeout_ms = self._settings.timeout_ms
        if not timeout_ms:
            return await self._load(keys)
        try:
            return await asyncio.wait_for(self._load(keys), timeout_ms / 1000)
        except asyncio.TimeoutError as error:
            self._timeouts.inc()
            problem = f"the lookup in {self._table} took longer than {timeout_ms} ms"
            remedy = "raise 'timeout' of the hint LOOKUP or 'table.exec.async-lookup.timeout', or index the table's key"
            raise LookupFailed(problem, remedy) from error

    async def _load(self, keys: Sequence[pa.Array]) -> FoundRows:
        """Load rows, and those of keys without any again, where that is asked for."""
        by_key, settings = await self._ask(keys), self._settings
        for _ in range(settings.miss_retries):
            missing = np.flatnonzero(by_key.counts == 0)
            if not len(missing):
                break
            await asyncio.sleep(settings.miss_delay_ms / 1000)
            self._misses.inc(len(missing))
            by_key = by_key.with_rows_of(missing, await self._ask(take_rows(keys, missing)))
        return by_key

    async def _ask(self, keys: Sequence[pa.Array]) -> FoundRows:
        """Ask the table, and again while it is away."""
        batch, retries = pa.RecordBatch.from_arrays(list(keys), schema=self._keys), self._lookup.max_retries
        for attempt in range(retries + 1):
            began_ms = self._now_ms()
            try:
                answer = await self._call(batch)
            except (ConnectionError, TimeoutError, asyncio.TimeoutError) as error:
                self._failures.inc()
                if attempt == retries:
                    problem = f"{self._table} could not be asked in {retries + 1} tries: {described(error)}"
                    raise LookupFailed(problem, "start its server again, or raise 'lookup.max-retries'") from error
                log.warning("a lookup in %s is repeated: %s", self._table, described(error))
                self._retries.inc()
                await asyncio.sleep(min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 4**attempt))
                continue
            except Exception as error:
                self._failures.inc()
                cause, remedy = described(error), "correct what it says; such an error is not repeated"
                if isinstance(error, ConnectorError):
                    cause, remedy = error.problem, error.remedy
                raise LookupFailed(f"the lookup in {self._table} failed: {cause}", remedy) from error
            self._requests.inc()
            self._loads.inc(len(batch))
            self._latest_ms = self._now_ms() - began_ms
            return rows_in_order(answer, batch, self._rows, self._table)
        raise AssertionError("the last try returns or raises")

    async def _call(self, keys: pa.RecordBatch) -> LookupRows:
        if self._pool is None:
            answer = self._look_up(keys)
        else:
            answer = await asyncio.get_running_loop().run_in_executor(self._pool, self._look_up, keys)
        return await answer if isawaitable(answer) else answer

    def _look_up(self, keys: pa.RecordBatch) -> LookupRows | Awaitable[LookupRows]:
        try:
            return self._lookup.function.look_up(keys)
        except StopIteration as error:  # no future takes it, so that the call would be under way for ever
            raise RuntimeError("StopIteration, perhaps of next() without a default") from error


__all__ = ["LookupCalls", "LookupSettings"]
