"""Sources in plain Python: async generators, sources one after the other, and the rate of a generator."""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.connector_base.source import END, PENDING, Boundedness, Source
from rayflink.common.functions.function_classes import SourceFunction
from rayflink.common.records.batches import rows_of
from rayflink.connectors import async_iteration
from rayflink.connectors.collection import CollectionSource
from rayflink.connectors.generator import DataGeneratorSource, NumberSequenceSource
from rayflink.connectors.hybrid_source import HybridSource
from rayflink.connectors.iteration import IterationSplit, IteratorSource
from rayflink.connectors.socket_text import SocketTextSource
from tests.connectors.reading import Coordinator, read, read_with_restores
from tests.operators.running import FixedClock


def _until(condition: Callable[[], Any], what: str) -> Any:
    """The first true answer within ten seconds."""
    deadline = time.monotonic() + 10
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen"
        threading.Event().wait(0.001)
    return answer


def _all(coordinator: Coordinator) -> list[Any]:
    out: list[Any] = []

    def ended() -> bool:
        answer = coordinator.poll()
        if answer is not END and answer is not PENDING:
            out.extend(rows_of(answer))
        return answer is END

    _until(ended, "the end of the source")
    coordinator.close()
    return out


def _threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "async source"]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Any:
    yield
    assert _threads() == []


async def letters() -> AsyncIterator[str]:
    """Draws what another task of its loop sends."""
    sent: asyncio.Queue[str] = asyncio.Queue(1)

    async def send() -> None:
        for letter in "abcde":
            await sent.put(letter)

    sending = asyncio.ensure_future(send())
    for _ in range(5):
        yield await sent.get()
    await sending


def test_an_async_generator_is_read_to_its_end_by_a_thread_of_the_reader() -> None:
    assert _all(Coordinator(pickle.loads(pickle.dumps(IteratorSource(letters))))) == list("abcde")


def test_polling_never_waits_for_an_async_generator() -> None:
    gates: list[Callable[[], object]] = []

    async def waiting() -> AsyncIterator[int]:
        yield 1
        opened, loop = asyncio.Event(), asyncio.get_running_loop()
        gates.append(lambda: loop.call_soon_threadsafe(opened.set))
        await opened.wait()
        yield 2

    clock = FixedClock(50)
    coordinator = Coordinator(IteratorSource(waiting), clock=clock)
    first = _until(lambda: (answer := coordinator.poll()) is not PENDING and answer, "the first record")
    assert rows_of(first) == [1] and coordinator.poll() is PENDING
    assert coordinator.readers[0].next_poll_ms() == 55
    assert coordinator.readers[0].snapshot_state() == [IterationSplit(1)]
    _until(lambda: gates, "the generator waits")
    gates[0]()
    assert _all(coordinator) == [2]


def test_an_async_generator_waits_when_so_many_records_are_not_read_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(async_iteration, "QUEUE_RECORDS", 4)
    made: list[int] = []
    loops: list[asyncio.AbstractEventLoop] = []

    async def numbers() -> AsyncIterator[int]:
        loops.append(asyncio.get_running_loop())
        for number in range(20):
            made.append(number)
            yield number

    drain = async_iteration.AsyncDrain(numbers(), 0)
    _until(lambda: len(made) >= 4, "the queue is full")
    goes_on = threading.Event()
    loops[0].call_soon_threadsafe(goes_on.set)
    assert goes_on.wait(10), "the loop does other work meanwhile"
    assert len(made) == 4
    out: list[int] = []

    def ended() -> bool:
        answer = drain.read(3)
        out.extend(() if answer is None or answer is PENDING else rows_of(answer))
        assert len(made) <= len(out) + 4
        return answer is None

    _until(ended, "the end")
    drain.close()
    assert out == list(range(20))


def test_an_error_of_an_async_generator_fails_the_reader_behind_the_records_before() -> None:
    async def failing() -> AsyncIterator[int]:
        yield 1
        raise LookupError("midway")

    coordinator = Coordinator(IteratorSource(failing))
    first = _until(lambda: (answer := coordinator.poll()) is not PENDING and answer, "the first record")
    assert rows_of(first) == [1]
    with pytest.raises(LookupError, match="midway") as failure:
        _until(lambda: coordinator.poll() is not PENDING, "the failure")
    assert failure.traceback[-1].name == "failing" and failure.traceback[-1].path.name == "test_user_sources.py"
    coordinator.close()


