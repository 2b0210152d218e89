"""What is between which outside systems in a campaign of `stream_kills.py`, and what an outside reader must find."""

from __future__ import annotations

import json
import random
import time
import uuid
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.servers.kafka_broker import KafkaCluster
from benchmarks.servers.postgres_server import PostgresServer
from tests.connectors.kafka.kafka_topics import messages_in
from tests.connectors.postgres.change_jobs import derived, table
from tests.exactly_once.killable_job import KillableJob
from tests.exactly_once.outside_writers import TABLES, Changes, Numbers
from tests.exactly_once.running import RoundFailed
from tests.exactly_once.stranded_readers import KafkaReaders, PlainReaders, StrandedReaders
from tests.exactly_once.verifier import Expectation, verify

LANES, KEYS, WINDOW, PARTITIONS = 3, 10, 100, 3
RATE = 100
"""Numbers a second of a lane."""
ROUND_S = 10
"""Time for which there are numbers, so that there are some in each round."""
READ_S = 120
FAILOVER_S = 60
"""The longest time until a job goes on without a broker that was killed."""
Audited = tuple[str, int, int | None, int | None]
"""A change: its kind, the row's id, and `n` before and after."""


class StreamCase(ABC):
    """A program between two outside systems.

    Args:
        cluster: for topics of their own.
        rounds: of the campaign.
        folder: of the campaign.
        seed: of what is written.
    """

    checkpoint_ms = 250
    victims = ("job", "function", "broker")

    def __init__(self, cluster: KafkaCluster, rounds: int, folder: Path, seed: int) -> None:
        self.cluster, self.folder, self._seed = cluster, folder, seed
        self.lines = f"lines_{uuid.uuid4().hex[:8]}"
        self.records = RATE * ROUND_S * (rounds + 1)

    @abstractmethod
    def start(self, job: KillableJob, chance: random.Random) -> None:
        """Start the job, and begin to write what it reads."""

    @abstractmethod
    def arguments(self) -> list[str]:
        """The arguments of `stream_job.py`; makes topics and tables."""

    @abstractmethod
    def finish(self, job: KillableJob) -> None:
        """Bring it to the end of its input."""

    @abstractmethod
    def verdict(self) -> tuple[bool, str]:
        """Whether an outside reader finds everything once, and what it says."""

    @abstractmethod
    def readers(self) -> StrandedReaders:
        """The readers that are watched."""

    def strike_outside(self, victim: str, job: KillableJob, chance: random.Random) -> None:
        """Kill a server and start it again; of several brokers one, whose partitions others lead until it is back."""
        assert victim == "broker"
        failover = partial(job.await_checkpoints, 3, FAILOVER_S)
        strike_broker(self.cluster, chance, failover if len(self.cluster.brokers) > 1 else None)

    @abstractmethod
    def close(self) -> None:
        """End what writes, and remove what would be in the way of the next campaign."""


class NumbersCase(StreamCase):
    """A topic of numbers, counted and summed by key and in windows."""

    def arguments(self) -> list[str]:
        self.numbers = self.lines.replace("lines", "numbers")
        self.cluster.create_topic(self.numbers, LANES, {"retention.ms": "-1"})
        servers = self.cluster.bootstrap_servers
        self.writer = Numbers(servers, self.numbers, LANES, self.records, RATE)
        shape = {"lanes": LANES, "keys": KEYS, "records": self.records, "window": WINDOW}
        numbers = [part for name, number in shape.items() for part in (f"--{name}", str(number))]
        return ["--kafka", servers, "--numbers", self.numbers, "--lines", self.lines, *numbers]

    def start(self, job: KillableJob, chance: random.Random) -> None:
        self.writer.start()
        job.start(2)

    def finish(self, job: KillableJob) -> None:
        self.writer.finish(300)
        job.wait(300)

    def close(self) -> None:
        self.writer.stop()

    def verdict(self) -> tuple[bool, str]:
        verdict = verify(Expectation(LANES, KEYS, self.records, WINDOW), self.found())
        return verdict.is_exact, verdict.report()

    @abstractmethod
    def found(self) -> Iterable[str]:
        """All lines of the output."""


