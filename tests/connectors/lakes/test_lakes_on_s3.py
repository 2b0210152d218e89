"""Sinks of lakes on S3's protocol: killed and repeated commits, rivals at the same version, and compaction beside them.

The library alone looks at the tables from outside.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from rayflink.connectors.delta.delta_sink import DeltaSink
from rayflink.connectors.delta.delta_table import DeltaPlace
from rayflink.connectors.iceberg.iceberg_sink import IcebergSink
from rayflink.connectors.iceberg.iceberg_table import CatalogLoader, TableLoader
from rayflink.connectors.lakes.data_file_writing import DataFileWriter
from rayflink.connectors.lakes.lake_errors import LakeError
from tests.connectors.lakes.lake_model import Faults, LakeModel, kill_at_every_point
from tests.state.storage.s3_server import BUCKET

deltalake = pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
from pyiceberg.catalog.sql import SqlCatalog  # noqa: E402
from pyiceberg.exceptions import NoSuchTableError  # noqa: E402

pytestmark = pytest.mark.slow
SCHEMA = pyarrow.schema([("n", pyarrow.int64()), ("word", pyarrow.string())])
POINTS = {
    "delta": [(DataFileWriter, "finish", "stage"), (deltalake.DeltaTable, "create_write_transaction", "commit")],
    "iceberg": [(DataFileWriter, "finish", "stage"), (SqlCatalog, "commit_table", "commit")],
}


def delta_table(s3: dict[str, str], name: str) -> Any:
    """The table as the library alone opens it; None: there is none."""
    options = {
        "AWS_ENDPOINT_URL": s3["s3.endpoint"], "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
    }  # fmt: skip
    path = f"s3://{BUCKET}/{name}"
    if not deltalake.DeltaTable.is_deltatable(path, options):
        return None
    return deltalake.DeltaTable(path, storage_options=options)


def iceberg_loader(s3: dict[str, str], folder: Path, name: str) -> TableLoader:
    place = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"s3://{BUCKET}/{folder.name}", **s3}
    return TableLoader.from_catalog(CatalogLoader.sql("lake", place), f"db.{name}")


def models(lake: str, s3: dict[str, str], folder: Path, compact_every: int = 0) -> Callable[[], LakeModel]:
    def new_model() -> LakeModel:
        name = f"t{uuid.uuid4().hex}"

        def delta_sink() -> DeltaSink:
            builder = DeltaSink.for_row_data(f"s3://{BUCKET}/{name}", SCHEMA, s3)
            return (builder.with_compaction(compact_every) if compact_every else builder).build()

        def delta_numbers() -> list[int]:
            table = delta_table(s3, name)
            return [] if table is None else sorted(table.to_pyarrow_table()["n"].to_pylist())

        loader = iceberg_loader(s3, folder, name)

        def iceberg_sink() -> IcebergSink:
            return IcebergSink.for_row_data().table_loader(loader).create_table(SCHEMA).build()

        def iceberg_numbers() -> list[int]:
            catalog = SqlCatalog("lake", **dict(loader.catalog.properties))
            try:
                return sorted(catalog.load_table(f"db.{name}").scan().to_arrow()["n"].to_pylist())
            except NoSuchTableError:
                return []

        if lake == "delta":
            model = LakeModel(delta_sink, delta_numbers, 2)
        else:
            model = LakeModel(iceberg_sink, iceberg_numbers, 2)
        model.name = name
        return model

    return new_model


@pytest.mark.parametrize("lake", POINTS)
@pytest.mark.parametrize(
    ("fault", "stride"),
    [("lost", 5), *(pytest.param(fault, 1, marks=pytest.mark.soak) for fault in ("before", "after", "lost"))],
)
def test_replays_after_kills_are_recognized(
    s3: dict[str, str], tmp_path: Path, lake: str, fault: str, stride: int
) -> None:
    faults = Faults()
    with faults.installed(*POINTS[lake]):
        assert kill_at_every_point(models(lake, s3, tmp_path), faults, fault, stride) > 5


@pytest.mark.parametrize("lake", POINTS)
def test_a_zombie_and_its_successor_commit_at_the_same_time(
    s3: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lake: str
) -> None:
    model = models(lake, s3, tmp_path)()
    model.write(3)
    model.checkpoint("complete")
    model.write(3)
    model.checkpoint("unheard")
    owner, method, _ = POINTS[lake][1]
    zombie, real, raced = model.committer, getattr(owner, method), []
    assert zombie is not None

    def race(table: Any, *args: Any, **kwargs: Any) -> Any:
        if not raced:  # the zombie has looked at the table, and its successor commits before it does
            raced.append(True)
            model.start(2)
        return real(table, *args, **kwargs)

    monkeypatch.setattr(owner, method, race)
    zombie.notify_checkpoint_complete(2)
    assert raced
    model.check_all()


def compactions(model: LakeModel) -> dict[str, int]:
    """The counters of the committer's compactions, when the last one has ended."""
    assert model.committer is not None
    compaction = model.committer.operators[0]._committer._compaction
    if compaction._thread is not None:
        compaction._thread.join(20)
    return {"done": compaction._done.get_count(), "failed": compaction._failed.get_count()}


