"""Files in an object store: MB/s of JSON lines and Parquet that are read and written, beside the bare libraries.

The server is the `minio` on the PATH; `go install github.com/minio/minio@latest` builds one.
"""

from __future__ import annotations

import io
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

OBJECTS = 4
_ACCOUNT = "benchmark"


def run(data_path: str = "", rows: int = 500_000, rounds: int = 3) -> dict[str, Any]:
    """MB/s by way, the best of the rounds, which take the ways in turns.

    Args:
        data_path: not used; objects are made.
        rows: of each of the four objects; 500,000 are 190 MB of JSON and 146 MB of Parquet in all.
    """
    with _minio() as options:
        ways = _ways(options, rows)
        best: dict[str, float] = {}
        for _ in range(rounds):
            for name, (size, way) in ways.items():
                began = time.perf_counter()
                way()
                best[name] = max(best.get(name, 0.0), size / 1e6 / (time.perf_counter() - began))
    return {name: round(rate, 1) for name, rate in best.items()}


@contextmanager
def _minio() -> Iterator[dict[str, str]]:
    program = shutil.which("minio")
    if program is None:
        raise RuntimeError("no minio on the PATH; go install github.com/minio/minio@latest")
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        free.close()
        account = {"MINIO_ROOT_USER": _ACCOUNT, "MINIO_ROOT_PASSWORD": _ACCOUNT}
        command = [program, "server", "--quiet", "--address", address, folder]
        server = subprocess.Popen(command, env={**os.environ, **account}, stdout=subprocess.DEVNULL)
        try:
            os.makedirs(f"{folder}/data", exist_ok=True)  # a bucket
            _wait_for(address)
            keys = {"s3.access-key": _ACCOUNT, "s3.secret-key": _ACCOUNT, "s3.region": "us-east-1"}
            yield {"s3.endpoint": f"http://{address}", **keys}
        finally:
            server.terminate()
            server.wait()


def _wait_for(address: str) -> None:
    host, _, port = address.partition(":")
    deadline = time.monotonic() + 30
    while True:
        try:
            return socket.create_connection((host, int(port)), 1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


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
    arrow = fs.S3FileSystem(
        endpoint_override=host, scheme="http", access_key=_ACCOUNT, secret_key=_ACCOUNT, region="us-east-1"
    )

    def fetched_json() -> None:
        wanted = json.ParseOptions(explicit_schema=table.schema)
        for number in range(OBJECTS):
            data = store.read(f"json/{number}.json", 0, len(lines))
            json.read_json(io.BytesIO(data), parse_options=wanted)

    def scanned() -> None:
        for _ in dataset.dataset("data/parquet", filesystem=arrow, format="parquet").to_batches():
            pass

    json_source = FileSource.for_record_stream_format(JsonLinesFormat(table.schema), "s3://data/json").build()
    parquet_source = FileSource.for_bulk_file_format(ParquetFormat(), "s3://data/parquet").build()
    size = len(blob) * OBJECTS
    return {
        "JSON: get and parse by pyarrow": (len(lines) * OBJECTS, fetched_json),
        "JSON: rayflink": (len(lines) * OBJECTS, lambda: _job(options, json_source, None)),
        "Parquet: pyarrow.dataset": (size, scanned),
        "Parquet: rayflink": (size, lambda: _job(options, parquet_source, None)),
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
