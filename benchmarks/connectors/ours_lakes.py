"""Delta and Iceberg tables written and read by a stream, beside the bare libraries, in pairs.

Each pair writes the same columns and reads them back: first by a job of one subtask in this process, then by
deltalake or pyiceberg alone, the one that begins changing from pair to pair. Times are of the clock, and of the CPU of
this process, whose libraries use all cores.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

BLOCK_ROWS = 1 << 16


def run(data: str | None, rows: int = 5_000_000, rounds: int = 3) -> dict[str, Any]:
    """Rows a second and CPU seconds of each way, medians of the pairs, and the ratios of ours to the bare library.

    Args:
        rows: of the table.
        rounds: pairs.
    """
    import pyarrow

    table = _columns(rows)
    folder = tempfile.mkdtemp(prefix="rayflink-bench-")
    taken: dict[str, list[tuple[float, float]]] = {}
    try:
        for number in range(rounds + 1):  # the first pair loads the libraries, and is not measured
            for lake in ("delta", "iceberg"):
                ways = _ways(lake, f"{folder}/{lake}{number}", table)
                order = list(ways.items()) if number % 2 else [*ways.items()][::-1]
                for stage in ("write", "read"):
                    for name, way in [item for item in order if item[0].endswith(stage)]:
                        began, cpu = time.perf_counter(), time.process_time()
                        found = way()
                        if found not in (None, rows):
                            raise RuntimeError(f"{name} gave {found} rows of {rows}")
                        spent = time.perf_counter() - began, time.process_time() - cpu
                        if number:
                            taken.setdefault(name, []).append(spent)
            shutil.rmtree(folder)
            os.makedirs(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    numbers: dict[str, Any] = {"rows": rows, "bytes": table.nbytes, "pyarrow": pyarrow.__version__}
    for name, spent in taken.items():
        numbers[f"{name}_rows_s"] = rows / statistics.median(clock for clock, _ in spent)
        numbers[f"{name}_cpu_s"] = statistics.median(cpu for _, cpu in spent)
    for name in ("delta_write", "delta_read", "iceberg_write", "iceberg_read"):
        lake, _, stage = name.partition("_")
        numbers[f"{name}_ratio"] = numbers[f"{name}_rows_s"] / numbers[f"{lake}_bare_{stage}_rows_s"]
    return numbers


def _columns(rows: int) -> Any:
    import numpy
    import pyarrow

    ids = numpy.arange(rows, dtype=numpy.int64)
    return pyarrow.table(
        {
            "id": ids,
            "key": ids * 7919 % 100_003,
            "price": (ids * 37 % 100_003) / 100,
            "at": pyarrow.array(ids * 1000).cast(pyarrow.timestamp("us", "UTC")),
            "customer": pyarrow.array([f"customer-{n}" for n in range(50_000)]).take(pyarrow.array(ids % 50_000)),
        }
    )


def _count(rows: Any) -> Any:
    import pyarrow

    return pyarrow.table({"n": [rows.num_rows]})


def _ways(lake: str, place: str, table: Any) -> dict[str, Callable[[], int | None]]:
    """Return what is measured: writes and reads, by a stream and by the bare library."""
    from rayflink.common import WatermarkStrategy
    from rayflink.datastream import StreamExecutionEnvironment
    from rayflink.datastream.connectors.delta import DeltaSink, DeltaSource
    from rayflink.datastream.connectors.iceberg import CatalogLoader, IcebergSink, IcebergSource, TableLoader
    from rayflink.table.connectors.in_memory import FramePart, FrameSource, HeldColumns

    os.makedirs(place)
    catalog = CatalogLoader.sql("lake", {"uri": f"sqlite:///{place}/catalog.db", "warehouse": f"file://{place}"})
    loader = TableLoader.from_catalog(catalog, "db.ours")
    no_time = WatermarkStrategy.no_watermarks()

    def env() -> Any:
        return StreamExecutionEnvironment({"execution.target": "local", "parallelism.default": 1})

    def write() -> None:
        program = env()
        blocks = table.to_batches(max_chunksize=BLOCK_ROWS)
        part = FramePart(0, 0, "", len(blocks), table.num_rows, table.nbytes)
        stream = program.from_source(FrameSource(HeldColumns(blocks), [part], table.schema), no_time, "columns")
        if lake == "delta":
            stream.sink_to(DeltaSink.for_row_data(f"{place}/ours", table.schema).build())
        else:
            IcebergSink.for_row_data(stream).table_loader(loader).create_table(table.schema).append()
        program.execute()

    def read() -> int:
        program = env()
        if lake == "delta":
            source: Any = DeltaSource.for_bounded_row_data(f"{place}/ours").build()
        else:
            source = IcebergSource.for_row_data().table_loader(loader).build()
        counts = program.from_source(source, no_time, "table").map_batches(_count)
        return sum(row.n for row in counts.execute_and_collect())

    def bare_write() -> None:
        if lake == "delta":
            import deltalake

            deltalake.write_deltalake(f"{place}/bare", table)
        else:
            opened = catalog.load()
            opened.create_namespace_if_not_exists("db")
            opened.create_table("db.bare", table.schema).append(table)

    def bare_read() -> int:
        if lake == "delta":
            import deltalake

            return int(deltalake.DeltaTable(f"{place}/bare").to_pyarrow_table().num_rows)
        return int(catalog.load().load_table("db.bare").scan().to_arrow().num_rows)

    return {
        f"{lake}_write": write, f"{lake}_bare_write": bare_write, f"{lake}_read": read,
        f"{lake}_bare_read": bare_read,
    }  # fmt: skip


__all__ = ["run"]
