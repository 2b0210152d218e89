"""Blocking subpartitions: complete before they are read, bounded in memory, gone from the disk afterwards."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rayflink.actors.exchange.frames import BufferResponse, ErrorResponse, TaskAddress
from rayflink.actors.exchange.spilled import SpilledSubpartition, SpillError
from rayflink.actors.exchange.subpartition import Buffer, ExchangeError, Subpartition, SubpartitionState
from rayflink.common.managed_memory import Allowance, MemoryManager
from rayflink.common.records.batches import CheckpointBarrier, EndOfData, EndOfPartition, Watermark

CONSUMER = TaskAddress("consumer")


def spilled(tmp_path: Path, memory_bytes: int = 10) -> SpilledSubpartition:
    return SpilledSubpartition(0, tmp_path / "part.spill", Allowance(MemoryManager(1 << 20), "me", memory_bytes))


def drained(sub: Subpartition) -> list[Any]:
    found = []
    while (frame := sub.poll()) is not None:
        assert isinstance(frame, BufferResponse)
        found.append((frame.sequence, frame.backlog, frame.body, frame.event))
    return found


entries = st.lists(
    st.one_of(
        st.binary(max_size=40).map(lambda body: Buffer(body, len(body))),
        st.integers(0, 9).map(Watermark),
        st.just(EndOfData()),
    ),
    max_size=20,
)


@pytest.mark.spec("N15", "blocking", "T02")
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries, st.integers(0, 100))
def test_it_says_what_a_pipelined_one_says_whatever_fits_in_memory(
    tmp_path: Path, story: list[Any], memory_bytes: int
) -> None:
    ours, reference = spilled(tmp_path, memory_bytes), Subpartition(0)
    for sub in (ours, reference):
        for entry in [*story, EndOfPartition()]:
            assert sub.add(entry)
        assert not sub.add(Buffer(b"late", 1))
        sub.request(CONSUMER, 3, 10**6)
    assert ours.memory_bytes <= max(memory_bytes, 0)
    assert (ours.backlog, ours.queued_bytes) == (reference.backlog, reference.queued_bytes)
    assert drained(ours) == drained(reference)
    assert ours.statistics() == reference.statistics()
    assert ours.state is SubpartitionState.CONSUMED
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("N14", "T02", "N38")
def test_it_is_read_only_when_the_producer_has_finished(tmp_path: Path) -> None:
    sub = spilled(tmp_path)
    sub.request(CONSUMER, 3, 2)
    sub.add(Buffer(b"a", 1))
    sub.add(CheckpointBarrier(1, 0))
    assert not sub.available
    assert sub.poll() is None
    sub.add(EndOfPartition())
    assert sub.available
    assert sub.poll() == BufferResponse(3, 0, 0, b"a")


@pytest.mark.spec("M07")
def test_it_keeps_a_bounded_part_in_memory_and_the_rest_in_one_file(tmp_path: Path) -> None:
    sub = spilled(tmp_path, memory_bytes=1000)
    for _ in range(100):
        sub.add(Buffer(b"x" * 300, 1))
    assert sub.memory_bytes == 900
    assert sub.spilled_bytes == 96 * 300
    (file,) = tmp_path.iterdir()
    assert file.name == "part.spill"
    assert (sub.backlog, sub.queued_bytes) == (100, 30_000)
    sub.release()


@pytest.mark.spec("M06", "pool", "M07")
@pytest.mark.parametrize("there", [0, 300, 700, 5_000])
def test_when_managed_memory_is_short_it_spills_earlier_and_says_the_same(tmp_path: Path, there: int) -> None:
    memory = MemoryManager(there)
    sub = SpilledSubpartition(0, tmp_path / "part.spill", Allowance(memory, "me", 1_000))
    bodies = [bytes([i]) * 300 for i in range(10)]
    for body in bodies:
        sub.add(Buffer(body, 1))
    sub.add(EndOfPartition())
    kept = min(there, 1_000) // 300
    assert sub.memory_bytes == memory.used == memory.reserved("me") == kept * 300
    assert sub.spilled_bytes == (10 - kept) * 300
    sub.request(CONSUMER, 3, 100)
    assert [body for _, _, body, _ in drained(sub)] == [*bodies, None]
    assert memory.used == 0


@pytest.mark.spec("M06", "returned")
def test_memory_is_free_again_as_it_is_read_and_at_the_latest_at_release(tmp_path: Path) -> None:
    memory = MemoryManager(1_000)
    sub = SpilledSubpartition(0, tmp_path / "part.spill", Allowance(memory, "me", 1_000))
    for _ in range(5):
        sub.add(Buffer(b"x" * 300, 1))
    sub.add(EndOfPartition())
    sub.request(CONSUMER, 3, 1)
    assert (memory.used, sub.poll() is not None, memory.used) == (900, True, 600)
    sub.release("boom")
    sub.release()
    assert (memory.used, memory.available) == (0, 1_000)


@pytest.mark.spec("L19", "files")
def test_blocks_are_read_back_one_at_a_time_when_they_are_asked_for(tmp_path: Path) -> None:
    sub, size = spilled(tmp_path, memory_bytes=0), 1 << 20
    for body in (b"a", b"b", b"c"):
        sub.add(Buffer(body * size, 1))
    sub.add(EndOfPartition())
    sub.request(CONSUMER, 3, 9)
    first = sub.poll()
    assert isinstance(first, BufferResponse) and first.body == b"a" * size
    with (tmp_path / "part.spill").open("r+b") as file:  # a block that was read ahead would not show this
        file.seek(-size, 2)
        file.write(b"C" * size)
    assert [body for _, _, body, _ in drained(sub)] == [b"b" * size, b"C" * size, None]


def test_what_fits_in_memory_makes_no_file(tmp_path: Path) -> None:
    sub = spilled(tmp_path, memory_bytes=1000)
    sub.add(Buffer(b"x" * 300, 1))
    sub.add(EndOfPartition())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("O08", "O19")
def test_credit_and_release_are_those_of_any_subpartition(tmp_path: Path) -> None:
    sub = spilled(tmp_path, memory_bytes=0)
    for body in (b"a", b"b", b"c"):
        sub.add(Buffer(body, 1))
    sub.add(EndOfPartition())
    sub.request(CONSUMER, 3, 1)
    assert sub.poll() == BufferResponse(3, 0, 2, b"a")
    assert sub.poll() is None
    sub.add_credit(1)
    assert sub.poll() == BufferResponse(3, 1, 1, b"b")
    assert len(list(tmp_path.iterdir())) == 1
    assert sub.release("boom") == ErrorResponse(3, "boom")
    assert list(tmp_path.iterdir()) == []
    assert sub.poll() is None
    sub.release()


def test_a_file_that_is_there_already_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "part.spill").write_bytes(b"somebody else's")
    sub = spilled(tmp_path, memory_bytes=0)
    sub.add(Buffer(b"a", 1))
    with pytest.raises(SpillError, match=r"part.spill: cannot be written .*set io.tmp.dirs") as caught:
        sub.add(Buffer(b"b", 1))
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    sub.release()
    assert (tmp_path / "part.spill").read_bytes() == b"somebody else's"


def test_a_truncated_file_is_noticed(tmp_path: Path) -> None:
    sub = spilled(tmp_path, memory_bytes=0)
    for _ in range(3):
        sub.add(Buffer(b"x" * 100_000, 1))
    sub.add(EndOfPartition())
    sub.request(CONSUMER, 3, 9)
    assert sub.poll() is not None
    with (tmp_path / "part.spill").open("r+b") as file:
        file.truncate(150_000)
    with pytest.raises(SpillError, match="ends early or is damaged, 2 entries are missing"):
        drained(sub)
    sub.release()


def test_nothing_overtakes_in_it(tmp_path: Path) -> None:
    with pytest.raises(ExchangeError, match="cannot overtake"):
        spilled(tmp_path).overtake(CheckpointBarrier(1, 0))


def test_a_file_that_a_full_disk_did_not_take_goes_all_the_same(tmp_path: Path) -> None:
    sub = spilled(tmp_path, memory_bytes=0)
    for _ in range(2):
        sub.add(Buffer(b"x" * 100, 1))
    path = tmp_path / "part.spill"
    assert path.exists()
    full = open("/dev/full", "r+b")
    full.write(b"still to be flushed")
    sub._spill._file = full
    sub.release()
    assert not path.exists() and sub.memory_bytes == 0
