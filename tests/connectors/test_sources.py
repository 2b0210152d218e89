"""Sources made of values: collections, iterables, numbers, sockets."""

from __future__ import annotations

import pickle
import select
import socket
from collections.abc import Iterator
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.connector_base.source import END, PENDING, Boundedness
from rayflink.common.functions.function_classes import SourceFunction
from rayflink.common.records.batches import RowBatch
from rayflink.connectors.collection import CollectionSource
from rayflink.connectors.generator import DataGeneratorSource, NumberSequenceSource, RateLimit
from rayflink.connectors.iteration import IteratorSource
from rayflink.connectors.socket_text import LineSplitter, SocketTextSource
from tests.connectors.reading import Coordinator, read, read_with_restores
from tests.operators.running import FixedClock


@pytest.mark.spec("C24", "from-elements")
def test_a_collection_comes_in_order_from_one_reader_with_its_timestamps() -> None:
    source = CollectionSource(["a", "b", "c"], [1, 2, 3])
    assert source.max_parallelism == 1 and source.boundedness is Boundedness.BOUNDED
    coordinator = Coordinator(source)
    assert coordinator.poll(0, 2) == RowBatch(["a", "b"], [1, 2])
    assert coordinator.poll(0, 2) == RowBatch(["c"], [3])
    assert coordinator.poll() is PENDING  # the split is used up, the next one was not asked for yet
    assert coordinator.poll() is END


def test_a_collection_gives_no_object_of_the_program_out() -> None:
    shared = [1]
    first, second = read(CollectionSource([shared, shared]))
    assert first == second == [1] and first is not second and first is not shared


def test_a_collection_with_too_few_timestamps_is_refused() -> None:
    with pytest.raises(ValueError, match="2 records need as many timestamps, found 1"):
        CollectionSource([1, 2], [1])


@given(st.integers(0, 30), st.integers(1, 7), st.integers(1, 4))
def test_every_source_goes_on_after_a_restore_where_it_was(count: int, max_records: int, after: int) -> None:
    for source in (
        CollectionSource(range(count)),
        IteratorSource(_Counting(count)),
        DataGeneratorSource(None, count),
    ):
        assert read_with_restores(pickle.loads(pickle.dumps(source)), after, max_records) == list(range(count))


class _Counting:
    def __init__(self, count: int) -> None:
        self.count = count

    def __call__(self) -> Iterator[int]:
        yield from range(self.count)


@given(st.integers(-50, 50), st.integers(0, 60), st.integers(1, 5))
def test_a_number_sequence_is_shared_out_in_whole_ranges(start: int, length: int, parallelism: int) -> None:
    parts = Coordinator(NumberSequenceSource(start, start + length), parallelism).read_all(7)
    assert sorted(number for part in parts for number in part) == list(range(start, start + length + 1))
    assert all(part == sorted(part) for part in parts)


def test_an_endless_generator_gives_each_reader_its_own_indices() -> None:
    source = DataGeneratorSource(lambda index: index * 10)
    assert source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    coordinator = Coordinator(source, 2)
    assert [coordinator.poll(1, 3), coordinator.poll(0, 2), coordinator.poll(1, 1)] == [
        RowBatch([0, 20, 40]), RowBatch([10, 30]), RowBatch([60]),
    ]  # fmt: skip


def test_endless_splits_that_meet_in_one_reader_take_turns() -> None:
    source = DataGeneratorSource()
    coordinator = Coordinator(source, 2)
    coordinator.poll(0, 1)
    coordinator.poll(1, 1)
    splits = [split for reader in coordinator.readers for split in reader.snapshot_state()]
    alone = Coordinator(source, 1, state=[])
    alone.readers[0].add_splits(splits)
    assert [alone.poll(0, 1).values[0] for _ in range(4)] == [2, 3, 4, 5]


