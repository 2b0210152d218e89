"""Several sources as one, each read to its end before the next begins."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from rayflink.common.connector_base.source import (
    END,
    PENDING,
    Boundedness,
    EnumeratorContext,
    Polled,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.functions.type_variables import Output, Result
from rayflink.user_types import SourceSplit


@dataclass(frozen=True)
class HybridSplit:
    """A split of one of the sources.

    Args:
        index: of the source.
        split: of that source.
        is_end: no split: the reader gets none of this source any more.
    """

    index: int
    split: SourceSplit = None
    is_end: bool = False


class HybridSource(Source[Output]):
    """Reads its sources one after the other: all readers have read the first to its end before the second begins.

    >>> from rayflink.connectors.generator import NumberSequenceSource
    >>> source = HybridSource.builder(NumberSequenceSource(1, 3)).add_source(NumberSequenceSource(10, 11)).build()
    >>> source.boundedness
    <Boundedness.BOUNDED: 0>

    Args:
        sources: in order; all but the last end by themselves.

    Raises:
        ValueError: there is none, or one before the last has no end.
        TypeError: one is no `Source`.
    """

    def __init__(self, sources: Sequence[Source[Output]]) -> None:
        if not sources:
            raise ValueError("at least one source is needed")
        for index, source in enumerate(sources):
            if not isinstance(source, Source):
                raise TypeError(f"source {index + 1} of a HybridSource must be a Source, found {type(source).__name__}")
            if index < len(sources) - 1 and source.boundedness is not Boundedness.BOUNDED:
                problem = f"source {index + 1} of {len(sources)}, a {type(source).__name__}, has no end"
                raise ValueError(f"{problem}, the next would never begin; put it last, or bound it")
        self._sources = list(sources)
        self.wrapped_functions = self._sources

    @staticmethod
    def builder(first_source: Source[Result]) -> HybridSourceBuilder[Result]:
        """Return a builder that begins with this source."""
        return HybridSourceBuilder(first_source)

    @property
    def boundedness(self) -> Boundedness:
        return self._sources[-1].boundedness

    @property
    def max_parallelism(self) -> int | None:
        widest = [source.max_parallelism for source in self._sources]
        return min((parallelism for parallelism in widest if parallelism is not None), default=None)

    @property
    def produced_type(self) -> TypeInformation | None:
        first = self._sources[0].produced_type
        return first if all(source.produced_type == first for source in self._sources) else None

    def configured(self, config: Mapping[str, object]) -> HybridSource[Output]:
        return HybridSource([source.configured(config) for source in self._sources])

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return _HybridEnumerator(ctx, self._sources, (0, None))

    def restore_enumerator(self, ctx: EnumeratorContext, state: tuple[int, Any]) -> SplitEnumerator:
        return _HybridEnumerator(ctx, self._sources, state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        return _HybridReader(ctx, self._sources)


class HybridSourceBuilder(Generic[Output]):
    """Collects the sources."""

    def __init__(self, first_source: Source[Output]) -> None:
        self._sources = [first_source]

    def add_source(self, source: Source[Output]) -> HybridSourceBuilder[Output]:
        """Read this one after those before it."""
        self._sources.append(source)
        return self

    def build(self) -> HybridSource[Output]:
        """Return the source."""
        return HybridSource(self._sources)


class _HybridEnumerator(SplitEnumerator):
    """Runs one source's enumerator at a time; is also the context it speaks to.

    A reader that asks after it learned that nothing more comes has read what it had.
    """

    def __init__(self, ctx: EnumeratorContext, sources: Sequence[Source], state: tuple[int, Any]) -> None:
        self._ctx, self._sources = ctx, sources
        self._index, inner = state
        self._exhausted: set[int] = set()
        self._done: set[int] = set()
        source = sources[self._index]
        self._inner = source.create_enumerator(self) if inner is None else source.restore_enumerator(self, inner)

    def start(self) -> None:
        self._inner.start()

    def handle_split_request(self, subtask: int) -> None:
        if subtask not in self._exhausted:
            self._inner.handle_split_request(subtask)
            return
        self._done.add(subtask)
        if len(self._done) == self.current_parallelism():
            self._inner.close()
            self._index += 1
            self._exhausted, self._done = set(), set()
            self._inner = self._sources[self._index].create_enumerator(self)
            self._inner.start()
            for reader in range(self.current_parallelism()):
                self._inner.handle_split_request(reader)

    def assign_splits(self, assignment: Mapping[int, Sequence[Any]]) -> None:
        """Assign the splits of the inner enumerator."""
        wrapped = {to: [HybridSplit(self._index, split) for split in splits] for to, splits in assignment.items()}
        self._ctx.assign_splits(wrapped)

    def signal_no_more_splits(self, subtask: int) -> None:
        """Note that the inner enumerator has no more splits for a reader."""
        if self._index == len(self._sources) - 1:
            self._ctx.signal_no_more_splits(subtask)
        else:
            self._exhausted.add(subtask)
            self._ctx.assign_splits({subtask: [HybridSplit(self._index, is_end=True)]})

    def current_parallelism(self) -> int:
        """Return how many readers there are."""
        return self._ctx.current_parallelism()

    def call_async(
        self,
        work: Callable[[], Result],
        then: Callable[[Result | None, Exception | None], None],
        period_ms: int | None = None,
    ) -> None:
        """Run the work of the inner enumerator; an answer that comes when the next source is read is dropped."""
        index = self._index

        def then_if_current(answer: Result | None, error: Exception | None) -> None:
            if self._index == index:
                then(answer, error)

        self._ctx.call_async(work, then_if_current, period_ms)

    def add_reader(self, subtask: int) -> None:
        self._inner.add_reader(subtask)

    def add_splits_back(self, splits: list[Any], subtask: int) -> None:
        back = [each.split for each in splits if not each.is_end]
        if any(each.index != self._index for each in splits):
            raise RuntimeError(f"splits of reader {subtask} belong to a source that was read to its end: {splits}")
        self._exhausted.discard(subtask)
        self._done.discard(subtask)
        self._inner.add_splits_back(back, subtask)

    def snapshot_state(self) -> tuple[int, Any]:
        return self._index, self._inner.snapshot_state()

    def close(self) -> None:
        self._inner.close()


class _HybridReader(SourceReader):
    def __init__(self, ctx: ReaderContext, sources: Sequence[Source]) -> None:
        self._ctx, self._sources = ctx, sources
        self._index = -1
        self._inner: SourceReader | None = None
        self._no_more = False

    def add_splits(self, splits: list[Any]) -> None:
        for each in splits:
            reader = self._reader_of(each.index)
            if each.is_end:
                reader.notify_no_more_splits()
            else:
                reader.add_splits([each.split])

    def notify_no_more_splits(self) -> None:
        self._no_more = True
        self._reader_of(len(self._sources) - 1).notify_no_more_splits()

    def needs_split(self) -> bool:
        return not self._no_more and (self._inner is None or self._inner.needs_split())

    def poll(self, max_records: int) -> Polled:
        if self._inner is None:
            return PENDING
        answer = self._inner.poll(max_records)
        if answer is END and not self._no_more:
            self.close()
            return PENDING
        return answer

    def next_poll_ms(self) -> int | None:
        return None if self._inner is None else self._inner.next_poll_ms()

    def split_ids(self) -> Collection[str] | None:
        return () if self._inner is None else self._inner.split_ids()

    def current_split(self) -> str:
        assert self._inner is not None, "no records were polled"
        return self._inner.current_split()

    def pause_or_resume_splits(self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]) -> None:
        if self._inner is not None:
            self._inner.pause_or_resume_splits(splits_to_pause, splits_to_resume)

    def snapshot_state(self) -> list[Any]:
        splits = [] if self._inner is None else self._inner.snapshot_state()
        return [HybridSplit(self._index, split) for split in splits]

    def notify_checkpoint_complete(self, checkpoint_id: int, splits: Sequence[HybridSplit]) -> None:
        inner = [wrapped.split for wrapped in splits if wrapped.index == self._index]
        if self._inner is not None and (inner or not splits):
            self._inner.notify_checkpoint_complete(checkpoint_id, inner)

    def close(self) -> None:
        inner, self._inner = self._inner, None
        if inner is not None:
            inner.close()

    def _reader_of(self, index: int) -> SourceReader:
        if self._inner is None or index != self._index:
            self.close()
            self._index = index
            self._inner = self._sources[index].create_reader(self._ctx)
            self._inner.start()
        return self._inner