class KafkaToKafka(NumbersCase):
    """Numbers of a topic to lines of another, in transactions."""

    def arguments(self) -> list[str]:
        self.cluster.create_topic(self.lines, PARTITIONS, {"retention.ms": "-1"})
        return super().arguments()

    def found(self) -> Iterable[str]:
        found = messages_in(self.cluster.bootstrap_servers, self.lines, READ_S)
        return (str(message.value(), "utf-8") for message in found)

    def readers(self) -> StrandedReaders:
        return KafkaReaders(self.cluster.bootstrap_servers, self.lines, PARTITIONS)


class KafkaToPostgres(NumbersCase):
    """Numbers of a topic to rows of a table."""

    victims = ("job", "function", "broker", "database")

    def __init__(self, cluster: KafkaCluster, rounds: int, folder: Path, seed: int, server: PostgresServer) -> None:
        super().__init__(cluster, rounds, folder, seed)
        self.server = server

    def arguments(self) -> list[str]:
        with psycopg.connect(self.server.dsn) as connection:
            connection.execute(f"CREATE TABLE {self.lines} (line text NOT NULL)")
        return [*super().arguments(), "--postgres", self.server.dsn]

    def found(self) -> Iterable[str]:
        with psycopg.connect(self.server.dsn) as connection:
            return [str(line) for (line,) in connection.execute(f"SELECT line FROM {self.lines}")]

    def readers(self) -> StrandedReaders:
        return PlainReaders(self._count, (psycopg.OperationalError,))

    def _count(self) -> None:
        with psycopg.connect(self.server.dsn, connect_timeout=2) as connection:
            connection.execute(f"SELECT count(*) FROM {self.lines}")

    def strike_outside(self, victim: str, job: KillableJob, chance: random.Random) -> None:
        if victim == "broker":
            return super().strike_outside(victim, job, chance)
        strike_database(self.server, chance)


class KafkaToIceberg(NumbersCase):
    """Numbers of a topic to rows of an Iceberg table, whose catalog is a file of SQLite."""

    checkpoint_ms = 1000

    def arguments(self) -> list[str]:
        return [*super().arguments(), "--iceberg", str(self.folder)]

    def found(self) -> Iterable[str]:
        lines: list[str] = self._table().scan().to_arrow()["line"].to_pylist()
        return lines

    def _table(self) -> Any:
        from pyiceberg.catalog.sql import SqlCatalog

        catalog = SqlCatalog(
            "lake", uri=f"sqlite:///{self.folder}/catalog.db", warehouse=f"file://{self.folder}/tables"
        )
        return catalog.load_table(f"db.{self.lines}")

    def readers(self) -> StrandedReaders:
        from pyiceberg.exceptions import NoSuchTableError

        return PlainReaders(lambda: self._table().scan().count(), (NoSuchTableError,))