def test_a_rate_limit_lets_record_n_out_n_periods_after_the_first() -> None:
    clock = FixedClock(1000)
    coordinator = Coordinator(DataGeneratorSource(None, 4, records_per_second=10), 1, clock=clock)
    reader = coordinator.readers[0]
    assert coordinator.poll() == RowBatch([0])
    assert coordinator.poll() is PENDING and reader.next_poll_ms() == 1100
    clock.now = 1099
    assert coordinator.poll() is PENDING
    clock.now = 1200
    assert coordinator.poll() == RowBatch([1, 2])
    assert reader.next_poll_ms() == 1300


@given(st.integers(1, 5000), st.lists(st.integers(0, 400), min_size=1, max_size=30))
def test_a_rate_limit_is_never_ahead_and_never_more_than_one_behind(rate: int, waits: list[int]) -> None:
    clock = FixedClock()
    limit = RateLimit(rate, clock.now_ms)
    given_out = 0
    for wait in waits:
        clock.now += wait
        given_out += limit.take(10**9)
        elapsed = clock.now - waits[0]
        assert given_out == elapsed * rate // 1000 + 1
        following = limit.next_ms()
        assert following is not None and following > clock.now


def test_arguments_of_generators_are_checked() -> None:
    with pytest.raises(ValueError, match="start must not be above end"):
        NumberSequenceSource(2, 1)
    with pytest.raises(ValueError, match="count must be >= 0"):
        DataGeneratorSource(count=-1)
    with pytest.raises(ValueError, match="records_per_second must be > 0"):
        DataGeneratorSource(records_per_second=0)


@pytest.mark.spec("C01", "add-source", "C24", "source-function")
def test_a_source_function_runs_until_it_is_cancelled() -> None:
    calls: list[str] = []

    class Numbers(SourceFunction):
        def run(self) -> Iterator[int]:
            yield from range(10)

        def cancel(self) -> None:
            calls.append("cancel")

    source = IteratorSource(Numbers(), bounded=False, chunk_records=3)
    assert source.max_parallelism == 1
    coordinator = Coordinator(source)
    assert coordinator.poll() == RowBatch([0, 1, 2])
    coordinator.close()
    assert calls == ["cancel"]


def test_an_iterable_that_yields_one_list_again_and_again_gives_each_record_its_own() -> None:
    def growing() -> Iterator[list[int]]:
        kept: list[int] = []
        for index in range(3):
            kept.append(index)
            yield kept

    assert read(IteratorSource(growing)) == [[0], [0, 1], [0, 1, 2]]


def test_an_iteration_that_became_shorter_is_an_error_after_a_restore() -> None:
    coordinator = Coordinator(IteratorSource(lambda: iter([1])), state=[])
    coordinator.readers[0].add_splits([type(Coordinator(IteratorSource(list)).enumerator.snapshot_state()[0])(5)])
    with pytest.raises(ValueError, match="gave 1 records; before the restore it had given 5"):
        coordinator.poll()


def test_what_is_no_iterable_factory_is_refused() -> None:
    with pytest.raises(TypeError, match="a callable that returns an iterable is wanted, found list"):
        IteratorSource([1, 2])  # type: ignore[arg-type]


@pytest.mark.spec("C25", "lines", "rest", "X65")
@given(st.integers(0, 10), st.integers(0, 10))
def test_lines_are_cut_at_the_delimiter_whatever_the_pieces(first: int, second: int) -> None:
    text = "a\r\nb\nrest"
    cuts = sorted((min(first, len(text)), min(second, len(text))))
    splitter = LineSplitter("\n")
    pieces = (text[: cuts[0]], text[cuts[0] : cuts[1]], text[cuts[1] :])
    out = [line for piece in pieces for line in splitter.feed(piece)]
    assert out == ["a", "b"]
    assert splitter.finish() == ["rest"] and splitter.finish() == []


@pytest.mark.spec("C25", "lines")
def test_a_carriage_return_stays_before_other_delimiters() -> None:
    splitter = LineSplitter("||")
    assert splitter.feed("a\r|") == []
    assert splitter.feed("|b\n||") == ["a\r", "b\n"]
    assert splitter.finish() == []
    with pytest.raises(ValueError, match="must not be empty"):
        LineSplitter("")


