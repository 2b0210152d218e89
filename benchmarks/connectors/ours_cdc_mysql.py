"""Change data capture of MariaDB: a snapshot, and then changes, beside PyMySQL and python-mysql-replication."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.connectors.ours_cdc import Counted, cpu_s, measure
from rayflink.datastream.connectors.mysql_cdc import MySqlSource

TABLE = "CREATE TABLE orders (id int PRIMARY KEY, item varchar(40), price decimal(10, 2), placed datetime, amount int)"
ROWS = (
    "INSERT INTO orders SELECT seq, CONCAT('item ', seq % 1000), seq % 10000 / 100.0, "
    "TIMESTAMP'2024-01-01 00:00:00' + INTERVAL seq SECOND, seq FROM seq_1_to_{rows}"
)
CHANGES = "UPDATE orders SET amount = amount + 1 WHERE id <= {changes}"


def run(data_path: str, rows: int = 1_000_000, changes: int = 100_000) -> dict[str, Any]:
    """One job in a fresh process, and a server of its own.

    Args:
        rows: of the table.
        changes: of one transaction, an UPDATE_BEFORE and an UPDATE_AFTER each.

    Returns:
        Rows a second of the snapshot and updates a second of the log, with CPU seconds of the reading process a
        million, of the job, of a query by PyMySQL, and of the events of python-mysql-replication.
    """
    from benchmarks.servers.mysql_server import running_server

    with running_server() as server:
        with server.connect(database=None) as db, db.cursor() as cursor:
            fill = ROWS.format(rows=rows)
            for statement in ("CREATE DATABASE shop", "USE shop", TABLE, fill, "ANALYZE TABLE orders"):
                cursor.execute(statement)
                cursor.fetchall()
        return {**_query(server, rows), **_job(server, rows, changes), **_events(server, changes)}


def _query(server: Any, rows: int) -> dict[str, float]:
    from pymysql.cursors import SSCursor

    began, used = time.monotonic(), cpu_s()
    with server.connect(cursorclass=SSCursor) as db, db.cursor() as cursor:
        cursor.execute("SELECT * FROM orders")
        while cursor.fetchmany(2000):
            pass
    return {"query_rows_s": rows / (time.monotonic() - began), "query_cpu_s_million": (cpu_s() - used) / rows * 1e6}


def _job(server: Any, rows: int, changes: int) -> dict[str, float]:
    source = (
        MySqlSource.builder().hostname("127.0.0.1").port(server.port).username(server.user).password(server.password)
        .table_list("shop.orders").deserializer(Counted()).build()
    )  # fmt: skip
    statements = ["FLUSH BINARY LOGS", CHANGES.format(changes=changes)]
    return measure(source, server.execute, statements, rows, changes)


def _events(server: Any, changes: int) -> dict[str, float]:
    from pymysqlreplication import BinLogStreamReader
    from pymysqlreplication.row_event import UpdateRowsEvent

    ((file, *_),) = server.ask("SHOW MASTER STATUS")
    settings = {"host": "127.0.0.1", "port": server.port, "user": server.user, "passwd": server.password}
    began, used = time.monotonic(), cpu_s()
    reader = BinLogStreamReader(settings, 4711, resume_stream=True, log_file=file, log_pos=4, enable_logging=False)
    seen = sum(len(event.rows) for event in reader if isinstance(event, UpdateRowsEvent))
    assert seen > changes, (seen, changes)  # with the row of the end
    seconds, cost = time.monotonic() - began, (cpu_s() - used) / changes * 1e6
    return {"library_changes_s": changes / seconds, "library_cpu_s_million": cost}
