"""Writers of what the programs of `stream_job.py` read: numbers into a topic, and changes of a table of PostgreSQL."""

from __future__ import annotations

import random
import threading
import time

import psycopg
from confluent_kafka import KafkaError, Message, Producer

TABLES = (
    "CREATE TABLE t (id int PRIMARY KEY, a text, n bigint)",
    "ALTER TABLE t REPLICA IDENTITY FULL",
    "CREATE TABLE audit (place bigserial, op text, id int, before bigint, after bigint)",
    """CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO audit (op, id, before, after) VALUES (
            CASE TG_OP WHEN 'INSERT' THEN 'c' WHEN 'UPDATE' THEN 'u' ELSE 'd' END,
            CASE TG_OP WHEN 'DELETE' THEN OLD.id ELSE NEW.id END,
            CASE TG_OP WHEN 'INSERT' THEN NULL ELSE OLD.n END,
            CASE TG_OP WHEN 'DELETE' THEN NULL ELSE NEW.n END);
        RETURN NULL; END $$""",
    "INSERT INTO t SELECT i, 'row ' || i, -i FROM generate_series(1, 1000) i",
    "CREATE TRIGGER noted AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION note()",
)
"""A table with rows, and the note of each later change, which is in the same transaction as the change."""
IDS = 1500


class Numbers:
    """A thread that writes "lane,position" to partition `lane` of a topic, gently, until it is told to hurry.

    The last message of each lane waits for that, so that a bounded job does not end before.

    Args:
        records: positions of each lane.
        rate: messages a second of each lane.
    """

    def __init__(self, servers: str, topic: str, lanes: int, records: int, rate: int) -> None:
        self._topic, self._lanes, self._records, self._rate = topic, lanes, records, rate
        self._producer = Producer({
            "bootstrap.servers": servers, "enable.idempotence": True, "message.timeout.ms": 600_000, "linger.ms": 5,
            "log_level": 0,
        })  # fmt: skip
        self._errors: list[str] = []
        self._hurry, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def finish(self, within_s: float) -> None:
        """Write what is left at once; return when all of it is stored.

        Raises:
            RuntimeError: not all was stored.
        """
        self._hurry.set()
        self._thread.join(within_s)
        left = self._producer.flush(within_s)
        if self._errors or left or self._thread.is_alive():
            raise RuntimeError(f"the numbers were not written: {self._errors[:3]}, {left} messages left")

    def stop(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join()

    def _write(self) -> None:
        began, position = time.monotonic(), 0
        while position < self._records and not self._ended.is_set():
            due = min(int((time.monotonic() - began) * self._rate), self._records - 1)
            until = min(self._records if self._hurry.is_set() else due, position + 1000)
            for number in range(position, until):
                for lane in range(self._lanes):
                    self._produce(f"{lane},{number}", lane)
            position = until
            self._producer.poll(0)
            if not self._hurry.is_set():
                self._hurry.wait(0.02)

    def _produce(self, value: str, lane: int) -> None:
        while not self._ended.is_set():
            try:
                self._producer.produce(self._topic, value, partition=lane, on_delivery=self._delivered)
                return
            except BufferError:
                self._producer.poll(0.1)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._errors.append(str(error))


class Changes:
    """A thread that changes the table of `TABLES` at random, again and again, also where the server is away at times.

    Args:
        pause_s: between two transactions.
    """

    def __init__(self, dsn: str, seed: int, pause_s: float) -> None:
        self._dsn, self._chance, self._pause_s = dsn, random.Random(seed), pause_s
        self._ended = threading.Event()
        self._errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._write, daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread.

        Raises:
            RuntimeError: it has ended before.
        """
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._errors:
            raise RuntimeError(f"the table was not changed any more: {self._errors[0]}") from self._errors[0]

    def _write(self) -> None:
        try:
            while not self._ended.is_set():
                try:
                    with psycopg.connect(self._dsn, autocommit=True, connect_timeout=2) as connection:
                        self._change_on(connection)
                except psycopg.OperationalError:
                    self._ended.wait(0.05)
        except BaseException as error:
            self._errors.append(error)

    def _change_on(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        chance = self._chance
        while not self._ended.wait(self._pause_s):
            with connection.transaction():
                for _ in range(chance.randint(1, 5)):
                    key, number = chance.randint(1, IDS), time.monotonic_ns()
                    if chance.random() < 0.2:
                        connection.execute("DELETE FROM t WHERE id = %s", (key,))
                    else:
                        insert = "INSERT INTO t VALUES (%s, %s, %s) ON CONFLICT (id) DO UPDATE SET n = excluded.n"
                        connection.execute(insert, (key, chance.choice(["", "a", None, "x" * 50]), number))
                if chance.random() < 0.1:
                    raise psycopg.Rollback