def test_small_files_are_merged_and_replays_are_recognized_afterwards(s3: dict[str, str], tmp_path: Path) -> None:
    model = models("delta", s3, tmp_path, compact_every=2)()
    for _ in range(4):
        model.write(4)
        model.checkpoint("complete")
        compactions(model)
    assert compactions(model) == {"done": 2, "failed": 0}
    table = delta_table(s3, model.name)
    assert len(table.file_uris()) == 1 and [entry["operation"] for entry in table.history()].count("OPTIMIZE") == 2
    model.check_all()
    before = table.version()
    model.start(3)  # commits its last checkpoint again
    model.haunt()
    assert delta_table(s3, model.name).version() == before
    model.write(5)
    model.finish()


def test_a_compaction_goes_on_beside_commits(
    s3: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = models("delta", s3, tmp_path, compact_every=2)()
    real, may_start = deltalake.table.TableOptimizer.compact, threading.Event()

    def waits(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        assert may_start.wait(20)
        return real(optimizer, *args, **kwargs)  # of a version that is no longer the newest

    monkeypatch.setattr(deltalake.table.TableOptimizer, "compact", waits)
    for _ in range(4):
        model.write(2)
        model.checkpoint("complete")
    may_start.set()
    assert compactions(model) == {"done": 1, "failed": 0}, "the one of the second commit; the fourth found it running"
    assert delta_table(s3, model.name).history(1)[0]["operation"] == "OPTIMIZE"
    model.check_all()


def test_a_compaction_that_fails_is_counted_and_harms_no_row(
    s3: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise OSError("another has deleted the files, secret_access_key=hidden")

    monkeypatch.setattr(deltalake.table.TableOptimizer, "compact", fails)
    model = models("delta", s3, tmp_path, compact_every=1)()
    model.write(4)
    model.checkpoint("complete")
    assert compactions(model) == {"done": 0, "failed": 1}
    assert "was not compacted" in caplog.text and "hidden" not in caplog.text
    model.check_all()


@pytest.mark.parametrize("lake", POINTS)
def test_a_bucket_that_is_missing_is_an_error_with_the_remedy(s3: dict[str, str], tmp_path: Path, lake: str) -> None:
    with pytest.raises(LakeError, match="there is no such bucket.*correct the bucket's name") as caught:
        if lake == "delta":
            DeltaPlace.at("s3://nowhere/t", s3).create(SCHEMA, [])
        else:
            loader = iceberg_loader(s3, tmp_path, "t")
            place = {**dict(loader.catalog.properties), "warehouse": "s3://nowhere/tables"}
            TableLoader.from_catalog(CatalogLoader.sql("lake", place), "db.t").load_or_create(
                IcebergSink.for_row_data().table_loader(loader).create_table(SCHEMA)._new
            )
    assert "test" not in str(caught.value).replace("latest", "")
