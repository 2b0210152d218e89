"""The decisions of the ledger, and the form of chunks in checkpoints."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.user_code.value_bytes import from_bytes, to_pieces
from rayflink.connectors.kafka.kafka_chunks import CHUNK_BYTES, Chunk, ChunkId, ChunkWriter
from rayflink.connectors.kafka.kafka_ledger import MOST_RUNS, SKEW_MS, ChunkFate, Ledger, new_run, run_start_ms
from rayflink.connectors.kafka.kafka_messages import KafkaMessages, MessageColumns, merged, packed, unpacked

DAY_MS = 86_400_000
NOW_MS = 1_760_000_000_000
WEEK_MS = 7 * DAY_MS


def fate(ledger: Ledger, run: str, sequence: int, age_ms: int = 0) -> ChunkFate:
    return ledger.fate(run, sequence, NOW_MS - age_ms, NOW_MS, WEEK_MS)


def test_the_ledger_knows_the_chunks_of_each_run() -> None:
    first, second = new_run(NOW_MS - DAY_MS), new_run(NOW_MS)
    ledger = Ledger().with_chunk(first, 0).with_chunk(first, 3).with_chunk(second, 1)
    assert [fate(ledger, first, sequence) for sequence in (0, 3, 4)] == [
        ChunkFate.SKIP,
        ChunkFate.SKIP,
        ChunkFate.WRITE,
    ]
    assert [fate(ledger, second, sequence) for sequence in (1, 2)] == [ChunkFate.SKIP, ChunkFate.WRITE]
    assert fate(ledger, new_run(NOW_MS), 1) is ChunkFate.WRITE
    assert ledger.commits == 3 and Ledger.of_metadata(3, ledger.metadata()) == ledger


def test_a_chunk_that_is_older_than_the_ledgers_retention_may_be_anywhere() -> None:
    run = new_run(NOW_MS - 30 * DAY_MS)
    for ledger in (Ledger(), Ledger().with_chunk(new_run(NOW_MS - DAY_MS), 5)):
        assert fate(ledger, run, 7, WEEK_MS - SKEW_MS) is ChunkFate.WRITE
        assert fate(ledger, run, 7, WEEK_MS - SKEW_MS + 1) is ChunkFate.UNKNOWN
    assert fate(Ledger().with_chunk(run, 6), run, 7, 30 * DAY_MS) is ChunkFate.WRITE, "its run is known"


def test_a_run_that_was_forgotten_for_newer_ones_is_not_taken_for_a_new_one() -> None:
    runs = [f"{NOW_MS + number:x}-0000" for number in range(MOST_RUNS + 1)]
    ledger = Ledger()
    for run in runs:
        ledger = ledger.with_chunk(run, 0)
    assert len(ledger.runs) == MOST_RUNS and ledger.forgotten_ms == run_start_ms(runs[0])
    assert fate(ledger, runs[0], 0) is ChunkFate.UNKNOWN
    assert fate(ledger, runs[1], 0) is ChunkFate.SKIP
    assert fate(ledger, f"{NOW_MS + 999:x}-0000", 0) is ChunkFate.WRITE


@given(commits=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 2**40)), max_size=300))
def test_the_ledger_fits_into_the_metadata_of_an_offset(commits: list[tuple[int, int]]) -> None:
    ledger = Ledger()
    for run, sequence in commits:
        ledger = ledger.with_chunk(f"{NOW_MS + run:x}-ffff", sequence)
    assert len(ledger.metadata()) < 3_000
    assert Ledger.of_metadata(ledger.commits, ledger.metadata()) == ledger


@pytest.mark.parametrize("metadata", ["", None, "{}", "[1]", '{"v":2}', "consumer-1"])
def test_other_metadata_is_no_ledger(metadata: str | None) -> None:
    with pytest.raises(ValueError):
        Ledger.of_metadata(5, metadata)
    assert Ledger.of_metadata(-1001, metadata) == Ledger()


bytes_or_none = st.one_of(st.none(), st.binary(max_size=20))
headers = st.one_of(st.none(), st.lists(st.tuples(st.text(max_size=4), bytes_or_none), min_size=1, max_size=3))


@st.composite
def messages(draw: st.DrawFn) -> KafkaMessages:
    count = draw(st.integers(1, 6))

    def column(entries: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
        return st.one_of(st.none(), st.lists(entries, min_size=count, max_size=count))

    return KafkaMessages(
        draw(st.one_of(st.just("t"), st.lists(st.sampled_from("abc"), min_size=count, max_size=count))),
        draw(st.lists(bytes_or_none, min_size=count, max_size=count)),
        draw(column(bytes_or_none)),
        draw(column(headers)),
        draw(column(st.integers(-1, 2**60))),
        draw(column(st.integers(-1, 1000))),
    )


def rows(parts: list[KafkaMessages]) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for part in parts:
        for topic, run in part.by_topic():
            columns = [
                column or [None] * len(run) for column in (run.keys, run.headers, run.timestamps, run.partitions)
            ]
            found += [(topic, *row) for row in zip(run.values, *columns, strict=True)]
    return found


@pytest.mark.slow
@given(parts=st.lists(messages(), max_size=3), compression=st.sampled_from([None, "lz4", "zstd"]))
def test_messages_are_the_same_after_a_checkpoint(parts: list[KafkaMessages], compression: str | None) -> None:
    assert rows([part.messages() for part in unpacked(packed(parts, compression))]) == rows(parts)
    assert rows([MessageColumns.of(part).messages() for part in parts]) == rows(parts)


@given(parts=st.lists(messages(), max_size=8), memory_bytes=st.sampled_from([0, 40, 10**6]), limit=st.integers(1, 90))
def test_chunks_have_every_message_in_order(parts: list[KafkaMessages], memory_bytes: int, limit: int) -> None:
    patch = pytest.MonkeyPatch()
    patch.setattr("rayflink.connectors.kafka.kafka_chunks.CHUNK_BYTES", limit)
    writer = ChunkWriter(ChunkId("p-0", "1-0", 0, "", 0, 1), None, memory_bytes)
    for part in parts:
        writer.add(part, part.sizes(), 5)
    chunks = writer.take(6)
    patch.undo()
    assert [row for chunk in chunks for row in rows(list(chunk.messages()))] == rows(parts)
    assert [chunk.id.sequence for chunk in chunks] == list(range(len(chunks)))
    assert sum(chunk.count for chunk in chunks) == sum(map(len, parts))
    assert len({chunk.id.ledger_topic for chunk in chunks}) <= 1
    assert sum(chunk.size for chunk in chunks if chunk.is_in_memory) <= memory_bytes
    stored = b"".join(to_pieces(chunks))
    for restored in (pickle.loads(pickle.dumps(chunks)), from_bytes(stored), copy.deepcopy(chunks)):
        assert [row for chunk in restored for row in rows(list(chunk.messages()))] == rows(parts)
        assert [chunk.id.sequence for chunk in restored] == list(range(len(chunks)))
    assert writer.take(7) == []


def test_small_parts_become_one_and_those_of_another_form_stay_apart() -> None:
    parts = [KafkaMessages("t", [b"a"]), KafkaMessages("t", [b"b", None]), KafkaMessages("u", [b"c"])]
    parts += [KafkaMessages("u", [b"d"], [b"k"]), KafkaMessages(["v"], [b"e"]), KafkaMessages(["w"], [b"f"])]
    assert [len(part) for part in merged(parts)] == [3, 1, 1, 2]
    assert rows(merged(parts)) == rows(parts)


def test_chunks_of_older_checkpoints_are_one_block() -> None:
    older = {"count": 2, "size": 3, "compression": None, "_parts": None, "_spilled": None}
    older |= {"id": ChunkId("p-0", "1-0", 7, "t", 0, 1), "_data": packed([KafkaMessages("t", [b"a", b"bc"])], None)}
    chunk = Chunk.__new__(Chunk)
    chunk.__setstate__(older)
    assert (chunk.id.sequence, chunk.count, chunk.size, chunk.is_in_memory) == (7, 2, 3, True)
    assert [part.values for part in chunk.messages()] == [[b"a", b"bc"]]


def test_spilled_chunks_are_in_files_without_a_name(tmp_path) -> None:
    writer = ChunkWriter(ChunkId("p-0", "1-0", 0, "t", 0, 1), None, CHUNK_BYTES, str(tmp_path))
    writer.add(KafkaMessages("t", [b"x" * (CHUNK_BYTES // 4)] * 12), [CHUNK_BYTES // 4] * 12, 0)
    chunks = writer.take(0)
    assert [chunk.is_in_memory for chunk in chunks] == [True, False, False]
    assert writer.spilled_bytes > 2 * CHUNK_BYTES
    assert list(tmp_path.iterdir()) == []
    assert [len(part) for chunk in chunks for part in chunk.messages()] == [4, 4, 4]
