"""Real kills of a job that writes to Kafka, and of its broker; an outside reader verifies the topic.

    python -m tests.exactly_once.kafka_kills --rounds 200 --seed 1

`job.py` runs in one process with its checkpoints on the disk. In each round that process is killed with signal 9 at a
random moment after a checkpoint, and starts again from its newest complete checkpoint with another parallelism; or the
broker is killed with signal 9 and starts again with its data. Beside them a plain consumer watches how long readers of
committed messages are kept from messages that are there. In the end the job must finish by itself, and a plain consumer
must find each line once.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.connectors.kafka.kafka_broker import KafkaCluster, kafka_cluster
from tests.connectors.kafka.kafka_topics import messages_in
from tests.exactly_once.running import KEYS, LANES, WINDOW, RoundFailed
from tests.exactly_once.verifier import Expectation, verify

HERE = Path(__file__).parent
TOPIC, PARTITIONS = "lines", 3
CHECKPOINT_MS = 250
RATE = 400
ROUND_S = 6
"""Time for which there are records, so that the source does not end while there are rounds left."""


class StrandedReaders:
    """Watches how long committed messages wait behind an open transaction.

    Args:
        servers: of the broker.
    """

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._ended = threading.Event()
        self._since: dict[int, tuple[int, float]] = {}
        self.longest_s = 0.0
        self.samples = 0
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> StrandedReaders:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        shared = {"bootstrap.servers": self._servers, "group.id": "watching", "log_level": 0}
        committed = Consumer({**shared, "isolation.level": "read_committed"})
        every = Consumer({**shared, "isolation.level": "read_uncommitted"})
        while not self._ended.wait(0.1):
            for number in range(PARTITIONS):
                place = TopicPartition(TOPIC, number)
                try:
                    stable = committed.get_watermark_offsets(place, timeout=1)[1]
                    end = every.get_watermark_offsets(place, timeout=1)[1]
                except KafkaException:  # nobody reads anything while the broker is down
                    self._since.clear()
                    break
                self._note(number, stable, end)
        committed.close()
        every.close()

    def _note(self, number: int, stable: int, end: int) -> None:
        self.samples += 1
        before, since = self._since.get(number, (-1, 0.0))
        if stable >= end or stable != before:
            since = time.monotonic()
        self._since[number] = stable, since
        self.longest_s = max(self.longest_s, time.monotonic() - since)


class KafkaJob:
    """`job.py` as a process that can be killed.

    Args:
        folder: for checkpoints and the log.
        records: of each lane.
    """

    def __init__(self, folder: Path, servers: str, records: int) -> None:
        self.folder, self._servers, self.records = folder, servers, records
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0
        self.parallelism = 0

    def start(self, parallelism: int) -> None:
        """Start it, from the newest complete checkpoint if there is one."""
        self.parallelism = parallelism
        path = self._newest()
        self._starts += 1
        options = {
            "execution.target": "local",
            "parallelism.default": parallelism,
            "execution.checkpointing.interval": f"{CHECKPOINT_MS} ms",
            "execution.checkpointing.dir": str(self.folder / f"checkpoints-{self._starts}"),
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": 1_000_000,
            "restart-strategy.fixed-delay.delay": "100 ms",
            "io.tmp.dirs": str(self.folder),
        }
        if path is not None:
            options["execution.state-recovery.path"] = str(path)
        shape = {"lanes": LANES, "keys": KEYS, "records": self.records, "window": WINDOW, "rate": RATE}
        command = [sys.executable, str(HERE / "job.py"), "--kafka", self._servers, "--out", str(self.folder)]
        command += ["--release", str(self.folder / "release")]
        command += [part for name, number in shape.items() for part in (f"--{name}", str(number))]
        command += [part for option in options.items() for part in ("--option", "=".join(map(str, option)))]
        with (self.folder / "job.log").open("ab") as log:
            environment = {**os.environ, "PYTHONPATH": str(HERE.parent.parent)}
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)

    def await_checkpoints(self, count: int, within_s: float) -> None:
        """Wait until so many more checkpoints of this process are complete.

        Raises:
            RoundFailed: it ended, or took too long.
        """
        first, deadline = self.number(), time.monotonic() + within_s
        while self.number() < first + count:
            if self._process is None or self._process.poll() is not None:
                raise RoundFailed(f"the job ended before its rounds did\n{self.log()}")
            if time.monotonic() > deadline:
                raise RoundFailed(f"checkpoint {first + count} was not complete within {within_s:.0f} s\n{self.log()}")
            time.sleep(0.01)

    def kill(self) -> None:
        """End it with signal 9."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=30)

    def finish(self, within_s: float) -> None:
        """Release the source and wait for the end.

        Raises:
            RoundFailed: it took too long or failed.
        """
        assert self._process is not None
        (self.folder / "release").touch()
        try:
            code = self._process.wait(timeout=within_s)
        except subprocess.TimeoutExpired:
            raise RoundFailed(f"the job did not end within {within_s:.0f} s\n{self.log()}") from None
        if code:
            raise RoundFailed(f"the job failed\n{self.log()}")

    def log(self) -> str:
        """The end of what it has logged."""
        return (self.folder / "job.log").read_text(errors="replace")[-3000:]

    def number(self) -> int:
        """The number of the newest complete checkpoint of this process; 0: there is none."""
        return _number(_complete(self.folder / f"checkpoints-{self._starts}"))

    def _newest(self) -> Path | None:
        for start in range(self._starts, 0, -1):
            path = _complete(self.folder / f"checkpoints-{start}")
            if path is not None:
                return path
        return None


