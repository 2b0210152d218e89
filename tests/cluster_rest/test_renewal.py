"""A job goes on in new processes from a savepoint: the same id, nothing lost and nothing twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rayflink.cli import cluster_upgrade
from rayflink.cli.cluster_upgrade import JobUpgrades, show_upgrades
from rayflink.cluster.cluster_server import ClusterServer, local_cluster
from rayflink.cluster.jobs.cluster_job import JobHasEnded, UnknownJob
from rayflink.common.configuration import Configuration
from rayflink.common.errors import ControlPlaneTimeout, JobExecutionError
from rayflink.common.options import registry as options
from rayflink.launch.background_server import BackgroundServer
from rayflink.launch.cluster_client import ClusterUnreachable
from tests.cluster.watching import eventually
from tests.exactly_once.session_cluster import SubmittedLines

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster() -> Iterator[ClusterServer]:
    running = local_cluster(Configuration().set(options.REST_PORT, 0))
    running.start()
    yield running
    running.stop()


def test_a_job_goes_on_from_its_savepoint_and_every_line_is_there_once(cluster: ClusterServer, tmp_path: Path) -> None:
    lines = SubmittedLines(tmp_path, records=600, rate=100)
    dispatcher = cluster.dispatcher
    job_id = dispatcher.submit(lines.body("renewed"), "me")
    assert eventually(lambda: lines.newest_checkpoint() >= 1, within_s=30)
    before = dispatcher.client(job_id)
    renewal = dispatcher.renew(job_id)
    assert Path(renewal.savepoint, "_metadata").exists()
    assert "-savepoints/savepoint-" in renewal.savepoint, "neither the job nor the request names a folder"
    assert dispatcher.client(job_id) is not before
    with pytest.raises(ControlPlaneTimeout, match="goes on elsewhere"):  # a request that had asked it
        before.savepoint("0" * 32, str(tmp_path / "savepoints"), None, 5.0)
    assert dispatcher.view(job_id).status()["state"] == "RUNNING"
    lines.release()
    assert eventually(lambda: dispatcher.view(job_id).status()["state"] == "FINISHED", within_s=60)
    assert lines.verdict().is_exact, lines.verdict().report()
    assert eventually(lambda: _has_ended(cluster, job_id), within_s=10)
    with pytest.raises(UnknownJob):
        dispatcher.renew("0" * 32)


def test_a_job_without_checkpoints_is_left_alone(cluster: ClusterServer, tmp_path: Path) -> None:
    """It would begin anew, whatever savepoint it has just taken."""
    lines = SubmittedLines(tmp_path, records=600, rate=100)
    dispatcher = cluster.dispatcher
    job_id = dispatcher.submit(lines.body("no checkpoints", checkpoints=False), "me")
    with pytest.raises(JobExecutionError, match="takes no checkpoints.*run its program again"):
        dispatcher.renew(job_id, str(tmp_path / "savepoints"))
    assert not (tmp_path / "savepoints").exists()
    assert dispatcher.view(job_id).status()["state"] in ("CREATED", "RUNNING")
    dispatcher.running(job_id).cancel()


@pytest.fixture
def two_jobs(cluster: ClusterServer, tmp_path: Path) -> Iterator[tuple[SubmittedLines, SubmittedLines]]:
    """One that takes checkpoints, and has, and one that does not."""
    jobs = tuple(SubmittedLines(tmp_path / name, records=6_000, rate=50) for name in ("renewed", "left"))
    for lines, checkpoints in zip(jobs, (True, False), strict=True):
        lines.folder.mkdir()
        cluster.dispatcher.submit(lines.body(lines.folder.name, checkpoints), "me")
    assert eventually(lambda: jobs[0].newest_checkpoint() >= 1, within_s=30)
    yield jobs
    for lines in jobs:
        lines.release()
    ends = [lines.job_id for lines in jobs]
    assert eventually(lambda: all(_has_ended(cluster, job_id) for job_id in ends), within_s=60)
    assert all(lines.verdict().is_exact for lines in jobs)


def test_an_upgrade_says_of_each_job_what_becomes_of_it(
    cluster: ClusterServer, two_jobs: tuple[SubmittedLines, SubmittedLines], capsys: pytest.CaptureFixture[str]
) -> None:
    upgrades = JobUpgrades(_server(cluster))
    assert [job["name"] for job in upgrades.jobs()] == ["renewed", "left"]
    refusal = "takes no checkpoints, and would begin anew in new processes; stop it with a savepoint"
    would = {each.name: each for each in map(upgrades.would_renew, upgrades.jobs())}
    assert would["renewed"].is_done and would["renewed"].outcome == "would go on in new processes"
    assert (would["renewed"].savepoint or "").endswith("-savepoints")
    assert not would["left"].is_done and refusal in would["left"].outcome
    in_place = {each.name: each.outcome for each in map(upgrades.of_process, upgrades.jobs())}
    assert in_place["renewed"] == "goes on from its newest checkpoint" and "begins anew: " in in_place["left"]

    done = [upgrades.renew(job) for job in upgrades.jobs()]
    assert [each.is_done for each in done] == [True, False] and refusal in done[1].outcome
    assert Path(done[0].savepoint or "", "_metadata").exists() and (done[0].pause_ms or 0) > 0
    assert not show_upgrades(done, "were not upgraded")
    shown = capsys.readouterr()
    assert done[0].savepoint is not None and done[0].savepoint in shown.out
    assert shown.err == "rayflink: 1 of 2 jobs were not upgraded\n"
    missing = {"jid": "0" * 32, "name": "missing"}
    assert not upgrades.renew(missing).is_done


@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_dispatcher_that_is_lost_during_an_upgrade_is_asked_what_it_has_done(
    cluster: ClusterServer, two_jobs: tuple[SubmittedLines, SubmittedLines], lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer does not come, whether it had begun or not; the job goes on in new processes once."""
    asked: list[str] = []
    ask = cluster_upgrade.ask

    def losing(server: BackgroundServer, method: str, path: str, answer_s: float = 30.0) -> dict[str, object]:
        if method == "POST":
            asked.append(path)
        if method == "POST" and len(asked) == 1:
            if lost == "after":
                ask(server, method, path, answer_s)
            raise ClusterUnreachable(server.url, "it was killed", "ask again")
        return ask(server, method, path, answer_s)

    monkeypatch.setattr(cluster_upgrade, "ask", losing)
    upgrades = JobUpgrades(_server(cluster))
    before = cluster.dispatcher.renewal_plan(two_jobs[0].job_id).starts
    done = upgrades.renew(upgrades.jobs()[0])
    assert done.is_done
    assert done.outcome == ("upgraded" if lost == "before" else "upgraded, while the dispatcher was lost")
    assert len(asked) == (2 if lost == "before" else 1)
    assert cluster.dispatcher.renewal_plan(two_jobs[0].job_id).starts == before + 1


def _server(cluster: ClusterServer) -> BackgroundServer:
    return BackgroundServer(0, "", cluster.url, cluster.token)


def _has_ended(cluster: ClusterServer, job_id: str) -> bool:
    try:
        cluster.dispatcher.running(job_id)
    except JobHasEnded:
        return True
    return False
