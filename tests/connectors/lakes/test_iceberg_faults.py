"""The Iceberg sink under faults: killed at every file and commit, on changing parallelism, beside others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from rayflink.connectors.iceberg.iceberg_sink import IcebergSink
from rayflink.connectors.iceberg.iceberg_table import CatalogLoader, TableLoader
from rayflink.connectors.lakes.data_file_writing import DataFileWriter
from tests.connectors.lakes.lake_model import Faults, LakeModel, kill_at_every_point

pytest.importorskip("pyiceberg")
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError

pytestmark = pytest.mark.slow

SCHEMA = pyarrow.schema([("n", pyarrow.int64()), ("word", pyarrow.string())])
POINTS = [
    (DataFileWriter, "write", "write"),
    (DataFileWriter, "finish", "stage"),
    (SqlCatalog, "commit_table", "commit"),
]


def table_at(folder: Path, name: str) -> TableLoader:
    options = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/tables"}
    return TableLoader.from_catalog(CatalogLoader.sql("lake", options), f"db.{name}")


def bare(folder: Path, name: str) -> Any:
    """The table as the library alone opens it."""
    loader = table_at(folder, name)
    return SqlCatalog("lake", **dict(loader.catalog.properties)).load_table(loader.identifier)


def numbers_in(folder: Path, name: str) -> list[int]:
    try:
        return sorted(bare(folder, name).scan().to_arrow()["n"].to_pylist())
    except NoSuchTableError:
        return []


def commits_in(folder: Path, name: str) -> list[int]:
    """The ids of the checkpoints that were committed, oldest first."""
    summaries = [snapshot.summary.additional_properties for snapshot in bare(folder, name).snapshots()]
    key = "flink.max-committed-checkpoint-id"
    return [int(summary[key]) for summary in summaries if key in summary]


def new_models(folder: Path, parallelism: int, partitioning: str) -> Callable[[], LakeModel]:
    made = iter(range(10_000))

    def new_model() -> LakeModel:
        name = f"t{next(made)}"

        def sink() -> IcebergSink:
            builder = IcebergSink.for_row_data().table_loader(table_at(folder, name))
            return builder.create_table(SCHEMA, partitioning).build()

        return LakeModel(sink, lambda: numbers_in(folder, name), parallelism)

    return new_model


@pytest.mark.spec("H24")
@pytest.mark.parametrize(
    ("fault", "partitioning"),
    [
        ("after", "bucket(2, n)"),
        pytest.param("before", "", marks=pytest.mark.soak),
        pytest.param("lost", "", marks=pytest.mark.soak),
    ],
)
def test_a_kill_at_any_write_file_or_commit_leaves_each_row_once(tmp_path: Path, fault: str, partitioning: str) -> None:
    faults = Faults()
    with faults.installed(*POINTS):
        assert kill_at_every_point(new_models(tmp_path, 2, partitioning), faults, fault) > 10


def test_one_snapshot_a_checkpoint_and_none_for_an_empty_one(tmp_path: Path) -> None:
    model = new_models(tmp_path, 3, "")()
    for count in (5, 0, 4, 0, 0, 1):
        model.write(count)
        model.checkpoint("complete")
    model.check_all()
    assert commits_in(tmp_path, "t0") == [1, 3, 6]


@pytest.mark.parametrize("rival", ["successor", "stranger"])
def test_another_commits_between_the_look_and_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rival: str
) -> None:
    model = new_models(tmp_path, 1, "")()
    model.write(3)
    model.checkpoint("complete")
    model.write(3)
    model.checkpoint("unheard")
    first, real, raced = model.committer, SqlCatalog.commit_table, []
    assert first is not None

    def race(catalog: Any, *args: Any, **kwargs: Any) -> Any:
        if not raced:
            raced.append(True)
            if rival == "successor":
                model.start(2)
            else:
                bare(tmp_path, "t0").append(pyarrow.table({"n": [100], "word": ["other"]}, schema=SCHEMA))
        return real(catalog, *args, **kwargs)

    monkeypatch.setattr(SqlCatalog, "commit_table", race)
    first.notify_checkpoint_complete(2)
    assert raced and commits_in(tmp_path, "t0") == [1, 2]
    assert numbers_in(tmp_path, "t0") == [0, 1, 2, 3, 4, 5] + [100] * (rival == "stranger")


def test_a_table_that_is_rolled_back_gets_the_rows_of_the_savepoint_again(tmp_path: Path) -> None:
    model = new_models(tmp_path, 1, "")()
    model.write(2)
    model.checkpoint("complete")
    savepoint = model.last
    model.write(2)
    model.checkpoint("complete")
    table = bare(tmp_path, "t0")
    table.manage_snapshots().rollback_to_snapshot(table.snapshots()[0].snapshot_id).commit()
    model.last = savepoint
    model.number = 5
    model.start(1)
    model.write(3)
    model.finish()
    assert numbers_in(tmp_path, "t0") == [0, 1, 2, 3, 4]