def _complete(folder: Path) -> Path | None:
    paths = [path.parent for path in folder.glob("*/chk-*/_metadata")]
    return max(paths, key=_number, default=None)


def _number(path: Path | None) -> int:
    return 0 if path is None else int(path.name.removeprefix("chk-"))


def run(rounds: int, seed: int, victims: tuple[str, ...], cluster: KafkaCluster, folder: Path, say: Say) -> bool:
    """Run the job through all rounds to its end; whether its output is exact and no reader was stranded for 10 s.

    Raises:
        RoundFailed: a round, or the end, did not go as it has to.
    """
    chance = random.Random(seed)
    cluster.create_topic(TOPIC, PARTITIONS, {"retention.ms": "-1"})  # event times are those of 1970
    records = RATE * 3 // LANES * ROUND_S * (rounds + 1)
    job = KafkaJob(folder, cluster.bootstrap_servers, records)
    done: Counter[str] = Counter()
    with StrandedReaders(cluster.bootstrap_servers) as readers:
        try:
            job.start(2)
            for number in range(1, rounds + 1):
                job.await_checkpoints(1, 60)
                time.sleep(chance.uniform(0, 1.5 * CHECKPOINT_MS / 1000))
                victim = victims[number % len(victims)] if number <= len(victims) else chance.choice(victims)
                began = time.monotonic()
                strike(victim, job, cluster, chance)
                job.await_checkpoints(2, 60)
                done[victim] += 1
                say(f"round {number}: killed the {victim}; new checkpoints after {time.monotonic() - began:.1f} s, "
                    f"parallelism {job.parallelism}")  # fmt: skip
            job.finish(300)
        finally:
            job.kill()
    expected = Expectation(LANES, KEYS, records, WINDOW)
    found = (str(message.value(), "utf-8") for message in messages_in(cluster.bootstrap_servers, TOPIC, 120))
    verdict = verify(expected, found)
    kinds = " ".join(f"{victim}={done[victim]}" for victim in sorted(done))
    stranded = f"stranded_at_most={readers.longest_s:.1f}s samples={readers.samples}"
    say(f"{verdict.report()} topic={TOPIC} rounds={rounds} seed={seed} {kinds} {stranded}")
    return verdict.is_exact and readers.longest_s < 10 and readers.samples > 0


Say = Callable[[str], None]


def strike(victim: str, job: KafkaJob, cluster: KafkaCluster, chance: random.Random) -> None:
    """Kill the job or the broker, and start it again."""
    if victim == "job":
        job.kill()
        job.start(chance.randint(1, 3))
        return
    [broker] = cluster.brokers
    broker.kill()
    time.sleep(chance.uniform(0, 1))
    broker.start()
    cluster.wait_until_ready()


@contextmanager
def log_of(path: Path | None) -> Iterator[TextIO | None]:
    """The file to which lines are added; None: there is none."""
    if path is None:
        yield None
    else:
        with path.open("a") as file:
            yield file


def main(given: list[str]) -> int:
    """Run a campaign; the code to end with."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--victims", nargs="+", choices=("job", "broker"), default=["job", "job", "job", "broker"])
    parser.add_argument("--log", type=Path, help="file to which each line is added as well")
    asked = parser.parse_args(given)
    with log_of(asked.log) as file, tempfile.TemporaryDirectory(prefix="kafka-kills-") as folder:

        def say(line: str) -> None:
            print(line, flush=True)
            if file is not None:
                print(line, file=file, flush=True)

        try:
            with kafka_cluster() as cluster:
                return 0 if run(asked.rounds, asked.seed, tuple(asked.victims), cluster, Path(folder), say) else 1
        except RoundFailed as failed:
            say(f"FAILED seed={asked.seed}: {failed}")
            return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
