"""Jobs that capture changes, run in a thread of the test, and what is derived from their records."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from rayflink.common import Duration, Types, WatermarkStrategy
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.postgres_cdc import (
    JsonDebeziumDeserializationSchema,
    PostgresCdcSource,
    PostgresCdcSourceBuilder,
)
from tests.connectors.postgres.postgres_server import PostgresServer

WAIT_S = 60


def builder(server: PostgresServer, slot: str = "slot", *tables: str) -> PostgresCdcSourceBuilder:
    """A source of the table `public.t`, or of others, as JSON."""
    made = PostgresCdcSource.builder().hostname(str(server.home)).database("postgres").username("postgres")
    made.table_list(*(tables or ("public.t",))).slot_name(slot).deserializer(JsonDebeziumDeserializationSchema())
    return made.heartbeat_interval(Duration.of_millis(200)).connect_max_retries(5)


def environment(parallelism: int = 1, interval: str = "100 ms", **options: str) -> StreamExecutionEnvironment:
    settings = {"execution.target": "local", "parallelism.default": str(parallelism), "pipeline.max-parallelism": "16"}
    settings |= {"execution.checkpointing.interval": interval} if interval else {}
    settings |= {"restart-strategy.type": "none", **options}
    return StreamExecutionEnvironment.get_execution_environment(settings)


class Collected:
    """The records of a job that runs in another thread."""

    def __init__(self, env: StreamExecutionEnvironment, source: Any) -> None:
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "changes")
        self.records: list[dict[str, Any]] = []
        self.error: BaseException | None = None
        self._drawn = stream.map(str, Types.STRING()).execute_and_collect()
        self._thread = threading.Thread(target=self._draw, daemon=True)
        self._thread.start()

    def _draw(self) -> None:
        try:
            for record in self._drawn:
                self.records.append(json.loads(record))
        except BaseException as error:
            self.error = error

    def wait(self, condition: Callable[[list[dict[str, Any]]], bool], within_s: float = WAIT_S) -> list[dict[str, Any]]:
        """Wait until a condition is true of the records, and return them."""
        eventually(lambda: self.error is not None or condition(self.records), within_s, lambda: self.records[-3:])
        if self.error is not None:
            raise self.error
        return list(self.records)

    def fails(self, within_s: float = WAIT_S) -> str:
        """Wait until the job fails, and return how."""
        eventually(lambda: self.error is not None, within_s, lambda: self.records[-3:])
        return str(self.error)

    def close(self) -> None:
        self._drawn.close()
        self._thread.join(WAIT_S)


@contextmanager
def collecting(env: StreamExecutionEnvironment, source: Any) -> Iterator[Collected]:
    job = Collected(env, source)
    try:
        yield job
    finally:
        job.close()


def eventually(condition: Callable[[], Any], within_s: float = WAIT_S, shown: Callable[[], Any] = str) -> None:
    """Wait for a condition with a deadline."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {within_s} s: {shown()}"
        time.sleep(0.02)


def derived(records: list[dict[str, Any]], keys: tuple[str, ...] = ("id",)) -> dict[Any, dict[str, Any]]:
    """The rows that the changes add up to; each change must fit what was there before."""
    rows: dict[Any, dict[str, Any]] = {}
    for record in records:
        before, after = record["before"], record["after"]
        if before is not None:
            key = tuple(before[name] for name in keys)
            there = rows.pop(key, None)
            assert there is not None, f"{record} changes a row that is not there"
            assert there == before, f"{record} has another row before: {there}"
        if after is not None:
            key = tuple(after[name] for name in keys)
            assert key not in rows, f"{record} adds a row that is there already: {rows[key]}"
            rows[key] = after
    return rows


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
