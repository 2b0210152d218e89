"""Real kills of a session cluster: its dispatcher, coordinators, slots, a node, all of it; its jobs are verified.

    python -m tests.exactly_once.cluster_kills --rounds 30 --seed 7 --jobs 3 --slots 4

A round kills with signal 9 what the seed says, while an operation is under way: a submission, a cancellation, a
savepoint, a rescale, or none. Where the whole cluster was killed, a new one is started, and `rayflink cluster recover`
brings the jobs back; in a round "recover", the new dispatcher is killed while it does, and the command is given again.
The round is over when the operation has had its answer, every job has completed two more checkpoints, and the
dispatcher lists every job once, running, and no job that was cancelled. After all rounds the sources are released,
every job must finish, and the verifier must find every line of every job once.

Ends with 0 when it did and nothing is left on the machine, else with 1 and the round that failed.
"""

from __future__ import annotations

import argparse
import functools
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

from tests.cluster import watching
from tests.exactly_once.operations_meanwhile import KINDS, Meanwhile
from tests.exactly_once.running import RoundFailed
from tests.exactly_once.session_cluster import OVER, SessionCluster, SubmittedLines, session_cluster
from tests.suite.leftovers import Watch

VICTIMS = ("dispatcher", "coordinator", "slot", "node", "cluster", "recover")
ROUND_S = 60
"""Time for which there are records."""
RECOVER_S = 400
ACTORS = {"dispatcher": "ServiceActor", "coordinator": "CoordinatorHost", "slot": "Slot"}
"""The beginning of the name of each kind; a slot has a SlotActor, or its part of a SlotHost."""


def run(
    rounds: Sequence[str], seed: int, folder: Path, say: Callable[[str], None], jobs: int = 2, within_s: float = 90,
    slots: int = 1,
) -> bool:  # fmt: skip
    """Run jobs through all rounds to their end; return whether their output is exact.

    Args:
        rounds: the victim of each.
        seed: of everything that is drawn.
        folder: of all files.
        say: takes lines for people.
        jobs: that run all the time.
        within_s: time for a recovery.
        slots: that share a process.

    Raises:
        RoundFailed: a round, or the end, did not go as it has to.
    """
    chance = random.Random(seed)
    with session_cluster(folder) as cluster:
        new_job = functools.partial(_job, folder, len(rounds), slots)
        lines = [_submitted(cluster, new_job, number) for number in range(jobs)]
        _await_progress(cluster, lines, set(), within_s)
        numbers = count(jobs)
        meanwhile = Meanwhile(cluster, lambda: new_job(next(numbers)))
        done: Counter[str] = Counter()
        took: list[float] = []
        for number, victim in enumerate(rounds, start=1):
            meanwhile.begin(chance.choice(KINDS), chance.choice(lines), folder / "savepoints")
            time.sleep(chance.uniform(0, 1.0))
            began = time.monotonic()
            what = _strike(cluster, victim, chance)
            outcome = meanwhile.outcome(within_s)
            _await_progress(cluster, [*lines, *meanwhile.extra], meanwhile.cancelled, within_s)
            took.append(time.monotonic() - began)
            done[victim] += 1
            say(f"round {number}: {outcome}; killed {what}; all jobs went on after {took[-1]:.1f} s")
        everyone = [*lines, *meanwhile.extra]
        for job in everyone:
            job.release()
        ends = {**{job.job_id: "FINISHED" for job in everyone}, **dict.fromkeys(meanwhile.cancelled, "CANCELED")}
        if not watching.eventually(lambda: cluster.states() == ends, within_s * 2):
            raise RoundFailed(f"the jobs did not finish: {cluster.states()}, wanted {ends}")
        verdicts = [job.verdict() for job in everyone]
        for verdict in verdicts:
            say(verdict.report())
        kinds = " ".join(f"{victim}={done[victim]}" for victim in VICTIMS)
        say(f"rounds={len(rounds)} seed={seed} {kinds} slowest={max(took):.1f}s jobs={len(ends)}")
        return all(verdict.is_exact for verdict in verdicts)