class PostgresToKafka(StreamCase):
    """Changes of a table to messages of a topic, numbered by key."""

    victims = ("job", "function", "broker", "database")

    def __init__(self, cluster: KafkaCluster, rounds: int, folder: Path, seed: int, server: PostgresServer) -> None:
        super().__init__(cluster, rounds, folder, seed)
        self.server = server
        self.writer = Changes(server.dsn, seed, 0.02)

    def arguments(self) -> list[str]:
        self.cluster.create_topic(self.lines, PARTITIONS, {"retention.ms": "-1"})
        with psycopg.connect(self.server.dsn, autocommit=True) as connection:
            for statement in ("DROP SCHEMA public CASCADE", "CREATE SCHEMA public", *TABLES):
                connection.execute(statement)
        given = ["--kafka", self.cluster.bootstrap_servers, "--captured", str(self.server.home)]
        return [*given, "--slot", self.lines, "--lines", self.lines]

    def start(self, job: KillableJob, chance: random.Random) -> None:
        """Kill it twice in its snapshot; the table changes when that is over, so that each row of it is expected."""
        for _ in range(2):
            job.start(chance.randint(1, 3))
            time.sleep(chance.uniform(1.5, 3.5))
            job.kill()
        job.start(2)
        deadline = time.monotonic() + 60
        while len(self._messages()) < 1000:
            if time.monotonic() > deadline:
                raise RoundFailed(f"the snapshot is not over after 60 s\n{job.log()}")
            time.sleep(0.2)
        self.writer.start()

    def finish(self, job: KillableJob) -> None:
        self.writer.stop()
        deadline = time.monotonic() + READ_S
        while len(self._messages()) < self._expected().total():
            if time.monotonic() > deadline:
                break
            time.sleep(0.5)
        job.await_checkpoints(2, 60)  # in which repeated ones would appear
        job.kill()

    def close(self) -> None:
        self.writer.stop()
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with psycopg.connect(self.server.dsn, autocommit=True) as connection:
                try:
                    connection.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
                    return
                except psycopg.errors.ObjectInUse:  # by the reader that was just killed
                    time.sleep(0.1)

    def _messages(self) -> list[str]:
        found = messages_in(self.cluster.bootstrap_servers, self.lines, READ_S)
        return [str(message.value(), "utf-8") for message in found]

    def _expected(self) -> Counter[Audited]:
        with psycopg.connect(self.server.dsn) as connection:
            changes = connection.execute("SELECT op, id, before, after FROM audit")
            rows: list[Audited] = [("r", number, None, -number) for number in range(1, 1001)]
            return Counter([*rows, *map(tuple, changes)])

    def verdict(self) -> tuple[bool, str]:
        numbers: defaultdict[str, list[int]] = defaultdict(list)
        records = []
        for line in self._messages():
            key, number, record = line.split(",", 2)
            numbers[key].append(int(number))
            records.append(json.loads(record))
        wrong = [key for key, found in numbers.items() if found != list(range(1, len(found) + 1))]
        expected, found = self._expected(), Counter(map(_audited, records))
        lost, repeated = expected - found, found - expected
        said = f"changes={expected.total()} lost={lost.total()} repeated={repeated.total()} wrong_numbers={len(wrong)}"
        if lost or repeated or wrong:
            return False, f"NOT-EXACTLY-ONCE {said}\n{list(lost)[:5]} {list(repeated)[:5]} {wrong[:5]}"
        assert derived(records) == table(self.server.dsn)  # in their order, too
        return True, f"ALL-RECORDS-DELIVERED-ONCE {said}"

    def readers(self) -> StrandedReaders:
        return KafkaReaders(self.cluster.bootstrap_servers, self.lines, PARTITIONS)

    def strike_outside(self, victim: str, job: KillableJob, chance: random.Random) -> None:
        if victim == "broker":
            return super().strike_outside(victim, job, chance)
        strike_database(self.server, chance)


def strike_broker(cluster: KafkaCluster, chance: random.Random, failover: Callable[[], None] | None = None) -> None:
    """Kill a broker, and start it again after up to a second, or when `failover` returns.

    Args:
        failover: waits until the others lead the partitions of the broker.
    """
    broker = chance.choice(cluster.brokers)
    broker.kill()
    if failover is None:
        time.sleep(chance.uniform(0, 1))
    else:
        failover()
    broker.start()
    cluster.wait_until_ready()


def strike_database(server: PostgresServer, chance: random.Random) -> None:
    """Kill a database with all its processes, and start it again."""
    server.kill()
    time.sleep(chance.uniform(0, 1))
    server.start()


def _audited(record: dict[str, Any]) -> Audited:
    before, after = record["before"], record["after"]
    row = after or before
    return record["op"], row["id"], None if before is None else before["n"], None if after is None else after["n"]
