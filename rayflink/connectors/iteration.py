"""Any Python iterable as a source: a generator function (async too), a factory of iterators, a SourceFunction."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from rayflink.common.connector_base.source import (
    Boundedness,
    Polled,
    ReaderContext,
    SourceReader,
)
from rayflink.common.connector_base.split_reader import OneByOneReader, SplitCursor
from rayflink.common.errors import InvalidFunction
from rayflink.common.functions.callables import ensure_takes
from rayflink.common.functions.checkpointed_function import checkpointed_of
from rayflink.common.functions.function_classes import SourceFunction
from rayflink.common.functions.type_variables import Output
from rayflink.common.records.aliasing import detached
from rayflink.common.records.batches import RowBatch
from rayflink.common.records.immutability import IMMUTABLE_TYPES
from rayflink.common.user_code.call_sites import call_site
from rayflink.common.user_code.iterate_results import iterate_results
from rayflink.user_types import UserCode

from .async_iteration import AsyncDrain
from .single_split import SingleSplitSource

_IDLE_POLL_MS = 5
"""Pause after an async iteration had nothing."""


@dataclass(frozen=True)
class IterationSplit:
    """The rest of the iteration after its first `position` elements."""

    position: int = 0
    split_id = "iteration"


class IteratorSource(SingleSplitSource[Output]):
    """Emits what an iterable gives, from one reader, in order.

    After a restore the iteration starts anew and skips what it had given before, so it must give the same again. A
    SourceFunction that is a `CheckpointedFunction` too starts where its own state says, and nothing is skipped: what it
    has yielded has been emitted, so it changes its state before it yields. The loop of an async iteration runs in a
    thread of the reader, ahead of what is emitted, and so has no state.

    >>> async def numbers():
    ...     yield 1
    ...     yield 2
    >>> from rayflink.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment({"execution.target": "local"})
    >>> list(env.add_source(numbers).execute_and_collect())
    [1, 2]

    Args:
        iterable: a callable without arguments that gives an iterable or async iterable (a generator function), or a
            SourceFunction.
        bounded: whether the iteration ends by itself.
        chunk_records: most records drawn at a time; 1 hands each record on as soon as it is there, for slow iterables.
    """

    def __init__(
        self,
        iterable: SourceFunction[Output] | Callable[[], Iterable[Output] | AsyncIterable[Output]],
        bounded: bool = True,
        chunk_records: int = 1024,
    ) -> None:
        if not isinstance(iterable, SourceFunction) and not callable(iterable):
            kind = type(iterable).__name__
            problem = f"add_source: a SourceFunction or a callable that returns an iterable is wanted, found {kind}"
            remedy = (
                "give the generator function itself, without calling it"
                if inspect.isgenerator(iterable)
                else ("give a generator function; from_collection takes a list")
            )
            raise InvalidFunction(problem, remedy, call_site())
        if not isinstance(iterable, SourceFunction):
            ensure_takes(0, iterable, "IteratorSource")
        if chunk_records < 1:
            raise ValueError(f"chunk_records must be >= 1, found {chunk_records}")
        self._iterable, self._bounded, self._chunk_records = iterable, bounded, chunk_records
        self.wrapped_functions = (iterable,)

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED if self._bounded else Boundedness.CONTINUOUS_UNBOUNDED

    def first_split(self) -> IterationSplit:
        return IterationSplit()

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        return _IterationReader(self._iterable, self._chunk_records, ctx)


class _IterationReader(OneByOneReader):
    def __init__(self, iterable: UserCode, chunk_records: int, ctx: ReaderContext) -> None:
        super().__init__()
        self._iterable, self._chunk_records, self._ctx = iterable, chunk_records, ctx

    def open_split(self, split: IterationSplit) -> SplitCursor:
        function = self._iterable if isinstance(self._iterable, SourceFunction) else None
        results: Any = self._iterable() if function is None else function.run()
        has_state = bool(checkpointed_of(function))
        if hasattr(results, "__aiter__"):
            if has_state:
                name = type(function).__name__
                raise TypeError(f"{name}.run is async and {name} keeps state, which would run ahead; make run() plain")
            return _AsyncCursor(results, function, split.position)
        if inspect.iscoroutine(results):
            results.close()
            raise TypeError("the async function yields nothing; yield each record, or make it a plain function")
        given_before = 0 if has_state else split.position
        return _IterationCursor(iterate_results(results), function, given_before, self._chunk_records)

    def next_poll_ms(self) -> int | None:
        is_async = self._splits and isinstance(self._cursor, _AsyncCursor)
        return self._ctx.now_ms() + _IDLE_POLL_MS if is_async else None


class _AsyncCursor:
    def __init__(self, results: AsyncIterable[Any], function: SourceFunction | None, position: int) -> None:
        self._function, self._position = function, position
        self._drain = AsyncDrain(results, position)

    def read(self, max_records: int) -> Polled | None:
        answer = self._drain.read(max_records)
        if isinstance(answer, RowBatch):
            self._position += len(answer)
        return answer

    def position(self) -> IterationSplit:
        return IterationSplit(self._position)

    def close(self) -> None:
        if self._function is not None:
            self._function.cancel()
        self._drain.close()


class _IterationCursor:
    def __init__(
        self, results: Iterable[Any], function: SourceFunction | None, position: int, chunk_records: int
    ) -> None:
        self._function = function
        self._iterator: Iterator[Any] = iter(results)
        self._position, self._chunk_records = position, chunk_records
        skipped = sum(1 for _ in islice(self._iterator, position))
        if skipped < position:
            raise ValueError(f"the iteration gave {skipped} records; before the restore it had given {position}")

    def read(self, max_records: int) -> RowBatch | None:
        values: list[Any] = []
        for value in islice(self._iterator, min(max_records, self._chunk_records)):
            values.append(value if type(value) in IMMUTABLE_TYPES else detached(value))
        self._position += len(values)
        return RowBatch(values) if values else None

    def position(self) -> IterationSplit:
        return IterationSplit(self._position)

    def close(self) -> None:
        if self._function is not None:
            self._function.cancel()
        close = getattr(self._iterator, "close", None)
        if close is not None:
            close()
