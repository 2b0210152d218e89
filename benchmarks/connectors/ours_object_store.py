"""Files in an object store: MB/s of JSON lines and Parquet that are read and written, beside the bare libraries.

The server is the `minio` on the PATH, else that of the tests, which `python -m
benchmarks.servers.bring_servers minio` builds by Go.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from typing import Any

from benchmarks.servers.object_stores import BUCKET, minio_program, minio_store

OBJECTS = 4


def run(data_path: str = "", rows: int = 500_000, rounds: int = 3) -> dict[str, Any]:
    """MB/s by way, the best of the rounds, which take the ways in turns.

    Args:
        data_path: not used; objects are made.
        rows: of each of the four objects; 500,000 are 190 MB of JSON and 146 MB of Parquet in all.
    """
    if minio_program() is None:
        raise RuntimeError("MinIO is not there; python -m benchmarks.servers.bring_servers minio builds it")
    with minio_store() as server:
        ways = _ways(server.options, rows)
        best: dict[str, float] = {}
        for _ in range(rounds):
            for name, (size, way) in ways.items():
                began = time.perf_counter()
                way()
                best[name] = max(best.get(name, 0.0), size / 1e6 / (time.perf_counter() - began))
    return {name: round(rate, 1) for name, rate in best.items()}


def _ways(options: dict[str, str], rows: int) -> dict[str, tuple[int, Callable[[], object]]]:
    """Return bytes and work by way, after the objects are in the store."""
    import pyarrow
    from pyarrow import dataset, fs, json, parquet

    from rayflink.connectors.file_systems.object_store import ObjectStores
    from rayflink.connectors.files.file_source import FileSource
    from rayflink.connectors.formats.json_files import JsonLinesFormat
    from rayflink.connectors.formats.parquet_files import ParquetFormat

    table = pyarrow.table({
        "id": list(range(rows)), "name": [f"name-{number % 9973}" for number in range(rows)],
        "x": [number * 0.5 for number in range(rows)], "pad": [f"{number:040d}" for number in range(rows)],
    })  # fmt: skip
    out = io.BytesIO()
    parquet.write_table(table, out, row_group_size=65_536, compression="none", use_dictionary=False)
    blob = out.getvalue()
    form = b'{"id":%d,"name":"name-%d","x":%.1f,"pad":"%040d"}\n'
    lines = b"".join(form % (number, number % 9973, number * 0.5, number) for number in range(rows))
    store = ObjectStores(options).path("s3://data/x").store
    for number in range(OBJECTS):
        store.put(f"json/{number}.json", lines)
        store.put(f"parquet/{number}.parquet", blob)
    host = options["s3.endpoint"].partition("://")[2]
    access, secret = options["s3.access-key"], options["s3.secret-key"]
    arrow = fs.S3FileSystem(
        endpoint_override=host, scheme="http", access_key=access, secret_key=secret, region=options["s3.region"]
    )

    def fetched_json() -> None:
        wanted = json.ParseOptions(explicit_schema=table.schema)
        for number in range(OBJECTS):
            data = store.read(f"json/{number}.json", 0, len(lines))
            json.read_json(io.BytesIO(data), parse_options=wanted)

    def scanned() -> None:
        for _ in dataset.dataset(f"{BUCKET}/parquet", filesystem=arrow, format="parquet").to_batches():
            pass

    def copied() -> None:
        scan = dataset.dataset(f"{BUCKET}/parquet", filesystem=arrow, format="parquet")
        again: dict[str, Any] = {"format": "parquet", "existing_data_behavior": "overwrite_or_ignore"}
        dataset.write_dataset(scan, f"{BUCKET}/bare", filesystem=arrow, **again)

    def put() -> None:
        for number in range(OBJECTS):
            store.put(f"put/{number}", blob)

    json_source = FileSource.for_record_stream_format(JsonLinesFormat(table.schema), "s3://data/json").build()
    parquet_source = FileSource.for_bulk_file_format(ParquetFormat(), "s3://data/parquet").build()
    size = len(blob) * OBJECTS
    return {
        "JSON: get and parse by pyarrow": (len(lines) * OBJECTS, fetched_json),
        "JSON: rayflink": (len(lines) * OBJECTS, lambda: _job(options, json_source, None)),
        "Parquet: pyarrow.dataset": (size, scanned),
        "Parquet: rayflink": (size, lambda: _job(options, parquet_source, None)),
        "Parquet, its bytes written: obstore's put": (size, put),
        "Parquet, read and written: pyarrow.dataset": (size, copied),
        "Parquet, read and written: rayflink": (size, lambda: _job(options, parquet_source, table.schema)),
    }


def _job(options: dict[str, str], source: Any, schema: Any) -> None:
    from rayflink.common.watermarks import WatermarkStrategy
    from rayflink.connectors.discard import DiscardingSink
    from rayflink.connectors.formats.parquet_files import ParquetBulkWriters
    from rayflink.datastream import StreamExecutionEnvironment
    from rayflink.datastream.connectors.file_system import BucketAssigner, FileSink

    env = StreamExecutionEnvironment({"execution.target": "local", **options})
    sink: Any = DiscardingSink()
    if schema is not None:
        builder = FileSink.for_bulk_format("s3://data/out", ParquetBulkWriters.for_row_type(schema))
        sink = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    env.from_source(source, WatermarkStrategy.no_watermarks(), "objects").sink_to(sink)
    env.execute()
