"""Change data capture of PostgreSQL: a snapshot, and then changes, beside COPY and pg_recvlogical."""

from __future__ import annotations

import contextlib
import resource
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rayflink.common import WatermarkStrategy
from rayflink.common.connector_base.source import Source
from rayflink.common.errors import JobExecutionError
from rayflink.common.records.batches import ArrowBatch, Batch
from rayflink.connectors.cdc.deserialization import ChangeDeserializationSchema
from rayflink.connectors.cdc.table_changes import TableChanges
from rayflink.connectors.discard import DiscardingSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.postgres_cdc import PostgresCdcSource, StartupOptions

TABLE = "CREATE TABLE orders (id int PRIMARY KEY, item text, price numeric(10, 2), placed timestamp, amount int)"
ROWS = (
    "INSERT INTO orders SELECT i, 'item ' || i % 1000, i % 10000 / 100.0, "
    "timestamp '2024-01-01' + i * interval '1 s', i FROM generate_series(1, {rows}) i"
)
CHANGES = "UPDATE orders SET amount = amount + 1 WHERE id <= {changes}"
WAIT_S = 900


@dataclass
class Counted(ChangeDeserializationSchema):
    """Columns of changes, counted in this process."""

    seen = 0
    is_over = False

    def deserialize_changes(self, changes: TableChanges) -> Batch:
        if Counted.is_over:
            raise InterruptedError("the measurement is over")
        Counted.seen += len(changes)
        return ArrowBatch(changes.rows)


def cpu_s() -> float:
    """CPU seconds of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def run(data_path: str, rows: int = 1_500_000, changes: int = 200_000) -> dict[str, Any]:
    """One job in a fresh process, and a server of its own.

    Args:
        rows: of the table.
        changes: of one transaction, an UPDATE_BEFORE and an UPDATE_AFTER each.

    Returns:
        Rows a second of the snapshot and updates a second of the log, with CPU seconds of the reading process a
        million, of the job, of COPY by psycopg, and of pg_recvlogical.
    """
    import psycopg

    from benchmarks.servers.postgres_server import programs, running_server

    with running_server(wal_level="logical", shared_buffers="256MB", max_wal_size="4GB") as server:
        db = psycopg.connect(server.dsn, autocommit=True)
        identity = "ALTER TABLE orders REPLICA IDENTITY FULL"
        for statement in (TABLE, identity, ROWS.format(rows=rows), "VACUUM ANALYZE orders"):
            db.execute(statement)
        found = {**_copy(db, rows), **_job(db, str(server.home), rows, changes)}
        db.execute("CREATE PUBLICATION peer FOR TABLE orders")
        db.execute("SELECT pg_create_logical_replication_slot('peer', 'pgoutput')")
        db.execute(CHANGES.format(changes=changes))
        found.update(_peer(db, str(server.home), str(programs()), changes))
        db.close()
    return found


def _copy(db: Any, rows: int) -> dict[str, float]:
    began, used = time.monotonic(), cpu_s()
    with db.cursor().copy("COPY orders TO STDOUT (FORMAT csv)") as copy:
        for _ in copy:
            pass
    return {"copy_rows_s": rows / (time.monotonic() - began), "copy_cpu_s_million": (cpu_s() - used) / rows * 1e6}


def _job(db: Any, home: str, rows: int, changes: int) -> dict[str, float]:
    source = (
        PostgresCdcSource.builder().hostname(home).database("postgres").username("postgres")
        .table_list("public.orders").slot_name("bench").startup_options(StartupOptions.initial())
        .deserializer(Counted()).build()
    )  # fmt: skip
    return measure(source, db.execute, [CHANGES.format(changes=changes)], rows, changes)


def measure(
    source: Source, execute: Callable[[str], object], statements: Sequence[str], rows: int, changes: int
) -> dict[str, float]:
    """Run a job that counts the changes of a table `orders`, and measure its snapshot and its log.

    Args:
        source: reads the changes as `Counted`.
        execute: executes a statement on the server.
        statements: make the changes.
        rows: of the table.
        changes: of the statements, an UPDATE_BEFORE and an UPDATE_AFTER each.

    Returns:
        Rows a second of the snapshot and updates a second of the log, with CPU seconds of this process a million.
    """
    options = {"execution.target": "local", "execution.checkpointing.interval": "1 s",
               "restart-strategy.type": "none"}  # fmt: skip
    env = StreamExecutionEnvironment.get_execution_environment(options)
    env.from_source(source, WatermarkStrategy.no_watermarks(), "cdc").sink_to(DiscardingSink())
    began, used = time.monotonic(), cpu_s()
    job = threading.Thread(target=_run, args=(env,), daemon=True)
    job.start()
    _wait(rows)
    rate, cost = rows / (time.monotonic() - began), (cpu_s() - used) / rows * 1e6
    found = {"snapshot_rows_s": rate, "snapshot_cpu_s_million": cost}
    execute("INSERT INTO orders VALUES (0, 'the log has begun', 0, now(), 0)")
    _wait(rows + 1)
    for statement in statements:
        execute(statement)
    began, used = time.monotonic(), cpu_s()
    _wait(rows + 1 + 2 * changes)
    rate, cost = changes / (time.monotonic() - began), (cpu_s() - used) / changes * 1e6
    found |= {"changes_s": rate, "changes_cpu_s_million": cost}
    Counted.is_over = True
    execute("INSERT INTO orders VALUES (-1, 'over', 0, now(), 0)")
    job.join(WAIT_S)
    return found


def _run(env: StreamExecutionEnvironment) -> None:
    with contextlib.suppress(JobExecutionError):
        env.execute("cdc")


def _wait(count: int) -> None:
    deadline = time.monotonic() + WAIT_S
    while Counted.seen < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{Counted.seen:,} of {count:,} changes after {WAIT_S} s")
        time.sleep(0.01)


def _peer(db: Any, home: str, programs: str, changes: int) -> dict[str, float]:
    end = db.execute("SELECT pg_current_wal_lsn()::text").fetchone()[0]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [
        f"{programs}/pg_recvlogical", "-h", home, "-U", "postgres", "-d", "postgres", "--slot", "peer", "--start",
        "-o", "proto_version=1", "-o", "publication_names=peer", "--endpos", end, "-f", "/dev/null",
    ]  # fmt: skip
    subprocess.run(command, check=True, timeout=WAIT_S, capture_output=True)
    seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"recvlogical_changes_s": changes / seconds, "recvlogical_cpu_s_million": used / changes * 1e6}
