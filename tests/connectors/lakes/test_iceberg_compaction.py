"""Compaction of Iceberg tables: by hand, under kills and beside other writers, and by a sink beside its commits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pytest

from rayflink.common import Duration
from rayflink.connectors.iceberg.iceberg_compaction import IcebergCompaction
from rayflink.connectors.iceberg.iceberg_sink import IcebergSink
from rayflink.connectors.iceberg.iceberg_source import IcebergSource
from rayflink.connectors.lakes.lake_errors import LakeError
from tests.connectors.lakes.lake_model import Faults, Killed, LakeModel
from tests.connectors.lakes.test_iceberg_faults import POINTS, SCHEMA, bare, new_models, numbers_in, table_at
from tests.connectors.lakes.test_lake_sources import drain
from tests.connectors.reading import Coordinator

pytest.importorskip("pyiceberg")
from pyiceberg.catalog.sql import SqlCatalog

pytestmark = pytest.mark.slow


def operations_in(folder: Path, name: str) -> list[str]:
    """The operations of the snapshots, oldest first."""
    return [snapshot.summary.operation.value for snapshot in bare(folder, name).snapshots()]


def files_in(folder: Path, name: str) -> int:
    return len(list(bare(folder, name).scan().plan_files()))


def six_commits(folder: Path, partitioning: str = "") -> LakeModel:
    model = new_models(folder, 1, partitioning)()
    for _ in range(6):
        model.write(2)
        model.checkpoint("complete")
    return model


def test_a_compaction_replaces_small_files_and_replays_are_recognized_afterwards(tmp_path: Path) -> None:
    model = six_commits(tmp_path, "bucket(2, n)")
    before = files_in(tmp_path, "t0")
    assert IcebergCompaction(table_at(tmp_path, "t0"), None).merge() == f"{before} files merged into 2"
    assert files_in(tmp_path, "t0") == 2 and operations_in(tmp_path, "t0") == ["append"] * 6 + ["replace"]
    summary = bare(tmp_path, "t0").current_snapshot().summary
    assert (summary["total-records"], summary["total-data-files"]) == ("12", "2")
    assert IcebergCompaction(table_at(tmp_path, "t0"), None).merge() == "no files are to be merged"
    model.check_all()
    model.start(2)  # commits its last checkpoint again
    model.haunt()
    assert len(operations_in(tmp_path, "t0")) == 7
    model.write(4)
    model.finish()


@pytest.mark.parametrize(
    ("fault", "point"),
    [("after", 0), ("before", 6), ("before", 7), ("after", 7), ("lost", 7)],
    ids=["in the files", "before their end", "before the commit", "after the commit", "answer lost"],
)
def test_a_compaction_that_is_killed_harms_no_row(tmp_path: Path, fault: str, point: int) -> None:
    model, faults = six_commits(tmp_path), Faults()
    compaction = IcebergCompaction(table_at(tmp_path, "t0"), None)
    with faults.installed(*POINTS):
        faults.arm(fault, point)  # six writes, the end of the file, the commit
        with pytest.raises(LakeError if fault == "lost" else Killed):
            compaction.merge()
    model.check_all()
    compaction.merge()
    assert files_in(tmp_path, "t0") == 1 and operations_in(tmp_path, "t0") == ["append"] * 6 + ["replace"]
    model.write(3)
    model.finish()


@pytest.mark.parametrize("rival", ["append", "delete", "replace"])
def test_another_commits_while_files_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rival: str) -> None:
    six_commits(tmp_path)
    compaction = IcebergCompaction(table_at(tmp_path, "t0"), None)
    real, raced = SqlCatalog.commit_table, []

    def race(catalog: Any, *args: Any, **kwargs: Any) -> Any:
        if not raced:
            raced.append(True)
            if rival == "append":
                bare(tmp_path, "t0").append(pyarrow.table({"n": [100], "word": ["other"]}, schema=SCHEMA))
            elif rival == "delete":
                bare(tmp_path, "t0").delete("n = 3")
            else:
                compaction.merge()
        return real(catalog, *args, **kwargs)

    monkeypatch.setattr(SqlCatalog, "commit_table", race)
    if rival == "append":
        compaction.merge()
        assert numbers_in(tmp_path, "t0") == [*range(12), 100] and files_in(tmp_path, "t0") == 2
        return
    with pytest.raises(LakeError, match="were deleted or replaced by others"):
        compaction.merge()
    assert numbers_in(tmp_path, "t0") == [number for number in range(12) if (rival, number) != ("delete", 3)]


def test_a_sink_compacts_beside_its_commits_and_a_stream_emits_no_row_again(tmp_path: Path) -> None:
    loader = table_at(tmp_path, "c")

    def sink() -> IcebergSink:
        return IcebergSink.for_row_data().table_loader(loader).create_table(SCHEMA).with_compaction(3).build()

    model = LakeModel(sink, lambda: numbers_in(tmp_path, "c"), 1)
    model.write(1)
    model.checkpoint("complete")
    streaming = IcebergSource.for_row_data().table_loader(loader).streaming(True)
    coordinator = Coordinator(streaming.monitor_interval(Duration.of_millis(10)).build(), 1)
    assert drain(coordinator, 1) == [0]
    for _ in range(6):
        model.write(2)
        model.checkpoint("complete")
        assert model.committer is not None
        model.committer.operators[0]._committer.close()  # waits for the compaction
    assert operations_in(tmp_path, "c").count("replace") == 2
    state = coordinator.enumerator.snapshot_state()
    coordinator.close()
    coordinator = Coordinator(streaming.build(), 1, state)
    assert drain(coordinator, 12) == list(range(1, 13))
    coordinator.close()
    model.check_all()