def test_an_async_generator_resumes_after_a_restore_with_each_record_once() -> None:
    async def growing() -> AsyncIterator[list[int]]:
        kept: list[int] = []
        for number in range(4):
            kept.append(number)
            yield kept

    coordinator = Coordinator(IteratorSource(growing), state=[])
    coordinator.readers[0].add_splits([IterationSplit(2)])
    coordinator.readers[0].notify_no_more_splits()
    assert _all(coordinator) == [[0, 1, 2], [0, 1, 2, 3]]
    coordinator = Coordinator(IteratorSource(growing), state=[])
    coordinator.readers[0].add_splits([IterationSplit(9)])
    with pytest.raises(ValueError, match="the iteration returned 4 records after the restore, and 9 before it"):
        _until(lambda: coordinator.poll() is not PENDING, "the failure")
    coordinator.close()


def test_closing_ends_an_async_generator_and_runs_its_finally() -> None:
    seen: list[str] = []

    async def endless() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
                await asyncio.Event().wait()
        finally:
            seen.append("finally")

    class Endless(SourceFunction):
        def run(self) -> Any:
            return endless()

        def cancel(self) -> None:
            seen.append("cancel")

    coordinator = Coordinator(IteratorSource(Endless()))
    _until(lambda: coordinator.poll() is not PENDING, "the first record")
    coordinator.close()
    assert seen == ["cancel", "finally"]


def test_an_async_function_that_yields_nothing_is_refused() -> None:
    async def plain() -> list[int]:
        return [1]

    coordinator = Coordinator(IteratorSource(plain))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the async function yields nothing; yield each record"):
        coordinator.poll()


# sources one after the other


def _hybrid(*sources: Source) -> HybridSource:
    builder = HybridSource.builder(sources[0])
    for source in sources[1:]:
        builder.add_source(source)
    return pickle.loads(pickle.dumps(builder.build()))


@given(st.lists(st.integers(0, 6), min_size=1, max_size=4), st.integers(1, 3), st.integers(1, 4))
def test_each_source_is_read_to_its_end_before_the_next_begins(counts: list[int], readers: int, most: int) -> None:
    sources = [DataGeneratorSource(None, count, first=at * 100) for at, count in enumerate(counts)]
    coordinator = Coordinator(_hybrid(*sources), readers)
    order: list[int] = []
    running = set(range(readers))
    for _ in range(500):
        for subtask in sorted(running):
            answer = coordinator.poll(subtask, most)
            if answer is END:
                running.discard(subtask)
            elif answer is not PENDING:
                order += rows_of(answer)
    coordinator.close()
    assert not running
    assert [number // 100 for number in order] == [at for at, count in enumerate(counts) for _ in range(count)]
    assert sorted(order) == [at * 100 + n for at, count in enumerate(counts) for n in range(count)]


@given(st.integers(3, 6), st.integers(1, 3))
def test_a_hybrid_source_goes_on_after_a_restore_where_it_was(after: int, most: int) -> None:
    source = _hybrid(CollectionSource("abc"), NumberSequenceSource(1, 4), CollectionSource([]), CollectionSource("z"))
    assert read_with_restores(source, after, most) == ["a", "b", "c", 1, 2, 3, 4, "z"]


def test_a_hybrid_source_has_the_last_one_s_bounds_and_the_narrowest_parallelism() -> None:
    source = _hybrid(CollectionSource([1]), DataGeneratorSource())
    assert source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED and source.max_parallelism == 1
    assert _hybrid(NumberSequenceSource(1, 2)).max_parallelism is None
    assert read(_hybrid(NumberSequenceSource(1, 2)), 2) == [1, 2]
    with pytest.raises(ValueError, match="source 1 of 2, a SocketTextSource, has no end, the next would never begin"):
        _hybrid(SocketTextSource("localhost", 1), CollectionSource([1]))
    with pytest.raises(TypeError, match="source 2 of a HybridSource must be a Source, found list"):
        HybridSource.builder(CollectionSource([1])).add_source([2]).build()  # type: ignore[arg-type]


# the rate of a generator


@pytest.mark.parametrize("readers", [1, 3])
@pytest.mark.parametrize("rate", [0.5, 3, 70, 999, 25_000])
def test_the_rate_of_all_readers_together_holds_within_five_percent(rate: float, readers: int) -> None:
    clock = FixedClock(1_000_000)
    coordinator = Coordinator(DataGeneratorSource(records_per_second=rate), readers, clock=clock)
    seconds = max(10.0, 200 / rate)
    end = clock.now + int(seconds * 1000)
    given_out = 0
    while clock.now < end:
        for subtask in range(readers):
            while (answer := coordinator.poll(subtask, 64)) is not PENDING:
                given_out += len(answer)
        dues = [reader.next_poll_ms() for reader in coordinator.readers]
        following = min(due for due in dues if due is not None)
        assert following > clock.now
        clock.now = following
    coordinator.close()
    assert given_out == pytest.approx(rate * seconds, rel=0.05)
