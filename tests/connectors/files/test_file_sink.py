"""The file sink: names, buckets, when files end, and what is left after failures."""

from __future__ import annotations

import pickle
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common import Encoder, Types
from rayflink.common.errors import PlanError
from rayflink.common.records.batches import RowBatch
from rayflink.connectors.files.buckets import BucketAssigner, BucketContext
from rayflink.connectors.files.file_sink import (
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    OutputFileConfig,
    StreamingFileSink,
)
from rayflink.connectors.files.rolling import RollingPolicy
from rayflink.connectors.formats.csv_writing import csv_file_sink, text_file_sink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.operators.base import UserCodeError
from rayflink.operators.sinks import SinkOperator
from rayflink.testing import OperatorHarness
from tests.operators.running import context, opened, splits

TEXT = Encoder.simple_string_encoder()
HERE = BucketAssigner.base_path_bucket_assigner()


def _builder(folder: Path) -> Any:
    return FileSink.for_row_format(str(folder), TEXT).with_bucket_assigner(HERE)


def _write(sink: Any, *batches: RowBatch, **facts: Any) -> None:
    operator = opened(SinkOperator(pickle.loads(pickle.dumps(sink))), **facts)
    for batch in batches:
        assert list(operator.process(batch, 0)) == []
    list(operator.finish())
    operator.close()


