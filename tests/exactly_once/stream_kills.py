"""Real kills of a job between outside systems, and of those; an outside reader verifies the output.

    python -m tests.exactly_once.stream_kills kafka-kafka --rounds 200 --seed 1

The pipelines are kafka-kafka, kafka-postgres, kafka-iceberg and postgres-kafka. `stream_job.py` runs in one process
with its checkpoints on the disk. In each round, at a random moment after a checkpoint, that process is killed with
signal 9 and starts again from its newest complete checkpoint with another parallelism; or a function of the program
raises; or the broker, or the database, is killed with signal 9 and starts again with its data. Beside them plain
readers watch how long they are kept from what is there. In the end a plain client must find each line once.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path

from benchmarks.servers.kafka_broker import KafkaCluster, kafka_cluster
from benchmarks.servers.postgres_server import PostgresServer, running_server
from tests.exactly_once.killable_job import KillableJob
from tests.exactly_once.running import RoundFailed
from tests.exactly_once.stream_cases import KafkaToIceberg, KafkaToKafka, KafkaToPostgres, PostgresToKafka, StreamCase

PIPELINES = ("kafka-kafka", "kafka-postgres", "kafka-iceberg", "postgres-kafka")
WITHIN_S = 60
STRANDED_S = 10
Say = Callable[[str], None]


class Servers:
    """Servers that all campaigns of a process share; each starts when it is asked for.

    Args:
        stack: ends them.
        brokers: of Kafka.
    """

    def __init__(self, stack: ExitStack, brokers: int) -> None:
        self._stack, self._brokers = stack, brokers

    @cached_property
    def cluster(self) -> KafkaCluster:
        """Kafka, whose topics have a copy on each of at most three brokers."""
        settings = {"min.insync.replicas": str(max(1, self._brokers - 1))}
        return self._stack.enter_context(kafka_cluster(self._brokers, settings))

    @cached_property
    def database(self) -> PostgresServer:
        """PostgreSQL, whose log can be read."""
        return self._stack.enter_context(running_server(wal_level="logical"))


@contextmanager
def servers(brokers: int = 1) -> Iterator[Servers]:
    """Yield servers that end with the block."""
    with ExitStack() as stack:
        yield Servers(stack, brokers)


def case_of(pipeline: str, shared: Servers, rounds: int, folder: Path, seed: int) -> StreamCase:
    """The case of a pipeline."""
    given = (shared.cluster, rounds, folder, seed)
    match pipeline:
        case "kafka-kafka":
            return KafkaToKafka(*given)
        case "kafka-postgres":
            return KafkaToPostgres(*given, shared.database)
        case "kafka-iceberg":
            return KafkaToIceberg(*given)
        case "postgres-kafka":
            return PostgresToKafka(*given, shared.database)
    raise ValueError(f"no pipeline {pipeline!r}, there are {', '.join(PIPELINES)}")


def run(
    pipeline: str, shared: Servers, rounds: int, seed: int, folder: Path, say: Say, within_s: float = math.inf
) -> bool:
    """Run a pipeline through all rounds to its end; whether its output is exact and no reader was stranded for 10 s.

    Args:
        within_s: time after which no further round begins.

    Raises:
        RoundFailed: a round, or the end, did not go as it has to.
    """
    chance = random.Random(seed)
    case = case_of(pipeline, shared, rounds, folder, seed)
    job = KillableJob(folder, case.arguments(), case.checkpoint_ms)
    done: Counter[str] = Counter()
    slowest_s, until = 0.0, time.monotonic() + within_s
    with case.readers() as readers:
        try:
            case.start(job, chance)
            for number, victim in enumerate(plan(rounds, chance, case.victims), 1):
                if time.monotonic() > until:
                    break
                job.await_checkpoints(1, WITHIN_S)
                time.sleep(chance.uniform(0, 1.5 * case.checkpoint_ms / 1000))
                began = time.monotonic()
                strike(victim, job, case, chance)
                job.await_checkpoints(2, WITHIN_S)
                took = time.monotonic() - began
                slowest_s = max(slowest_s, took)
                done[victim] += 1
                say(f"round {number}: {victim}; new checkpoints after {took:.1f} s, parallelism {job.parallelism}")
            case.finish(job)
        finally:
            job.kill()
            case.close()
    exact, report = case.verdict()
    kinds = " ".join(f"{victim}={done[victim]}" for victim in sorted(done))
    stranded = f"stranded_at_most={readers.longest_s:.1f}s samples={readers.samples}"
    say(f"{report} pipeline={pipeline} rounds={done.total()} seed={seed} {kinds} slowest={slowest_s:.1f}s {stranded}")
    return exact and readers.longest_s < STRANDED_S and readers.samples > 0


def plan(rounds: int, chance: random.Random, victims: tuple[str, ...]) -> list[str]:
    """Whom to kill in each round; the first rounds take each kind once, and half of the others are the job."""
    first = [*victims]
    chance.shuffle(first)
    others = [victims[0] if chance.random() < 0.5 else chance.choice(victims[1:]) for _ in range(rounds)]
    return [*first, *others][:rounds]


def strike(victim: str, job: KillableJob, case: StreamCase, chance: random.Random) -> None:
    """Kill the job, a task of it, or a server, and start it again."""
    if victim == "job":
        job.kill()
        job.start(chance.randint(1, 3))
    elif victim == "function":
        job.fail(WITHIN_S)
    else:
        case.strike_outside(victim, job, chance)


def main(given: list[str]) -> int:
    """Run a campaign; the code to end with."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipeline", choices=PIPELINES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--brokers", type=int, default=1, help="3: a killed one has others in its place")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no further round after them")
    parser.add_argument("--log", type=Path, help="file to which each line is added as well")
    asked = parser.parse_args(given)

    def say(line: str) -> None:
        print(line, flush=True)
        if asked.log is not None:
            with asked.log.open("a") as file:
                print(line, file=file)

    with tempfile.TemporaryDirectory(prefix="stream-kills-") as folder:
        try:
            with servers(asked.brokers) as shared:
                own = asked.pipeline, shared, asked.rounds, asked.seed, Path(folder), say, asked.minutes * 60
                return 0 if run(*own) else 1
        except RoundFailed as failed:
            say(f"FAILED pipeline={asked.pipeline} seed={asked.seed}: {failed}")
            return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
