"""A job goes on in new processes from a savepoint: the same id, nothing lost and nothing twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rayflink.cluster.cluster_server import ClusterServer, local_cluster
from rayflink.cluster.jobs.cluster_job import JobHasEnded, UnknownJob
from rayflink.common.configuration import Configuration
from rayflink.common.errors import ControlPlaneTimeout, JobExecutionError
from rayflink.common.options import registry as options
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


def _has_ended(cluster: ClusterServer, job_id: str) -> bool:
    try:
        cluster.dispatcher.running(job_id)
    except JobHasEnded:
        return True
    return False
