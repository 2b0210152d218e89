"""Partitions whose rows are complete are marked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pytest

from rayflink.common.connector_base.sink import WriterContext
from rayflink.common.records.batches import ArrowBatch
from rayflink.connectors.files.file_sink import FileSink, FileSinkSettings
from rayflink.connectors.files.success_files import SuccessFiles
from rayflink.table import DataTypes, SqlError
from rayflink.table.connectors.csv_columns import CsvColumns
from rayflink.table.connectors.partition_buckets import PartitionBuckets
from rayflink.table.connectors.partition_commits import PartitionTime
from rayflink.table.connectors.partitions import Partitions
from rayflink.table.plan.logical import Attribute
from tests.table.connectors.test_partitioned_files import create, environment


class Clock:
    """A clock that is set."""

    now = 0

    def now_ms(self) -> int:
        return self.now


def sink(folder: Path, marks: SuccessFiles) -> FileSink:
    partitions = Partitions(str(folder), (Attribute("day", DataTypes.STRING()),))
    return FileSink(str(folder), CsvColumns(), FileSinkSettings(PartitionBuckets(partitions, ["n"]), marks=marks))


def rows(*days: str) -> ArrowBatch:
    return ArrowBatch(pyarrow.RecordBatch.from_pydict({"n": list(range(len(days))), "day": list(days)}))


def marked(writer: Any) -> list[str]:
    """The days that are marked at a checkpoint."""
    writer.flush(False)
    return [Path(one.visible).parent.name for one in writer.prepare_commit() if one.visible.endswith("_SUCCESS")]


def test_a_partition_is_complete_when_the_delay_is_over_by_the_clock(tmp_path):
    clock = Clock()
    writer = sink(tmp_path, SuccessFiles(delay_ms=100)).create_writer(WriterContext(clock=clock))
    writer.write(rows("a", "b"))
    assert marked(writer) == []
    clock.now = 60
    writer.write(rows("b", "c"))
    assert marked(writer) == []
    clock.now = 100
    assert marked(writer) == ["day=a", "day=b"]
    assert marked(writer) == []
    state = writer.snapshot_state()
    writer.close()
    clock.now = 160
    again = sink(tmp_path, SuccessFiles(delay_ms=100)).create_writer(
        WriterContext(clock=clock, restored=(state,), attempt=1)
    )
    assert marked(again) == ["day=c"]
    again.write(rows("a"))
    again.flush(True)
    assert [Path(one.visible).name for one in again.prepare_commit()][-1] == "_SUCCESS"
    again.close()


def test_a_partition_is_complete_when_the_watermark_is_there(tmp_path):
    time_of = PartitionTime(["day"], "$day", None, "UTC")
    writer = sink(tmp_path, SuccessFiles(delay_ms=10, time_of=time_of)).create_writer(WriterContext(clock=Clock()))
    writer.write(rows("1970-01-01", "1970-01-02"))
    assert marked(writer) == []
    writer.on_watermark(10)
    assert marked(writer) == ["day=1970-01-01"]
    writer.on_watermark(86_400_009)
    assert marked(writer) == []
    writer.on_watermark(86_400_010)
    assert marked(writer) == ["day=1970-01-02"]
    writer.close()


@pytest.mark.parametrize(("pattern", "formatter", "zone", "expected"), [
    ("$day", None, "UTC", 86_400_000), ("$day $hour:00:00", None, "UTC", 86_400_000 + 3 * 3_600_000),
    ("$day", None, "Europe/Berlin", 82_800_000), ("$hour/$day", "HH/yyyy-MM-dd", "UTC", 86_400_000 + 3 * 3_600_000),
])  # fmt: skip
def test_the_time_of_a_partition(pattern, formatter, zone, expected):
    assert PartitionTime(["day", "hour"], pattern, formatter, zone)("day=1970-01-02/hour=03") == expected


def test_a_partition_without_a_time_is_an_error():
    with pytest.raises(ValueError, match=r"'x' is not a time .*timestamp-pattern"):
        PartitionTime(["day"], "$day", None, "UTC")("day=x")


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("verb", ["INTO", "OVERWRITE"])
def test_partitions_are_marked_at_the_end(batch, verb, tmp_path):
    if verb == "OVERWRITE" and not batch:
        return
    t_env = environment(batch, **{"parallelism.default": "3"})
    more = {"sink.partition-commit.policy.kind": "success-file", "sink.partition-commit.success-file.name": "_DONE"}
    create(t_env, tmp_path / "t", "n INT, k INT", "k", **more)
    t_env.execute_sql(f"INSERT {verb} t VALUES (1, 1), (2, 2), (3, 2), (4, CAST(NULL AS INT))").wait()
    assert {path.parent.name for path in (tmp_path / "t").rglob("_DONE")} == {
        "k=1", "k=2", "k=__DEFAULT_PARTITION__"
    }  # fmt: skip
    assert all(len(list(folder.glob("part-*"))) == 1 for folder in (tmp_path / "t").iterdir())
    assert t_env.from_path("t").to_arrow().num_rows == 4


@pytest.mark.parametrize(("keys", "more", "message"), [
    ("", {"policy.kind": "success-file"}, "is not partitioned"),
    ("k", {"policy.kind": "metastore"}, "expected success-file"),
    ("k", {"trigger": "never"}, "process-time or partition-time"), ("k", {"delay": "x"}, "a duration"),
    ("k", {"policy.kind": "success-file", "success-file.name": "DONE"}, "begin it with _"),
    ("k", {"watermark-time-zone": "Nowhere"}, "is not known"),
])  # fmt: skip
def test_wrong_options_are_reported_before_anything_starts(keys, more, message, tmp_path):
    t_env = environment()
    with pytest.raises(SqlError, match=message):
        create(
            t_env,
            tmp_path / "t",
            "n INT, k INT",
            keys,
            **{f"sink.partition-commit.{key}": one for key, one in more.items()},
        )
        t_env.execute_sql("INSERT INTO t VALUES (1, 1)")


def test_a_mark_waits_for_the_files_of_its_folder(tmp_path):
    from rayflink.common.connector_base.commits import CommitOutcome, CommitRequest
    from rayflink.connectors.files.part_files import PendingFile
    from rayflink.connectors.files.success_files import MarkingCommitter, SuccessMark

    (tmp_path / "blocked").mkdir()
    (tmp_path / "blocked" / "part").mkdir()
    (tmp_path / "blocked" / ".hidden").write_text("1\n")
    file = CommitRequest(PendingFile(str(tmp_path / "blocked" / ".hidden"), str(tmp_path / "blocked" / "part")))
    mark = CommitRequest(SuccessMark(str(tmp_path / "blocked" / "_SUCCESS")))
    MarkingCommitter().commit([file, mark])
    assert mark.outcome is CommitOutcome.RETRY and not (tmp_path / "blocked" / "_SUCCESS").exists()
    (tmp_path / "blocked" / "part").rmdir()
    for one in (file, mark):
        one.outcome = CommitOutcome.COMMITTED
    MarkingCommitter().commit([file, mark])
    assert (tmp_path / "blocked" / "_SUCCESS").exists() and (tmp_path / "blocked" / "part").read_text() == "1\n"
