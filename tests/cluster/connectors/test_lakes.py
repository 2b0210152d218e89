"""Delta and Iceberg tables on Ray: each row once in the bare library's eyes, across kills of slots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pytest

from rayflink.common import WatermarkStrategy
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.delta import DeltaSink, DeltaSource
from rayflink.datastream.connectors.iceberg import CatalogLoader, IcebergSink, TableLoader

deltalake = pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]

OPTIONS: dict[str, Any] = {
    "parallelism.default": 2,
    "execution.checkpointing.interval": "200 ms",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": 3,
    "restart-strategy.fixed-delay.delay": "100 ms",
}
SCHEMA = pyarrow.schema([("n", pyarrow.int64())])
ROWS = 20_000


def _fail_once(marker: Path) -> Any:
    def passed_on(n: int) -> Any:
        import os

        from rayflink.common import Row

        if n == ROWS // 2:
            try:
                marker.touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os._exit(9)  # the process of the slot is gone
        return Row(n=n)

    return passed_on


@pytest.mark.parametrize("lake", ["delta", pytest.param("iceberg", marks=pytest.mark.soak)])
def test_each_row_is_written_once_although_a_slot_dies(tmp_path: Path, lake: str) -> None:
    env = StreamExecutionEnvironment(OPTIONS)
    source = DataGeneratorSource(lambda n: n, count=ROWS, records_per_second=10_000)
    rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").map(_fail_once(tmp_path / "failed"))
    options = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/tables"}
    loader = TableLoader.from_catalog(CatalogLoader.sql("lake", options), "db.t")
    if lake == "delta":
        rows.sink_to(DeltaSink.for_row_data(tmp_path / "t", SCHEMA).build())
    else:
        IcebergSink.for_row_data(rows).table_loader(loader).create_table(SCHEMA).append()
    env.execute()
    assert (tmp_path / "failed").exists()
    if lake == "delta":
        found = deltalake.DeltaTable(str(tmp_path / "t")).to_pyarrow_table()["n"].to_pylist()
        env = StreamExecutionEnvironment({"parallelism.default": 2})
        read = env.from_source(DeltaSource.for_bounded_row_data(tmp_path / "t").build(), source_name="t")
        assert sorted(row.n for row in read.execute_and_collect()) == list(range(ROWS))
    else:
        found = loader.load().scan().to_arrow()["n"].to_pylist()
    assert sorted(found) == list(range(ROWS))