def _content(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.spec("C26", "rolling-files")
def test_names_hold_prefix_job_subtask_number_and_suffix_so_that_jobs_do_not_collide(tmp_path: Path) -> None:
    names = OutputFileConfig.builder().with_part_prefix("out").with_part_suffix(".log").build()
    assert (names.get_part_prefix(), names.get_part_suffix()) == ("out", ".log")
    sink = _builder(tmp_path).with_output_file_config(names).build()
    _write(sink, RowBatch(["a"]), job_id="1234567890abcdef" * 2, subtask=3)
    _write(sink, RowBatch(["b"]), job_id="f" * 32, subtask=3)
    assert _content(tmp_path) == {"out-12345678-3-0.log": "a\n", "out-ffffffff-3-0.log": "b\n"}


def test_a_sink_without_records_leaves_nothing(tmp_path: Path) -> None:
    for sink in (_builder(tmp_path / "x").build(), text_file_sink(tmp_path / "x")):
        _write(sink)
        _write(sink, RowBatch([]))
    assert list(tmp_path.iterdir()) == []


def test_the_default_bucket_is_the_hour_of_processing_time(tmp_path: Path) -> None:
    with OperatorHarness(lambda: SinkOperator(FileSink.for_row_format(str(tmp_path), TEXT).build())) as harness:
        harness.set_processing_time(1_000)
        harness.process("a")
        harness.set_processing_time(3_600_000)
        harness.process("b")
        harness.end_input()
    hours = [datetime.fromtimestamp(at).strftime("%Y-%m-%d--%H") for at in (1, 3600)]
    assert [path.split("/")[0] for path in _content(tmp_path)] == hours
    assert list(_content(tmp_path).values()) == ["a\n", "b\n"]


@pytest.mark.parametrize(
    ("format_str", "zone", "bucket"),
    [
        ("yyyy-MM-dd--HH", "UTC", "2009-02-13--23"),
        ("yyyy/MM/dd/HH/mm", "GMT-08:00", "2009/02/13/15/31"),
        ("yy'T'HHmmss.SSS", "Europe/Berlin", "09T003130.123"),
        ("'o''clock' H 'h' d D", "UTC", "o'clock 23 h 13 44"),
        ("EEE dd MMM h a", "UTC", "Fri 13 Feb 11 PM"),
    ],
)
def test_buckets_of_time_are_named_as_by_java_s_formatter(format_str: str, zone: str, bucket: str) -> None:
    assigner = BucketAssigner.date_time_bucket_assigner(format_str, zone)
    assert pickle.loads(pickle.dumps(assigner)).bucket_of_all(1_234_567_890_123) == bucket


def test_unknown_letters_and_time_zones_are_refused() -> None:
    with pytest.raises(ValueError, match="letter 'Q' in the date format 'yyyy-QQ' is not known; use y, "):
        BucketAssigner.date_time_bucket_assigner("yyyy-QQ")
    with pytest.raises(ValueError, match="time zone 'Mars/Base' is not known; use a name"):
        BucketAssigner.date_time_bucket_assigner(timezone_id="Mars/Base")


class ByFirst(BucketAssigner):
    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        return f"kind={element[0]}/t={context.timestamp}"


def test_an_assigner_of_one_s_own_sorts_each_record(tmp_path: Path) -> None:
    sink = FileSink.for_row_format(str(tmp_path), TEXT).with_bucket_assigner(ByFirst()).build()
    _write(sink, RowBatch(["a1", "b1", "a2"], [1, 1, 1]), RowBatch(["a3"], [2]))
    got = {Path(path).parent: text for path, text in _content(tmp_path).items()}
    assert got == {Path("kind=a/t=1"): "a1\na2\n", Path("kind=b/t=1"): "b1\n", Path("kind=a/t=2"): "a3\n"}


@pytest.mark.parametrize("bucket", ["../out", "/etc", "a/../../b"])
def test_a_bucket_outside_the_folder_is_refused(tmp_path: Path, bucket: str) -> None:
    class Out(BucketAssigner):
        def get_bucket_id(self, element: Any, context: BucketContext) -> str:
            return bucket

    operator = opened(SinkOperator(FileSink.for_row_format(str(tmp_path), TEXT).with_bucket_assigner(Out()).build()))
    with pytest.raises(UserCodeError, match="leads out of .*; give a path below the sink's folder"):
        operator.process(RowBatch(["a"]), 0)
    operator.close()


@pytest.mark.parametrize("bucket", [None, 5, b"x", ["a"]])
def test_a_bucket_that_is_no_text_is_refused_with_the_record(tmp_path: Path, bucket: Any) -> None:
    class Wrong(BucketAssigner):
        def get_bucket_id(self, element: Any, context: BucketContext) -> Any:
            return bucket if element == "b" else ""

    operator = opened(SinkOperator(FileSink.for_row_format(str(tmp_path), TEXT).with_bucket_assigner(Wrong()).build()))
    told = rf"failed in write on record 'b': .*found {type(bucket).__name__} .*; let get_bucket_id give a str"
    with pytest.raises(UserCodeError, match=told):
        operator.process(RowBatch(["a", "b"]), 0)
    operator.close()


@pytest.mark.parametrize("size", [1, 1 << 20])
@pytest.mark.parametrize("given", ["text", None])
def test_what_an_encoder_gives_must_be_bytes(tmp_path: Path, given: Any, size: int) -> None:
    class Careless(Encoder):
        def encode(self, element: Any) -> Any:
            return b"" if element == "a" else given

    sink = FileSink.for_row_format(str(tmp_path), Careless()).with_rolling_policy(RollingPolicy(size)).build()
    operator = opened(SinkOperator(sink))
    told = f"on record 'b': TypeError: Careless.encode.* gave {type(given).__name__}, bytes are wanted"
    with pytest.raises(UserCodeError, match=told):
        operator.process(RowBatch(["a", "b"]), 0)
    operator.close()


def test_two_sinks_of_a_job_that_would_replace_each_other_s_files_are_refused(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment({"execution.target": "local"})
    numbers = env.from_collection([1, 2])
    numbers.sink_to(text_file_sink(tmp_path / "a")).name("one")
    numbers.sink_to(text_file_sink(tmp_path / "b")).name("two")
    numbers.map(lambda n: (n,)).sink_to(csv_file_sink(tmp_path / "a"))
    env.execute()
    assert _content(tmp_path / "a") == {"part-0-0.csv": "1\n2\n", "part-0-0.txt": "1\n2\n"}
    numbers.sink_to(text_file_sink(tmp_path / "a")).name("one")
    numbers.sink_to(text_file_sink(f"{tmp_path}/b/../a")).name("two")
    told = rf"'Sink: two' writes to {tmp_path}/a/part-\*.txt, as does 'Sink: one' \(created at .*test_file_sink.py"
    with pytest.raises(PlanError, match=told):
        env.execute()


def test_what_another_sink_writes_to_the_folder_is_no_leftover(tmp_path: Path) -> None:
    texts = opened(SinkOperator(text_file_sink(tmp_path)))
    texts.process(RowBatch(["a"]), 0)
    _write(csv_file_sink(tmp_path), RowBatch([(1,)]))
    list(texts.finish())
    texts.close()
    assert _content(tmp_path) == {"part-0-0.csv": "1\n", "part-0-0.txt": "a\n"}


@settings(max_examples=20)
@given(st.lists(st.text("ab", max_size=6), max_size=4), st.integers(1, 12))
def test_files_end_above_the_size_whatever_the_batches(tmp_path_factory: Any, records: list[str], size: int) -> None:
    policy = RollingPolicy.default_rolling_policy(part_size=size)
    seen = []
    for cut in splits(len(records)) if records else [[]]:
        folder = tmp_path_factory.mktemp("out")
        sink = _builder(folder).with_rolling_policy(policy).build()
        _write(sink, *[RowBatch(records[part]) for part in cut])
        seen.append(list(_content(folder).values()))
    assert all(files == seen[0] for files in seen)
    assert "".join(seen[0]) == "".join(f"{record}\n" for record in records)
    assert all(len(text) > size for text in seen[0][:-1])
    assert all(len(text[: text.rstrip("\n").rfind("\n") + 1]) <= size for text in seen[0])


def _parts(folder: Path) -> list[str]:
    return sorted(path.name.split("-0-")[-1] for path in folder.iterdir())


def test_a_file_ends_by_age_or_rest_at_the_next_check(tmp_path: Path) -> None:
    policy = RollingPolicy.default_rolling_policy(rollover_interval=5_000, inactivity_interval=2_000)
    sink = _builder(tmp_path).with_rolling_policy(policy).with_bucket_check_interval(1_000).build()
    with OperatorHarness(lambda: SinkOperator(sink)) as harness:
        harness.process("a")
        harness.set_processing_time(1_000)
        assert _parts(tmp_path) == ["0.inprogress.0.0"]
        harness.set_processing_time(2_000)  # rested for two seconds
        harness.process("b")
        assert _parts(tmp_path) == ["0.inprogress.0.0", "1.inprogress.0.0"]
        for now in range(3_000, 9_000, 1_000):  # written to each second, but too old after five
            harness.set_processing_time(now)
            harness.process("b")
        assert _parts(tmp_path) == ["0.inprogress.0.0", "1.inprogress.0.0", "2.inprogress.0.0"]
        harness.end_input()
    assert list(_content(tmp_path).values()) == ["a\n", "b\n" * 5, "b\n" * 2]


def test_no_check_is_asked_for_while_no_file_is_open(tmp_path: Path) -> None:
    operator = opened(SinkOperator(_builder(tmp_path).build()))
    assert operator.next_processing_time() is None
    list(operator.process(RowBatch(["a"]), 0))
    assert operator.next_processing_time() == 60_000
    list(operator.finish())
    assert operator.next_processing_time() is None
    operator.close()


def test_an_attempt_removes_what_its_predecessor_left_in_any_bucket_and_nothing_else(tmp_path: Path) -> None:
    sink = FileSink.for_row_format(str(tmp_path), TEXT).with_bucket_assigner(ByFirst()).build()
    (tmp_path / "kind=a").mkdir()
    for name in ("part-00000000-0-0.inprogress.0.0", "part-00000000-1-0.inprogress.0.0", "part-00000000-0-0.other.0"):
        (tmp_path / "kind=a" / f".{name}").write_text("left")
    _write(sink, attempt=1)
    assert list(_content(tmp_path)) == [
        "kind=a/.part-00000000-0-0.other.0", "kind=a/.part-00000000-1-0.inprogress.0.0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("attempt", "left"), [((1, 1), ["1.1", "2.0"]), ((1, 2), ["2.0"]), ((2, 0), ["2.0"]), ((2, 1), [])]
)
def test_an_attempt_leaves_the_files_of_those_alone_that_run_in_its_place(tmp_path: Path, attempt: Any, left: Any):
    for other in ("1.0", "1.1", "2.0"):
        (tmp_path / f".part-00000000-0-0.inprogress.{other}").write_text("half")
    _write(_builder(tmp_path).build(), epoch=attempt[0], attempt=attempt[1])
    assert list(_content(tmp_path)) == [f".part-00000000-0-0.inprogress.{other}" for other in left]


def test_the_number_of_the_next_file_and_what_waits_to_be_committed_are_state(tmp_path: Path) -> None:
    make = lambda: SinkOperator(_builder(tmp_path).build())  # noqa: E731
    harness = OperatorHarness(make)
    harness.process("a")
    snapshot = harness.snapshot(1)
    harness.process("lost")
    with harness.restore(make, snapshot) as restored:
        restored.process("b")
        restored.end_input()
    assert _content(tmp_path) == {"part-00000000-0-0": "a\n", "part-00000000-0-1": "b\n"}


def test_records_of_a_declared_type_are_written_as_java_writes_them(tmp_path: Path) -> None:
    sink = _builder(tmp_path).build().for_type(Types.TUPLE([Types.STRING(), Types.INT()]))
    _write(sink, RowBatch([("a", 1)]))
    assert list(_content(tmp_path).values()) == ["(a,1)\n"]


def test_the_old_streaming_file_sink_has_the_same_builders(tmp_path: Path) -> None:
    builder = StreamingFileSink.for_row_format(str(tmp_path), TEXT).with_bucket_assigner(HERE)
    sink = builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()
    assert isinstance(sink, StreamingFileSink)
    _write(sink, RowBatch(["a"]))
    assert list(_content(tmp_path).values()) == ["a\n"]


def test_arguments_are_checked_in_the_line_that_gives_them(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"an Encoder is wanted, found str; use Encoder.simple_string_encoder\(\)"):
        FileSink.for_row_format(str(tmp_path), "utf-8")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a BulkWriterFactory is wanted"):
        FileSink.for_bulk_format(str(tmp_path), TEXT)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a BucketAssigner is wanted, found str"):
        _builder(tmp_path).with_bucket_assigner("hour")
    with pytest.raises(ValueError, match="part_size must be >= 1, found 0"):
        RollingPolicy.default_rolling_policy(0)
    with pytest.raises(ValueError, match="check interval must be at least 1 ms"):
        _builder(tmp_path).with_bucket_check_interval(0)
    with pytest.raises(ValueError, match="part files cannot be named '.part'"):
        OutputFileConfig(".part", "")
    with pytest.raises(ValueError, match="ftp://bucket': files cannot be read or written by ftp://"):
        FileSink("ftp://bucket", TEXT)
    with pytest.raises(PlanError, match="does not join its part files; roll larger files .*test_file_sink.py"):
        strategy = FileCompactStrategy.builder().set_size_threshold(9).build()
        _builder(tmp_path).enable_compact(strategy, FileCompactor.concat_file_compactor())
    assert _builder(tmp_path).disable_compact().build()


def test_a_folder_that_must_not_be_written_to_is_an_error_when_the_sink_opens(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    operator = SinkOperator(_builder(tmp_path / "file" / "below").build())
    operator.setup(context())
    with pytest.raises(UserCodeError, match="file' is a file, a folder is wanted; choose another"):
        operator.open()