class Server:
    """A TCP server on this thread: the kernel completes connections while nobody accepts them."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.socket.settimeout(5)
        self.port = self.socket.getsockname()[1]

    def send(self, data: bytes) -> None:
        connection, _ = self.socket.accept()
        connection.sendall(data)
        connection.close()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.socket.close()


def _until_answer(coordinator: Coordinator) -> object:
    for _ in range(100_000):
        answer = coordinator.poll()
        if answer is not PENDING:
            return answer
    raise AssertionError("the socket gave nothing")


@pytest.mark.spec("C24", "socket", "C25", "lines", "rest", "X65")
def test_a_socket_is_read_without_blocking_and_its_rest_is_the_last_record(server: Server) -> None:
    coordinator = Coordinator(SocketTextSource("127.0.0.1", server.port))
    assert coordinator.poll() is PENDING
    server.send("a\r\nb\nréßt".encode())
    out: list[str] = []
    while (answer := _until_answer(coordinator)) is not END:
        out += answer.values  # type: ignore[attr-defined]
    assert out == ["a", "b", "réßt"]
    assert coordinator.readers[0].snapshot_state() == []
    coordinator.close()


@pytest.mark.spec("C25", "retries")
def test_a_socket_connects_again_after_the_pause_as_often_as_it_may(server: Server) -> None:
    clock = FixedClock(1000)
    coordinator = Coordinator(SocketTextSource("127.0.0.1", server.port, max_retries=1, retry_ms=500), clock=clock)
    assert coordinator.poll() is PENDING
    server.send(b"a\nb")
    assert _until_answer(coordinator) == RowBatch(["a"])
    for _ in range(1000):
        assert coordinator.poll() is PENDING
        if coordinator.readers[0].next_poll_ms() == 1500:
            break
    clock.now = 1500
    assert coordinator.poll() is PENDING
    server.send(b"c\nd")
    assert _until_answer(coordinator) == RowBatch(["bc"])
    assert _until_answer(coordinator) == RowBatch(["d"])
    assert coordinator.poll() is END
    coordinator.close()


@pytest.mark.spec("C25", "endless")
def test_a_socket_connects_again_for_ever_where_the_program_says_so(server: Server) -> None:
    source = SocketTextSource("127.0.0.1", server.port, max_retries=-1, retry_ms=0)
    coordinator = Coordinator(source, clock=FixedClock(1000))
    for number in range(5):
        while not select.select([server.socket], [], [], 0)[0]:  # until it has connected, again from the second on
            assert coordinator.poll() is PENDING
        server.send(b"%d\n" % number)
        assert _until_answer(coordinator) == RowBatch([str(number)])
    coordinator.close()


@pytest.mark.spec("V20", "C25", "chunks")
def test_a_socket_is_read_in_pieces_of_8192(monkeypatch: pytest.MonkeyPatch) -> None:
    class Line(socket.socket):
        """A connection that has `content` at once and notes how much is asked for."""

        content = b"x" * 20_000
        asked: ClassVar[list[int]] = []

        def recv(self, size: int, flags: int = 0) -> bytes:
            self.asked.append(size)
            piece, self.content = self.content[:size], self.content[size:]
            return piece

    monkeypatch.setattr(socket, "create_connection", lambda *address: Line())
    coordinator = Coordinator(SocketTextSource("127.0.0.1", 9))
    assert _until_answer(coordinator) == RowBatch(["x" * 20_000])
    assert Line.asked == [8192] * 4  # 8192 + 8192 + 3616, and the end
    coordinator.close()


def test_a_server_that_is_not_there_is_an_error_with_the_remedy() -> None:
    unused = socket.create_server(("127.0.0.1", 0))
    port = unused.getsockname()[1]
    unused.close()
    with pytest.raises(ConnectionError, match="start the server first, or set max_retries"):
        Coordinator(SocketTextSource("127.0.0.1", port)).poll()


def test_a_generator_behind_its_rate_reports_what_is_pending() -> None:
    clock = FixedClock()
    limit = RateLimit(10, clock.now_ms)
    assert limit.pending() == 0
    limit.take(1)
    clock.now += 1_000
    assert limit.pending() == 10
    limit.take(4)
    assert limit.pending() == 6