def _submitted(
    cluster: SessionCluster, new_job: Callable[[int], tuple[SubmittedLines, bytes]], number: int
) -> SubmittedLines:
    job, body = new_job(number)
    answer = cluster.ask("POST", "/rayflink/jobs?client=kills&wait_s=0", body)
    assert answer["jobid"] == job.job_id
    return job


def _job(folder: Path, rounds: int, slots: int, number: int) -> tuple[SubmittedLines, bytes]:
    own = folder / f"job-{number}"
    own.mkdir()
    rate = 100
    job = SubmittedLines(own, rate * ROUND_S * (rounds + 1) // 2, rate=rate, slots=slots)
    return job, job.body(f"lines {number}")


def _strike(cluster: SessionCluster, victim: str, chance: random.Random) -> str:
    if victim == "node":
        return cluster.kill_worker()
    if victim in ACTORS:
        return cluster.kill(ACTORS[victim], chance.choice)
    what = cluster.kill_all()
    cluster.forget_dispatcher()
    cluster.start()
    cluster.join_worker()
    if victim == "recover":
        what += f", and {_killed_while_it_recovers(cluster, chance)}"
    else:
        cluster.rayflink("cluster", "recover")
    return what


def _killed_while_it_recovers(cluster: SessionCluster, chance: random.Random) -> str:
    """Kill the new dispatcher while it brings the jobs back; a command that does not get over that is given again."""
    command = cluster.begin("cluster", "recover")
    if not watching.eventually(lambda: cluster.pids(ACTORS["dispatcher"]), RECOVER_S):
        raise RoundFailed(f"no dispatcher was started: {command.communicate()}")
    time.sleep(chance.uniform(0, 3.0))
    what = cluster.kill(ACTORS["dispatcher"], chance.choice)
    try:
        command.communicate(timeout=RECOVER_S)
    except subprocess.TimeoutExpired as error:
        raise RoundFailed(f"`rayflink cluster recover` has not ended within {RECOVER_S} s") from error
    finally:
        command.kill()
    if command.returncode:
        cluster.rayflink("cluster", "stop")
        cluster.rayflink("cluster", "recover")
    return what


def _await_progress(
    cluster: SessionCluster, lines: Sequence[SubmittedLines], cancelled: set[str], within_s: float
) -> None:
    """Wait until each job has completed two more checkpoints, and the dispatcher lists each once, running.

    Args:
        cancelled: ids of others, which must be over.
    """
    wanted = {job.job_id: job.newest_checkpoint() + 2 for job in lines}

    def is_there() -> bool:
        states = cluster.states()
        if states is None:
            return False
        if ended := [job_id for job_id, state in states.items() if state in OVER and job_id not in cancelled]:
            raise RoundFailed(f"jobs have ended: {ended} of {states}")
        late = [job for job in lines if job.newest_checkpoint() < wanted[job.job_id]]
        running = {job.job_id: "RUNNING" for job in lines}
        return not late and states == {**running, **dict.fromkeys(cancelled, "CANCELED")}

    if not watching.eventually(is_there, within_s):
        newest = {job.job_id: job.newest_checkpoint() for job in lines}
        raise RoundFailed(f"no two checkpoints of each job within {within_s:.0f} s: {cluster.states()}, {newest}")


def main(given: list[str]) -> int:
    """Run a campaign; return the code to end with."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--slots", type=int, default=1, help="that share a process")
    parser.add_argument("--victims", nargs="+", choices=VICTIMS, default=list(VICTIMS))
    parser.add_argument("--within", type=float, default=90, metavar="SECONDS", help="for a recovery")
    asked = parser.parse_args(given)
    chance = random.Random(asked.seed)
    first = list(asked.victims)
    chance.shuffle(first)
    rounds = (first + [chance.choice(asked.victims) for _ in range(asked.rounds)])[: asked.rounds]
    watch = Watch.start()
    is_well = False
    try:
        with tempfile.TemporaryDirectory(prefix="kills-") as folder:
            say = functools.partial(print, flush=True)
            is_well = run(rounds, asked.seed, Path(folder), say, asked.jobs, asked.within, asked.slots)
    except RoundFailed as failed:
        print(f"FAILED seed={asked.seed}: {failed}", flush=True)
    finally:
        for line in watch.leftovers(deadline_s=15):
            print(f"left over: {line}", flush=True)
            is_well = False
        watch.close()
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
