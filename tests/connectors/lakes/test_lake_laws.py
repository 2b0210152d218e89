"""Sinks and sources of lakes keep their promise through crashes at every place, restores and rescaling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from rayflink.common import Row
from rayflink.common.time import Duration
from rayflink.connectors.delta.delta_sink import DeltaSink
from rayflink.connectors.delta.delta_source import DeltaSource
from rayflink.connectors.iceberg.iceberg_sink import IcebergSink
from rayflink.connectors.iceberg.iceberg_source import IcebergSource
from rayflink.connectors.iceberg.iceberg_table import CatalogLoader, TableLoader
from rayflink.datastream.connectors.base import Sink, Source
from rayflink.testing import SinkSubject, SourceSubject, check_sink, check_source

deltalake = pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
from pyiceberg.catalog.sql import SqlCatalog  # noqa: E402

pytestmark = pytest.mark.slow
SCHEMA = pyarrow.schema([("n", pyarrow.int64())])
NUMBERS = count()


class DeltaTable:
    """A table of one column in a folder of its own; it is there with its first rows."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"delta-{next(NUMBERS)}"

    def sink(self) -> Sink:
        return DeltaSink.for_row_data(self.path, SCHEMA).build()

    def source(self) -> Source:
        return DeltaSource.for_continuous_row_data(self.path).update_check_interval(_millis(20)).build()

    def append(self, rows: pyarrow.Table) -> None:
        deltalake.write_deltalake(str(self.path), rows, mode="append")

    def numbers(self) -> list[int]:
        if not deltalake.DeltaTable.is_deltatable(str(self.path)):
            return []
        rows = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(self.path)))
        numbers: list[int] = pyarrow.table(rows.execute("SELECT n FROM t").read_all())["n"].to_pylist()
        return numbers


class IcebergTable:
    """The same in a catalog of its own; it is there from the start."""

    def __init__(self, folder: Path) -> None:
        home = folder / f"iceberg-{next(NUMBERS)}"
        home.mkdir()
        self.options = {"uri": f"sqlite:///{home}/catalog.db", "warehouse": f"file://{home}/tables"}
        catalog = SqlCatalog("lake", **self.options)
        catalog.create_namespace("db")
        catalog.create_table("db.t", SCHEMA)
        self.loader = TableLoader.from_catalog(CatalogLoader.sql("lake", self.options), "db.t")

    def sink(self) -> Sink:
        return IcebergSink.for_row_data(SCHEMA).table_loader(self.loader).build()

    def source(self) -> Source:
        builder = IcebergSource.for_row_data().table_loader(self.loader).streaming(True)
        return builder.monitor_interval(_millis(20)).build()

    def append(self, rows: pyarrow.Table) -> None:
        SqlCatalog("lake", **self.options).load_table("db.t").append(rows)

    def numbers(self) -> list[int]:
        table = SqlCatalog("lake", **self.options).load_table("db.t")
        numbers: list[int] = table.scan().to_arrow()["n"].to_pylist()
        return numbers


def _millis(amount: int) -> Duration:
    return Duration.of_millis(amount)


LAKES = pytest.mark.parametrize("lake", [DeltaTable, IcebergTable])
SEEDS = pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 14))])


@LAKES
@SEEDS
def test_a_sink_writes_each_row_once(tmp_path: Path, lake: Any, seed: int) -> None:
    class Rows(SinkSubject):
        def __init__(self) -> None:
            self.table = lake(tmp_path)

        def create_sink(self) -> Sink:
            return self.table.sink()

        def record(self, number: int) -> Row:
            return Row(n=number)

        def read(self) -> Iterable[int]:
            return self.table.numbers()

    check_sink(Rows, seeds=[seed], records=96)


@LAKES
@SEEDS
def test_a_source_reads_each_row_once(tmp_path: Path, lake: Any, seed: int) -> None:
    class Rows(SourceSubject):
        def __init__(self) -> None:
            self.table = lake(tmp_path)

        def create_source(self) -> Source:
            return self.table.source()

        def write(self, numbers: Sequence[int]) -> None:
            self.table.append(pyarrow.table({"n": pyarrow.array(numbers, pyarrow.int64())}))

        def number(self, record: Row) -> int:
            return int(record.n)

    check_source(Rows, seeds=[seed], records=96)
