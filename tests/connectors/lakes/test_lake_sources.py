"""Tables of lakes as sources: each row once across restores and rescales, what is no append, deleted rows, stores."""

from __future__ import annotations

import dataclasses
import pickle
import time
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pytest
from pyarrow import parquet

from rayflink.common import Row
from rayflink.common.connector_base.source import END, PENDING
from rayflink.common.records.batches import RowBatch, Tagged, Watermark, WatermarkStatus, rows_of
from rayflink.connectors.delta.delta_plan import deleted_rows
from rayflink.connectors.delta.delta_sink import DeltaSink
from rayflink.connectors.delta.delta_source import DeltaSource
from rayflink.connectors.delta.delta_table import DeltaPlace
from rayflink.connectors.iceberg.iceberg_plan import deleted_rows as iceberg_deleted_rows
from rayflink.connectors.iceberg.iceberg_source import IcebergSource
from rayflink.connectors.iceberg.iceberg_table import CatalogLoader, TableLoader
from rayflink.connectors.lakes.data_file_reading import DataFileSplit, FileReading
from rayflink.connectors.lakes.lake_errors import LakeError
from rayflink.operators.global_commits import GlobalCommitterOperator, SinkWriterOperator
from rayflink.testing import OperatorHarness
from tests.connectors.reading import Coordinator
from tests.operators.running import FixedClock
from tests.state.storage.s3_server import BUCKET, s3_server

deltalake = pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
from pyiceberg.catalog.sql import SqlCatalog  # noqa: E402

pytestmark = pytest.mark.slow


def delta_rows(path: Path, numbers: list[int], **options: Any) -> None:
    table = pyarrow.table({"n": pyarrow.array(numbers, pyarrow.int64())})
    deltalake.write_deltalake(str(path), table, mode="append", **options)


def iceberg_at(folder: Path) -> tuple[TableLoader, Any]:
    options = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/tables"}
    catalog = SqlCatalog("lake", **options)
    catalog.create_namespace_if_not_exists("db")
    table = catalog.create_table_if_not_exists("db.t", pyarrow.schema([("n", pyarrow.int64())]))
    return TableLoader.from_catalog(CatalogLoader.sql("lake", options), "db.t"), table


def drain(coordinator: Coordinator, wanted: int, max_records: int = 1000) -> list[int]:
    """Rows of all readers in turn until there are this many, and nothing more is at hand."""
    found: list[int] = []
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        answers = [coordinator.poll(reader, max_records) for reader in range(coordinator.parallelism)]
        batches = [answer for answer in answers if answer is not PENDING and answer is not END]
        for batch in batches:
            assert not isinstance(batch, (Watermark, WatermarkStatus, Tagged))
            found += [row.n for row in rows_of(batch)]
        if len(found) >= wanted and not batches:
            break
    return found


@pytest.mark.parametrize("lake", ["delta", "iceberg"])
def test_a_snapshot_is_read_once_across_restores_and_rescales(tmp_path: Path, lake: str) -> None:
    expected = list(range(300))
    if lake == "delta":
        for start in range(0, 300, 100):
            delta_rows(tmp_path / "t", expected[start : start + 100])
        source: Any = DeltaSource.for_bounded_row_data(tmp_path / "t").build()
    else:
        loader, table = iceberg_at(tmp_path)
        for start in range(0, 300, 100):
            table.append(pyarrow.table({"n": expected[start : start + 100]}))
        source = IcebergSource.for_row_data().table_loader(loader).build()
    source = pickle.loads(pickle.dumps(source))
    coordinator = Coordinator(source, 2)
    found: list[int] = []
    for parallelism in (1, 3, 2):
        for reader in range(coordinator.parallelism):
            answer = coordinator.poll(reader, 7)
            if answer is not PENDING and answer is not END:
                found += [row.n for row in rows_of(answer)]
        state = coordinator.enumerator.snapshot_state()
        open_splits = [split for reader in coordinator.readers for split in reader.snapshot_state()]
        coordinator.close()
        coordinator = Coordinator(source, parallelism, pickle.loads(pickle.dumps(state)))
        for index, split in enumerate(open_splits):
            coordinator.readers[index % parallelism].add_splits([split])
    for rows in coordinator.read_all(13):
        found += [row.n for row in rows]
    assert sorted(found) == expected


