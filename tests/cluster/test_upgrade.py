"""A session cluster on Ray is upgraded while its jobs run: new processes, the same ids, and every line once."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")
from tests.cluster.watching import eventually
from tests.exactly_once.session_cluster import SessionCluster, SubmittedLines, session_cluster

pytestmark = [pytest.mark.ray, pytest.mark.slow]
WITHIN_S = 120
RECORDS = 40_000
"""More than the sources give before they are released."""
COORDINATOR, HOST, SLOT, DISPATCHER = "CoordinatorActor", "CoordinatorHost", "SlotActor", "ServiceActor"
"""Process of the job without checkpoints; of both others; of tasks; of the dispatcher."""


class Jobs:
    """Two jobs with checkpoints and one without, on a cluster."""

    def __init__(self, cluster: SessionCluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.kept = [self._submitted("first"), self._submitted("second")]
        self.left = self._submitted("without checkpoints", checkpoints=False)
        self.await_checkpoints()

    def _submitted(self, name: str, checkpoints: bool = True) -> SubmittedLines:
        own = self.folder / name.split()[0]
        own.mkdir()
        lines = SubmittedLines(own, RECORDS, rate=50)
        self.cluster.ask("POST", "/rayflink/jobs?client=upgrade&wait_s=0", lines.body(name, checkpoints))
        return lines

    def await_checkpoints(self) -> None:
        """Wait until all run in processes of theirs, and those with checkpoints have completed another one."""
        wanted = {job.job_id: job.newest_checkpoint() + 1 for job in self.kept}
        running = {job.job_id: "RUNNING" for job in (*self.kept, self.left)}
        assert eventually(lambda: self.cluster.states() == running, WITHIN_S), self.cluster.states()
        assert eventually(lambda: len(self.cluster.pids(SLOT)) >= len(running), WITHIN_S)
        assert eventually(lambda: all(job.newest_checkpoint() >= wanted[job.job_id] for job in self.kept), WITHIN_S)

    def savepoints(self) -> set[Path]:
        """Return the savepoints that upgrades have taken."""
        return {path.parent for path in self.folder.glob("ha/*-savepoints/*/_metadata")}

    def finish(self) -> None:
        """Release the sources, and see that each line of each job is there once."""
        for job in (*self.kept, self.left):
            job.release()
        assert eventually(lambda: set((self.cluster.states() or {}).values()) == {"FINISHED"}, WITHIN_S * 2)
        for job in (*self.kept, self.left):
            assert job.verdict().is_exact, job.verdict().report()


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    with session_cluster(tmp_path) as cluster:
        yield Jobs(cluster, tmp_path)


@pytest.mark.timeout(800)
def test_jobs_go_on_in_new_processes_also_when_the_dispatcher_is_killed_meanwhile(jobs: Jobs) -> None:
    cluster, left_alone = jobs.cluster, "takes no checkpoints, and would begin anew in new processes"
    before = {kind: cluster.pids(kind) for kind in (COORDINATOR, HOST, SLOT, DISPATCHER)}
    code, table, errors = _ended(cluster.begin("cluster", "upgrade", "--dry-run"))
    assert code == 1 and "1 of 3 jobs would not be upgraded" in errors
    assert _outcome(table, "first") == _outcome(table, "second") == "would go on in new processes"
    assert left_alone in _outcome(table, "without checkpoints")
    assert {kind: cluster.pids(kind) for kind in before} == before and not jobs.savepoints()

    code, table, errors = _ended(cluster.begin("cluster", "upgrade"))
    assert code == 1, "a job is left as it was"
    assert _outcome(table, "first") == _outcome(table, "second") == "upgraded", errors
    assert left_alone in _outcome(table, "without checkpoints") and "1 of 3 jobs were not upgraded" in errors
    assert all(str(savepoint) in table for savepoint in jobs.savepoints()) and len(jobs.savepoints()) == 2
    jobs.await_checkpoints()
    after = {kind: cluster.pids(kind) for kind in before}
    assert not after[DISPATCHER] & before[DISPATCHER]
    assert after[COORDINATOR] == before[COORDINATOR] and len(before[HOST]) == len(after[HOST] - before[HOST]) == 1
    assert len(after[SLOT] & before[SLOT]) == len(before[SLOT]) // 3, "those of the job that was left alone"

    command = cluster.begin("cluster", "upgrade")
    assert eventually(lambda: len(jobs.savepoints()) == 3, WITHIN_S), _ended(command)
    cluster.kill(DISPATCHER, min)  # it is about to end the first job's processes, or has just done so
    code, table, errors = _ended(command)
    assert code == 1, errors
    assert _outcome(table, "first").startswith("upgraded") and _outcome(table, "second").startswith("upgraded"), table
    jobs.await_checkpoints()
    assert cluster.pids(COORDINATOR) == before[COORDINATOR] and cluster.pids(HOST) - after[HOST] - before[HOST]

    code, table, errors = _ended(cluster.begin("cluster", "upgrade"))  # given again, it does all again
    assert code == 1 and _outcome(table, "first") == _outcome(table, "second") == "upgraded", errors
    jobs.await_checkpoints()
    jobs.finish()


def _ended(command: subprocess.Popen[str]) -> tuple[int, str, str]:
    output, errors = command.communicate(timeout=300)
    return command.returncode, output, errors


def _outcome(table: str, name: str) -> str:
    """Return the third column of the line of a job."""
    (line,) = [line for line in table.splitlines() if f"  {name}  " in line]
    return line.split("  " + name)[1].strip().split("  ")[0]
