"""Jobs that capture changes of a MariaDB server, and what changes its table meanwhile."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pymysql

from benchmarks.servers.mysql_server import MySqlServer
from rayflink.common import Duration
from rayflink.datastream.connectors.mysql_cdc import JsonDebeziumDeserializationSchema, MySqlSource, MySqlSourceBuilder
from tests.connectors.cdc.collected_changes import WAIT_S

_ROLLED_BACK = {1213, 1062, 1205}


def builder(server: MySqlServer, *tables: str) -> MySqlSourceBuilder:
    """A source of the table `shop.t`, or of others, as JSON."""
    made = MySqlSource.builder().hostname("127.0.0.1").port(server.port).username(server.user)
    made.password(server.password).table_list(*(tables or ("shop.t",)))
    made.deserializer(JsonDebeziumDeserializationSchema())
    return made.heartbeat_interval(Duration.of_millis(200)).connect_max_retries(6)


def fill(server: MySqlServer, rows: int, key: str = "seq") -> None:
    server.execute(f"INSERT INTO t SELECT {key}, CONCAT('row ', seq), -seq FROM seq_0_to_{rows - 1}")


def marker(server: MySqlServer, key: str = "-1") -> None:
    server.execute(f"INSERT INTO t VALUES ({key}, 'end', 0)")


def is_ended(records: list[dict[str, Any]]) -> bool:
    return any((record["after"] or {}).get("a") == "end" for record in records[-500:])


def has_changes(count: int) -> Callable[[list[dict[str, Any]]], bool]:
    return lambda records: sum(record["op"] != "r" for record in records) >= count


def table(server: MySqlServer, query: str = "SELECT id, a, n FROM t") -> dict[Any, dict[str, Any]]:
    """The rows of a table, as `derived` has them."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(query)
        names = [column[0] for column in cursor.description]
        return {(row[0],): dict(zip(names, row, strict=True)) for row in cursor.fetchall()}


class Writer:
    """Changes the table `t (id, a, n)` at random until it is ended, in several connections.

    Each change has a number of its own in `n`.
    """

    def __init__(
        self, server: MySqlServer, seed: int, keys: int, connections: int = 2, key: Callable[[int], Any] = int
    ) -> None:
        self._server, self._keys, self._key = server, keys, key
        self._ending = threading.Event()
        self.errors: list[BaseException] = []
        self.written = 0
        self._threads = [
            threading.Thread(target=self._write, args=(random.Random(seed * 100 + number), number), daemon=True)
            for number in range(connections)
        ]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join(WAIT_S)
        assert not self.errors, self.errors

    def _write(self, rng: random.Random, lane: int) -> None:
        number = lane * 1_000_000_000
        try:
            with self._server.connect(autocommit=False) as connection, connection.cursor() as cursor:
                while not self._ending.is_set():
                    try:
                        for _ in range(rng.randint(1, 5)):
                            number += 1
                            self._change(cursor, rng, number)
                        if rng.random() < 0.1:
                            connection.rollback()
                        connection.commit()
                    except (pymysql.err.OperationalError, pymysql.err.IntegrityError) as error:
                        if error.args[0] not in _ROLLED_BACK:
                            raise
                        connection.rollback()
                        continue
                    self.written += 1
                    time.sleep(0.0005)
        except BaseException as error:
            self.errors.append(error)

    def _change(self, cursor: Any, rng: random.Random, number: int) -> None:
        key, draw = self._key(rng.randrange(self._keys)), rng.random()
        if draw < 0.3:
            text = "INSERT INTO t VALUES (%s, %s, %s) ON DUPLICATE KEY UPDATE n = VALUES(n)"
            cursor.execute(text, (key, rng.choice(["", "a", None, "x" * 50]), number))
        elif draw < 0.4:
            cursor.execute("REPLACE INTO t VALUES (%s, 'replaced', %s)", (key, number))
        elif draw < 0.6:
            cursor.execute("UPDATE t SET n = %s WHERE id = %s", (number, key))
        elif draw < 0.8:
            cursor.execute("DELETE FROM t WHERE id = %s", (key,))
        else:
            moved = self._key(rng.randrange(self._keys))
            cursor.execute("UPDATE t SET id = %s, n = %s WHERE id = %s", (moved, number, key))