def test_a_stream_of_delta_versions_survives_a_restore_and_passes_over_compactions(tmp_path: Path) -> None:
    path, clock = tmp_path / "t", FixedClock()
    delta_rows(path, [1, 2])
    source = DeltaSource.for_continuous_row_data(path).update_check_interval(_millis(10)).build()
    coordinator = Coordinator(source, 2, clock=clock)
    assert sorted(drain(coordinator, 2)) == [1, 2]
    delta_rows(path, [3])
    deltalake.DeltaTable(str(path)).optimize.compact()
    state = coordinator.enumerator.snapshot_state()
    coordinator.close()
    coordinator = Coordinator(source, 1, state, FixedClock())
    delta_rows(path, [4])
    coordinator.enumerator.start()
    assert drain(coordinator, 2) == [3, 4], "in the order of the versions"
    coordinator.close()


@pytest.mark.parametrize("statement", ["delete", "overwrite"])
def test_a_version_that_is_no_append_fails_or_is_passed_over(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "t"
    delta_rows(path, [1, 2])
    if statement == "delete":
        deltalake.DeltaTable(str(path)).delete("n = 1")
    else:
        deltalake.write_deltalake(str(path), pyarrow.table({"n": [9]}), mode="overwrite")
    delta_rows(path, [3])
    builder = DeltaSource.for_continuous_row_data(path).starting_version(0)
    with pytest.raises(LakeError, match="version 1 .*ignore_deletes|version 1 .*skip_change_commits"):
        builder.build().plan.after(-1)
    skipping = builder.skip_change_commits(True).build()
    coordinator = Coordinator(skipping, 1)
    coordinator.enumerator.start()
    assert drain(coordinator, 3) == [1, 2, 3]
    assert skipping.plan.after(0).splits[0].skipped_commits == 1


def test_a_version_that_is_gone_from_the_log_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for number in range(3):
        delta_rows(path, [number])
    deltalake.DeltaTable(str(path)).create_checkpoint()
    (path / "_delta_log" / f"{1:020d}.json").unlink()
    plan = DeltaSource.for_continuous_row_data(path).starting_version(1).build().plan
    with pytest.raises(LakeError, match="version 1 .* is gone from its log, the newest is 2"):
        plan.after(0)


def test_an_iceberg_snapshot_that_was_rolled_back_is_an_error(tmp_path: Path) -> None:
    loader, table = iceberg_at(tmp_path)
    for number in range(2):
        table.append(pyarrow.table({"n": [number]}))
    plan = IcebergSource.for_row_data().table_loader(loader).streaming(True).build().plan
    last = table.current_snapshot().snapshot_id
    table.manage_snapshots().rollback_to_snapshot(table.snapshots()[0].snapshot_id).commit()
    with pytest.raises(LakeError, match=f"snapshot {last}.*is expired or rolled back"):
        plan.after(last)


def test_settings_of_the_other_kind_of_sources_are_refused(tmp_path: Path) -> None:
    loader, _ = iceberg_at(tmp_path)
    with pytest.raises(LakeError, match="start is a setting of streaming sources"):
        IcebergSource.for_row_data().table_loader(loader).start_snapshot_id(1).build()
    with pytest.raises(LakeError, match="version_as_of"):
        DeltaSource.for_continuous_row_data(tmp_path).version_as_of(1)
    with pytest.raises(LakeError, match="ignore_deletes"):
        DeltaSource.for_bounded_row_data(tmp_path).ignore_deletes(True)


def test_deleted_rows_are_left_out_at_every_position(tmp_path: Path) -> None:
    schema = pyarrow.schema([("n", pyarrow.int64())])
    parquet.write_table(pyarrow.table({"n": list(range(100))}), tmp_path / "f.parquet", row_group_size=30)
    gone = numpy.zeros(95, bool)
    gone[[0, 5, 29, 30, 31, 59, 90, 94]] = True
    expected = [n for n in range(100) if n >= 95 or not gone[n]]
    for stop in range(0, 90, 11):
        split, found = DataFileSplit(str(tmp_path / "f.parquet"), 1), []
        while len(found) <= stop:
            cursor = FileReading(schema).cursor(split, pyarrow.OSFile(split.path), pyarrow.array(gone))
            batch = cursor.read(9)
            assert batch is not None
            found += batch.data["n"].to_pylist()
            split = cursor.position()
            cursor.close()
        cursor = FileReading(schema).cursor(split, pyarrow.OSFile(split.path), pyarrow.array(gone))
        while (batch := cursor.read(1000)) is not None:
            found += batch.data["n"].to_pylist()
        assert found == expected


def test_lists_of_deleted_rows_of_both_formats_are_read(tmp_path: Path) -> None:
    import zlib

    marks = numpy.array([False, True, True, False, True] * 3, bool)
    packed = len(marks).to_bytes(8, "little") + zlib.compress(numpy.packbits(marks, bitorder="little").tobytes())
    assert deleted_rows(packed).to_pylist() == marks.tolist()
    _, table = iceberg_at(tmp_path)
    listed = pyarrow.table({"file_path": ["a", "b", "a"], "pos": [3, 0, 1]})
    parquet.write_table(listed, tmp_path / "deletes.parquet")
    found = iceberg_deleted_rows(table, "a", ((str(tmp_path / "deletes.parquet"), "PARQUET"),))
    assert found is not None and found.to_pylist() == [False, True, False, True]
    with pytest.raises(LakeError, match="AVRO"):
        iceberg_deleted_rows(table, "a", (("x", "AVRO"),))


def test_columns_that_a_file_lacks_are_null_or_of_the_partition(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"n": [1, 2]}), tmp_path / "f.parquet")
    split = DataFileSplit(str(tmp_path / "f.parquet"), 1, (("room", "hall"),))
    schema = pyarrow.schema([("room", pyarrow.string()), ("late", pyarrow.int32())])
    batch = FileReading(schema).cursor(split, pyarrow.OSFile(split.path), None).read(10)
    assert batch is not None
    assert batch.data.to_pydict() == {"room": ["hall", "hall"], "late": [None, None]}
    strict = pyarrow.schema([pyarrow.field("late", pyarrow.int32(), nullable=False)])
    with pytest.raises(LakeError, match="'late', which must not be NULL"):
        FileReading(strict).cursor(dataclasses.replace(split, constants=()), pyarrow.OSFile(split.path), None).read(10)


