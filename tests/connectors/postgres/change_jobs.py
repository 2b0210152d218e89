"""Jobs that capture changes of a PostgreSQL server, and what changes its table meanwhile."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg

from benchmarks.servers.postgres_server import PostgresServer
from rayflink.common import Duration
from rayflink.datastream.connectors.postgres_cdc import (
    JsonDebeziumDeserializationSchema,
    PostgresCdcSource,
    PostgresCdcSourceBuilder,
)
from tests.connectors.cdc.collected_changes import WAIT_S, Collected, collecting, derived, environment, eventually

__all__ = ["WAIT_S", "Collected", "Writer", "builder", "collecting", "derived", "environment", "eventually", "table"]


def builder(server: PostgresServer, slot: str = "slot", *tables: str) -> PostgresCdcSourceBuilder:
    """A source of the table `public.t`, or of others, as JSON."""
    made = PostgresCdcSource.builder().hostname(str(server.home)).database("postgres").username("postgres")
    made.table_list(*(tables or ("public.t",))).slot_name(slot).deserializer(JsonDebeziumDeserializationSchema())
    return made.heartbeat_interval(Duration.of_millis(200)).connect_max_retries(5)


class Writer:
    """Changes the table `t (id int, a text, n bigint)` at random until it is ended, in several connections.

    Each change has a number of its own in `n`.
    """

    def __init__(self, dsn: str, seed: int, keys: int, connections: int = 2, key: Callable[[int], Any] = int) -> None:
        self._dsn, self._keys, self._key = dsn, keys, key
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
            with psycopg.connect(self._dsn, autocommit=True) as connection:
                while not self._ending.is_set():
                    try:
                        with connection.transaction():
                            for _ in range(rng.randint(1, 5)):
                                number += 1
                                self._change(connection, rng, number)
                            if rng.random() < 0.1:
                                raise psycopg.Rollback()
                    except (psycopg.errors.DeadlockDetected, psycopg.errors.UniqueViolation):
                        continue
                    self.written += 1
                    time.sleep(0.0005)
        except BaseException as error:
            self.errors.append(error)

    def _change(self, connection: psycopg.Connection[Any], rng: random.Random, number: int) -> None:
        key, draw = self._key(rng.randrange(self._keys)), rng.random()
        if draw < 0.3:
            text = "INSERT INTO t VALUES (%s, %s, %s) ON CONFLICT (id) DO UPDATE SET n = excluded.n"
            connection.execute(text, (key, rng.choice(["", "a", None, "x" * 50]), number))
        elif draw < 0.6:
            connection.execute("UPDATE t SET n = %s WHERE id = %s", (number, key))
        elif draw < 0.8:
            connection.execute("DELETE FROM t WHERE id = %s", (key,))
        else:
            with connection.transaction():
                connection.execute(
                    "UPDATE t SET id = %s, n = %s WHERE id = %s", (self._key(rng.randrange(self._keys)), number, key)
                )


def table(dsn: str, query: str = "SELECT id, a, n FROM t") -> dict[Any, dict[str, Any]]:
    """The rows of a table, as `derived` has them."""
    with psycopg.connect(dsn) as connection:
        cursor = connection.execute(query)
        names = [column.name for column in cursor.description or ()]
        return {(row[0],): dict(zip(names, row, strict=True)) for row in cursor}
