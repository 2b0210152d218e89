"""Real kills: `job.py` runs on a Ray of two nodes, its processes are killed at random moments, its output is verified.

    python -m tests.exactly_once.kills --rounds 50 --seed 7 --log kills.log

A round waits until a checkpoint is complete, then for a random moment of the next one, and kills with signal 9 what the
seed says: a slot's process with all its tasks, the coordinator's process, or the raylet of the worker node, in whose
place a new node comes; or a function of the program raises; or the job is stopped with a savepoint and goes on from it
with another parallelism. The round is over when two more checkpoints are complete:
the second began after the kill. After all rounds the source is released, the job must end by itself, and the verifier
must find every line once.

With `--kafka` the job is `stream_job.py` between two topics, and the broker is killed, too. A plain consumer with
`isolation.level=read_committed` must find every line once, and none may be kept from committed messages for 10 s.

Ends with 0 when it did and nothing is left on the machine, else with 1 and the round that failed.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import psutil

from benchmarks.servers.kafka_broker import KafkaCluster, kafka_cluster
from tests.cluster import watching
from tests.exactly_once.running import (
    CHECKPOINT_MS,
    LANES,
    RoundFailed,
    RunningJob,
    TwoNodes,
    database,
    processes,
    two_nodes,
)
from tests.suite.leftovers import Watch

VICTIMS = ("task", "coordinator", "raylet", "function", "rescale")
"""What can be done to the job in a round."""
BROKER = "broker"
"""The victim that a job between topics has besides."""
STRANDED_S = 10
RESCALE_WITHIN_S = 60.0
ROUND_S = 40
"""Time for which there are records, so that the source does not end while there are rounds left."""


def strike(victim: str, job: RunningJob, nodes: TwoNodes | None, chance: random.Random) -> str:
    """Kill one process of that kind, or do what else it stands for; what was done.

    Raises:
        RoundFailed: there is none, or it did not go.
    """
    if victim == "function":
        job.crash()
        return "made a function raise"
    if victim == "rescale":
        return f"rescaled {job.rescale(RESCALE_WITHIN_S)}"
    assert nodes is not None, "processes are killed on a cluster"
    if victim == "raylet":
        return f"killed {nodes.kill_raylet()}"
    candidates = processes(victim)
    if not candidates:
        raise RoundFailed(f"there is no {victim} to kill: {watching.actors()}")
    name, pid = chance.choice(candidates)
    os.kill(pid, signal.SIGKILL)
    if not watching.eventually(lambda: not psutil.pid_exists(pid), within_s=10):
        raise RoundFailed(f"process {pid} of {name} is still there 10 s after signal 9")
    return f"killed {victim} {name.partition('/')[2]} (process {pid})"


def plan(rounds: int, seed: int, victims: tuple[str, ...]) -> list[tuple[str, float]]:
    """For each round whom to kill and how many seconds after a checkpoint; the first rounds take each kind once."""
    chance = random.Random(seed)
    first = list(victims)
    chance.shuffle(first)
    chosen = (first + [chance.choice(victims) for _ in range(rounds)])[:rounds]
    return [(victim, chance.uniform(0, 1.5 * CHECKPOINT_MS / 1000)) for victim in chosen]


@dataclass(frozen=True)
class Campaign:
    """What is to be killed, and how long it may take.

    Args:
        records: of each lane; None: enough for the rounds.
        within_s: time for a recovery.
        options: more of the job's configuration, KEY=VALUE.
        postgres: connection string of the database for the output; "": it goes into files.
        rate: records a second of each of the two subtasks of the source.
    """

    rounds: int
    seed: int
    victims: tuple[str, ...] = VICTIMS
    records: int | None = None
    within_s: float = 60
    options: tuple[str, ...] = ()
    postgres: str = ""
    rate: int = 200


def run(campaign: Campaign, nodes: TwoNodes | None, folder: Path, say: Callable[[str], None]) -> bool:
    """Run the job through all rounds to its end; whether its output is exact.

    Args:
        nodes: None where the job runs in a process of its own, of which only functions raise.

    Raises:
        RoundFailed: a round, or the end, did not go as it has to.
    """
    records = campaign.records or campaign.rate * 2 // LANES * ROUND_S * (campaign.rounds + 1)
    job = RunningJob(folder, records, list(campaign.options), campaign.postgres, campaign.rate)
    job.start()
    try:
        rounds = strike_all(campaign, job, nodes, say)
        job.finish(max(campaign.within_s, 120))
    finally:
        job.kill()
    exact, told = job.verdict()
    say(f"{told} {rounds}")
    return exact


def run_between_topics(
    campaign: Campaign, nodes: TwoNodes | None, folder: Path, say: Callable[[str], None], cluster: KafkaCluster
) -> bool:
    """Run a job between two topics through all rounds to its end; whether its output is exact and no reader stranded.

    Raises:
        RoundFailed: a round, or the end, did not go as it has to.
    """
    from tests.exactly_once import stream_cases

    case = stream_cases.KafkaToKafka(cluster, campaign.rounds, folder, campaign.seed)
    case.records = campaign.records or stream_cases.RATE * ROUND_S * (campaign.rounds + 1)
    job = RunningJob(folder, case.records, list(campaign.options), streams=case.arguments())
    chance = random.Random(campaign.seed + 2)
    with case.readers() as readers:
        try:
            case.writer.start()
            job.start()
            rounds = strike_all(campaign, job, nodes, say, partial(stream_cases.strike_broker, cluster, chance))
            case.writer.finish(300)
            job.wait(300)
        finally:
            job.kill()
            case.close()
    exact, told = case.verdict()
    say(f"{told} {rounds} stranded_at_most={readers.longest_s:.1f}s samples={readers.samples}")
    return exact and readers.longest_s < STRANDED_S and readers.samples > 0


def strike_all(
    campaign: Campaign,
    job: RunningJob,
    nodes: TwoNodes | None,
    say: Callable[[str], None],
    strike_broker: Callable[[], None] | None = None,
) -> str:
    """Take a job that has just begun through all rounds; what was done, and how long the recoveries took.

    Raises:
        RoundFailed: a round did not go as it has to.
    """
    chance = random.Random(campaign.seed + 1)
    done: Counter[str] = Counter()
    took: list[float] = []
    if nodes is not None:
        nodes.join_worker(campaign.within_s)
    for number, (victim, wait_s) in enumerate(plan(campaign.rounds, campaign.seed, campaign.victims), start=1):
        if nodes is not None:
            job.await_tasks(campaign.within_s)
        job.await_checkpoint(job.newest_checkpoint() + 1, campaign.within_s)
        time.sleep(wait_s)
        began, newest = time.monotonic(), job.newest_checkpoint()
        if victim == BROKER:
            assert strike_broker is not None, "a job between topics has brokers"
            strike_broker()
            what = "killed the broker"
        else:
            what = strike(victim, job, nodes, chance)
        job.await_checkpoint(min(newest, job.newest) + 2, campaign.within_s)
        took.append(time.monotonic() - began)
        done[victim] += 1
        say(f"round {number}: {what} after checkpoint {newest}; new ones were complete after {took[-1]:.1f} s")
    kinds = " ".join(f"{victim}={done[victim]}" for victim in campaign.victims)
    slowest = f" slowest={max(took):.1f}s median={sorted(took)[len(took) // 2]:.1f}s" if took else ""
    return f"rounds={campaign.rounds} seed={campaign.seed} {kinds}{slowest}"


def main(given: list[str]) -> int:
    """Run a campaign of its own cluster; the code to end with."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--victims", nargs="+", choices=(*VICTIMS, BROKER), help="default: all that there are")
    parser.add_argument("--records", type=int, help="of each lane; default: enough for the rounds")
    parser.add_argument("--rate", type=int, default=200, help="records a second of each subtask of the source")
    parser.add_argument("--within", type=float, default=60, metavar="SECONDS", help="for a recovery")
    parser.add_argument("--log", type=Path, help="file to which each line is added as well")
    parser.add_argument("--folder", type=Path, help="for output, checkpoints and the job's log; kept")
    parser.add_argument("--postgres", action="store_true", help="write to a PostgreSQL server of its own, not to files")
    parser.add_argument("--kafka", action="store_true", help="run between two topics of a broker of its own")
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="of the job")
    asked = parser.parse_args(given)

    def say(line: str) -> None:
        print(line, flush=True)
        if asked.log:
            with asked.log.open("a") as log:
                log.write(line + "\n")

    victims = tuple(asked.victims or ((*VICTIMS, BROKER) if asked.kafka else VICTIMS))
    if BROKER in victims and not asked.kafka:
        parser.error("there is a broker to kill with --kafka only")
    options = tuple(asked.option)
    campaign = Campaign(asked.rounds, asked.seed, victims, asked.records, asked.within, options, "", asked.rate)
    watch = Watch.start()
    is_well = False
    try:
        with ExitStack() as running:
            if asked.postgres:
                campaign = replace(campaign, postgres=running.enter_context(database()))
            cluster = running.enter_context(kafka_cluster()) if asked.kafka else None
            nodes = running.enter_context(two_nodes())
            folder = asked.folder or Path(tempfile.mkdtemp(prefix="ray-"))
            if cluster is None:
                is_well = run(campaign, nodes, folder, say)
            else:
                is_well = run_between_topics(campaign, nodes, folder, say, cluster)
    except RoundFailed as failed:
        say(f"FAILED seed={asked.seed}: {failed}")
    finally:
        for line in watch.leftovers(deadline_s=15):
            say(f"left over: {line}")
            is_well = False
        watch.close()
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