def test_delta_tables_in_an_object_store_are_written_once_and_read_in_the_background(s3: dict[str, str]) -> None:
    path = f"s3://{BUCKET}/lake/t"
    schema = pyarrow.schema([("n", pyarrow.int64())])
    sink = DeltaSink.for_row_data(path, schema, s3).build()
    with (
        OperatorHarness(lambda: SinkWriterOperator(sink)) as writer,
        OperatorHarness(lambda: GlobalCommitterOperator(sink.create_global_committer)) as committer,
    ):
        for checkpoint in (1, 2):
            writer.process_batch(RowBatch([Row(n=checkpoint * 1000 + n) for n in range(500)]))
            seen = len(writer.output_values())
            writer.snapshot(checkpoint)
            committer.process_batch(RowBatch(writer.output_values()[seen:]))
            committer.snapshot(checkpoint)
            committer.notify_checkpoint_complete(checkpoint)
    assert DeltaPlace.at(path, s3).open().version() == 2
    secret = s3["s3.secret-key"] + "-not-shown"
    assert secret not in repr(sink) + repr(DeltaPlace.at(path, {**s3, "s3.secret-key": secret}))
    source = DeltaSource.for_bounded_row_data(path, s3).build()
    coordinator = Coordinator(source, 2)
    found = drain(coordinator, 1000, 64)
    coordinator.close()
    assert sorted(found) == [*range(1000, 1500), *range(2000, 2500)]


def test_iceberg_tables_in_an_object_store_are_read(tmp_path: Path) -> None:
    with s3_server() as options:
        place = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"s3://{BUCKET}/tables", **options}
        loader = TableLoader.from_catalog(CatalogLoader.sql("lake", place), "db.t")
        catalog = loader.catalog.load()
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", pyarrow.schema([("n", pyarrow.int64())]))
        table.append(pyarrow.table({"n": list(range(100))}))
        coordinator = Coordinator(IcebergSource.for_row_data().table_loader(loader).build(), 1)
        assert drain(coordinator, 100, 8) == list(range(100))
        coordinator.close()


def _millis(count: int) -> Any:
    from rayflink.common import Duration

    return Duration.of_millis(count)
