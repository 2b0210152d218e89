"""Files that are read from an object store."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import pickle
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import orc, parquet

from rayflink.common.connector_base.source import END, PENDING, Poll
from rayflink.common.records.batches import rows_of
from rayflink.common.time import Duration
from rayflink.connectors.file_systems.object_paths import ObjectPath
from rayflink.connectors.file_systems.object_store import ObjectStores
from rayflink.connectors.file_systems.store_errors import ObjectStoreError, StoreConnectionError
from rayflink.connectors.files.file_blocks import find_files
from rayflink.connectors.files.file_source import FileSource, StreamFormat
from rayflink.connectors.formats.arrow_files import ArrowFormat
from rayflink.connectors.formats.csv_files import CsvFileSource
from rayflink.connectors.formats.json_files import JsonLinesFormat
from rayflink.connectors.formats.orc_files import OrcFormat
from rayflink.connectors.formats.parquet_files import ParquetFormat
from tests.connectors.reading import Coordinator
from tests.operators.running import FixedClock

from .stores import BUCKET, Server

pytestmark = pytest.mark.slow
DEADLINE_S = 30


def _lines(server: Server, *names: str) -> FileSource:
    form = StreamFormat.text_line_format()
    source = FileSource.for_record_stream_format(form, *(f"s3://{BUCKET}/{name}" for name in names)).build()
    return _configured(server, source)


def _configured(server: Server, source: FileSource) -> FileSource:
    return pickle.loads(pickle.dumps(source)).configured(server.options)


def _polled(coordinator: Coordinator, subtask: int = 0, max_records: int = 1000) -> Any:
    """The next answer that is not PENDING."""
    deadline = time.monotonic() + DEADLINE_S
    while (answer := coordinator.poll(subtask, max_records)) is PENDING:
        assert time.monotonic() < deadline, "the source gives nothing and does not end"
        time.sleep(0.001)
    return answer


def _read(source: FileSource, max_records: int = 1000) -> list[Any]:
    coordinator = Coordinator(source)
    out: list[Any] = []
    try:
        while (answer := _polled(coordinator, 0, max_records)) is not END:
            out += rows_of(answer)
    finally:
        coordinator.close()
    return out


@pytest.mark.parametrize(
    ("named", "found"),
    [
        ("in", ["in/a.txt", "in/sub/b.txt", "in/sub/c%2Fd.txt", "in/x y.log"]),
        ("in/", ["in/a.txt", "in/sub/b.txt", "in/sub/c%2Fd.txt", "in/x y.log"]),
        ("in/*.txt", ["in/_hidden.txt", "in/a.txt"]),
        ("in/**/*.txt", ["in/_hidden.txt", "in/_sub/d.txt", "in/a.txt", "in/sub/b.txt", "in/sub/c%2Fd.txt"]),
        ("i?/[ab].txt", ["in/a.txt"]),
        ("*/sub", ["in/sub/b.txt", "in/sub/c%2Fd.txt"]),
        ("in/x y.log", ["in/x y.log"]),
        ("in/_hidden.txt", ["in/_hidden.txt"]),
        ("", ["in/a.txt", "in/sub/b.txt", "in/sub/c%2Fd.txt", "in/x y.log", "inside.txt"]),
    ],
)
def test_addresses_name_objects_folders_and_patterns(
    s3: Server, tmp_path: Path, named: str, found: list[str]
) -> None:
    shown = ("in/a.txt", "in/sub/b.txt", "in/sub/c%2Fd.txt", "in/x y.log", "inside.txt")
    for key in (*shown, "in/_hidden.txt", "in/.part"):
        s3.put(key, b"1\n")
    s3.put("in/_sub/d.txt", b"1\n")
    path = ObjectStores(s3.options).path(f"s3://{BUCKET}/{named}")
    assert find_files([path]) == [f"s3://{BUCKET}/{key}" for key in found]
    for key in s3.objects():
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / key).touch()
    assert set(find_files([str(tmp_path / named)])) == {str(tmp_path / key) for key in found}, "as of local files"


def test_an_address_that_names_nothing_is_an_error_before_the_job_runs(s3: Server) -> None:
    with pytest.raises(FileNotFoundError, match="no object, folder or match for 's3://data/none'; correct"):
        _lines(s3, "none").check()
    watching = FileSource.for_record_stream_format(StreamFormat.text_line_format(), f"s3://{BUCKET}/*.txt")
    _configured(s3, watching.monitor_continuously(Duration.of_seconds(1)).build()).check()


CONTENT = [f"line {number}" for number in range(20_000)]
PACKERS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress,
           ".zst": lambda data: pyarrow.compress(data, "zstd", asbytes=True)}  # fmt: skip


@pytest.mark.parametrize("ending", PACKERS)
def test_lines_are_read_plain_and_packed(s3: Server, ending: str) -> None:
    s3.put(f"in/f.txt{ending}", PACKERS[ending]("\n".join(CONTENT).encode()))
    assert _read(_lines(s3, "in")) == CONTENT


def test_a_large_object_is_read_in_parts_by_several_readers_with_few_requests(s3: Server) -> None:
    lines = [f"{number:0100d}" for number in range(120_000)]
    s3.put("big.txt", "\n".join(lines).encode())
    coordinator = Coordinator(_lines(s3, "big.txt"), 2)
    s3.requests.clear()
    out: list[list[Any]] = [[], []]
    running = {0, 1}
    while running:
        for subtask in sorted(running):
            answer = _polled(coordinator, subtask, 5000)
            if answer is END:
                running.discard(subtask)
            else:
                out[subtask] += rows_of(answer)
    coordinator.close()
    assert all(out) and sorted(out[0] + out[1]) == lines
    assert len(s3.requests) < 16, s3.requests
    assert all(request.startswith("GET /data/big.txt") for request in s3.requests)


TABLE = pyarrow.table({"n": list(range(50_000)), "s": [f"s{number % 100}" for number in range(50_000)]})


def _written(write: Any) -> bytes:
    out = io.BytesIO()
    write(out)
    return out.getvalue()


def _ipc(out: io.BytesIO) -> None:
    with pyarrow.ipc.new_file(out, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=10_000)


@pytest.mark.parametrize(
    ("form", "write"),
    [
        (ParquetFormat(), lambda out: parquet.write_table(TABLE, out, row_group_size=10_000)),
        (OrcFormat(), lambda out: orc.write_table(TABLE, out)),
        (ArrowFormat(), _ipc),
    ],
)
def test_columns_are_read_by_blocks(s3: Server, form: Any, write: Any) -> None:
    s3.put("in/f", _written(write))
    source = FileSource.for_bulk_file_format(form, f"s3://{BUCKET}/in").build()
    rows = _read(_configured(s3, source))
    assert [row[0] for row in rows] == list(range(50_000)) and rows[7][1] == "s7"


def test_of_a_wide_parquet_file_only_the_wanted_columns_are_read(s3: Server) -> None:
    wide = pyarrow.table({f"c{at}": [f"{at}-{row}" * 20 for row in range(20_000)] for at in range(20)})
    data = _written(lambda out: parquet.write_table(wide, out, compression="none", use_dictionary=False))
    s3.put("in/f", data)
    seen: list[int] = []
    form = ParquetFormat(pyarrow.schema([("c3", pyarrow.string())]))
    source = _configured(s3, FileSource.for_bulk_file_format(form, f"s3://{BUCKET}/in").build())
    store = source._stores.path(f"s3://{BUCKET}/in").store
    read = store.read
    reader = Coordinator(source)
    counted = reader.readers[0]._stores.path(f"s3://{BUCKET}/in").store  # type: ignore[attr-defined]
    counted.read = lambda key, start, stop, version="": (seen.append(stop - start), read(key, start, stop, version))[1]
    rows = 0
    while (answer := _polled(reader)) is not END:
        rows += len(answer)
    reader.close()
    assert rows == 20_000 and sum(seen) < len(data) / 8, (sum(seen), len(data))


def test_csv_with_names_and_json_are_read(s3: Server) -> None:
    s3.put("csv/a.csv", b"n,s\n" + b"".join(b"%d,x\n" % number for number in range(3000)))
    s3.put("json/a.json", b"".join(b'{"n":%d}\n' % number for number in range(3000)))
    csv = CsvFileSource(f"s3://{BUCKET}/csv", rows=True)
    assert [row.n for row in _read(_configured(s3, csv))] == list(range(3000))
    json = FileSource.for_record_stream_format(JsonLinesFormat(), f"s3://{BUCKET}/json").build()
    assert [row["n"] for row in _read(_configured(s3, json))] == list(range(3000))


@pytest.mark.parametrize("max_records", [7, 1000, 100_000])
def test_a_reader_that_is_restored_goes_on_behind_the_last_record(s3: Server, max_records: int) -> None:
    s3.put("in/a.txt", "\n".join(CONTENT[:9000]).encode())
    s3.put("in/b.txt.gz", gzip.compress("\n".join(CONTENT[9000:]).encode()))
    source = _lines(s3, "in")
    out: list[Any] = []
    coordinator, polls = Coordinator(source), 0
    while (answer := _polled(coordinator, 0, max_records)) is not END:
        out += rows_of(answer)
        polls += 1
        if polls % (500 if max_records == 7 else 2):
            continue
        splits, state = coordinator.readers[0].snapshot_state(), coordinator.enumerator.snapshot_state()
        assert not any(isinstance(split.path, ObjectPath) for split in splits)
        splits, state = pickle.loads(pickle.dumps((splits, state)))
        coordinator.close()
        coordinator = Coordinator(source, state=state)
        coordinator.readers[0].add_splits(splits)
    coordinator.close()
    assert out == CONTENT


def test_a_watched_prefix_gives_each_object_once(s3: Server) -> None:
    clock = FixedClock(0)
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), f"s3://{BUCKET}/in")
    source = _configured(s3, builder.monitor_continuously(Duration.of_seconds(10)).build())
    s3.put("in/a", b"a\n")
    coordinator = Coordinator(source, clock=clock)
    assert rows_of(_polled(coordinator)) == ["a"]
    s3.put("in/b", b"b\n")
    s3.put("in/a", b"a\nmore\n")
    s3.put("in/empty", b"")
    assert [coordinator.poll() for _ in range(3)][-1] is PENDING
    clock.now = 10_000
    assert rows_of(_polled(coordinator)) == ["b"]
    state = pickle.loads(pickle.dumps(coordinator.enumerator.snapshot_state()))
    assert state.seen == {f"s3://{BUCKET}/in/a", f"s3://{BUCKET}/in/b"}
    coordinator.close()


def test_a_clock_of_the_store_that_is_wrong_hides_no_object(s3: Server, tmp_path: Path) -> None:
    clock, now = FixedClock(0), datetime.now(timezone.utc)
    builder = FileSource.for_record_stream_format(
        StreamFormat.text_line_format(), f"s3://{BUCKET}/in", str(tmp_path)
    ).monitor_continuously(Duration.of_seconds(10))
    coordinator = Coordinator(_configured(s3, builder.build()), clock=clock)
    for number, days in enumerate((400, -400, 0)):  # from the future, from the past, from today
        s3.put(f"in/{number}", b"object %d\n" % number)
        s3.date(f"in/{number}", now + timedelta(days=days))
        (tmp_path / str(number)).write_text(f"file {number}\n")
        seconds = (now + timedelta(days=days)).timestamp()
        os.utime(tmp_path / str(number), (seconds, seconds))
        clock.now += 10_000
        found = [line for _ in range(2) for line in rows_of(_polled(coordinator))]
        assert sorted(found) == [f"file {number}", f"object {number}"]
        assert coordinator.poll() is PENDING
    coordinator.close()


def test_an_answer_that_is_cut_off_is_requested_again(s3: Server) -> None:
    s3.put("in/a.txt", "\n".join(CONTENT).encode())
    s3.put("in/f.parquet", _written(lambda out: parquet.write_table(TABLE, out)))
    for name, count in (("a.txt", 3), ("f.parquet", 4)):
        cuts, s3.fault = [], None
        source: FileSource = _lines(s3, "in/a.txt")
        if name != "a.txt":
            form = ParquetFormat(batch_size=50_000)
            source = _configured(s3, FileSource.for_bulk_file_format(form, f"s3://{BUCKET}/in/{name}").build())
        source.check()

        def cut_at_first(method: str, path: str, cuts: list[str] = cuts, count: int = count) -> str | None:
            if method != "GET" or "list-type" in path or len(cuts) >= count:
                return None
            cuts.append(path)
            return "cut"

        s3.fault = cut_at_first
        assert len(_read(source)) == len(CONTENT if name == "a.txt" else TABLE) and len(cuts) == count


def test_poll_never_waits_for_a_slow_store(s3: Server) -> None:
    s3.put("in/a.txt", "\n".join(CONTENT).encode())
    coordinator = Coordinator(_lines(s3, "in"))
    s3.latency_s = 0.05
    longest, out, looks = 0.0, list[Any](), set[bool]()
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        start = time.monotonic()
        answer: Any = coordinator.poll(0, 100)
        longest = max(longest, time.monotonic() - start)
        if answer is END:
            break
        if not isinstance(answer, Poll):
            out += rows_of(answer)
        else:
            looks.add(coordinator.readers[0].next_poll_ms() is None)
            time.sleep(0.001)
    coordinator.close()
    assert out == CONTENT and False in looks and longest < 0.04, longest


def test_requests_that_fail_in_passing_are_made_again_and_counted(s3: Server) -> None:
    s3.put("in/a.txt", "\n".join(CONTENT).encode())
    faults: Iterator[Any] = iter([(503, "SlowDown"), "reset", (500, "InternalError"), None, (429, "TooManyRequests")])
    s3.fault = lambda method, path: next(faults, None)
    retries: list[int] = []

    class Counter:
        def inc(self) -> None:
            retries.append(1)

    stores = ObjectStores(s3.options, Counter())
    path = stores.path(f"s3://{BUCKET}/in/a.txt")
    assert path.known().size == len("\n".join(CONTENT))
    assert bytes(path.store.read(path.key, 0, 4)) == b"line"
    assert len(retries) == 4


@pytest.mark.parametrize(
    ("status", "code", "problem"),
    [
        (403, "AccessDenied", "the store forbids it.*permit the credentials"),
        (403, "InvalidAccessKeyId", "does not accept the credentials.*set s3.access-key"),
        (403, "SignatureDoesNotMatch", "does not accept the credentials"),
        (403, "RequestTimeTooSkewed", "the clocks of this machine and of the store differ.*NTP"),
        (301, "PermanentRedirect", "in another region.*s3.region"),
        (400, "AuthorizationHeaderMalformed", "in another region.*s3.region"),
        (404, "NoSuchBucket", "there is no such bucket.*correct the bucket's name"),
    ],
)
def test_a_store_that_refuses_is_an_error_before_the_job_runs(s3: Server, status: int, code: str, problem: str) -> None:
    s3.fault = lambda method, path: (status, code)
    with pytest.raises(ObjectStoreError, match=problem) as caught:
        _lines(s3, "in").check()
    assert not isinstance(caught.value, StoreConnectionError)
    assert len(s3.requests) == 1, "what will not change is not tried again"


def test_a_store_that_never_answers_is_an_outage_that_ends(s3: Server) -> None:
    s3.fault = lambda method, path: (503, "SlowDown")
    with pytest.raises(StoreConnectionError, match="tried 5 times, at last: .*503.*; look at the store"):
        _lines(s3, "in").check()
    gone = {**s3.options, "s3.endpoint": "http://127.0.0.1:9"}
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "s3://data/x").build()
    with pytest.raises(StoreConnectionError, match="cannot list s3://data/x: tried 5 times"):
        source.configured(gone).check()


def test_an_object_that_changes_or_goes_after_the_listing_is_an_error(s3: Server) -> None:
    for change, problem in (
        (lambda: s3.put("in/a.txt", b"other\n"), "written anew since it was listed; leave objects as they are"),
        (lambda: s3.client().delete_object(Bucket=BUCKET, Key="in/a.txt"), "there is no such object"),
    ):
        s3.put("in/a.txt", b"a\nb\n")
        coordinator = Coordinator(_lines(s3, "in"))
        change()
        with pytest.raises(ObjectStoreError, match=problem):
            _polled(coordinator)
        coordinator.close()


def test_secrets_are_in_no_pickle_repr_or_error(s3: Server) -> None:
    options = {**s3.options, "s3.secret-key": "very-secret", "s3.session-token": "also-secret"}
    stores = ObjectStores(options)
    path = stores.path(f"s3://{BUCKET}/x")
    s3.fault = lambda method, path: (403, "AccessDenied")
    with pytest.raises(ObjectStoreError) as caught:
        path.known()
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(path)).build()
    assert b"secret" not in pickle.dumps(source.configured(options))
    with pytest.raises(TypeError, match="is not pickled"):
        pickle.dumps(path.store)
    shown = [repr(path), repr(path.store), str(caught.value), repr(caught.value), pickle.dumps(path).decode("latin1")]
    assert not any("secret" in text for text in shown)
