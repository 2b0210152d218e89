"""Jobs that are started again on a cluster in this process: from which checkpoint, and what comes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from rayflink.cluster.cluster_server import ClusterServer
from rayflink.cluster.dispatcher.restarted_submission import RestartChanges
from rayflink.common.errors import JobExecutionError, PlanError
from rayflink.connectors.collected import DrawnSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.launch.remote_submission import RemoteSubmission
from rayflink.state.storage.stored_checkpoints import NoCheckpointError
from tests.cluster.watching import eventually
from tests.cluster_rest.restarts.lines_jobs import LinesJob

pytestmark = pytest.mark.slow
NEW, OTHER = "1" * 32, "2" * 32
UNCHANGED = RestartChanges()


def state(cluster: ClusterServer, job_id: str) -> str:
    return str(cluster.dispatcher.view(job_id).status()["state"])


def reached(cluster: ClusterServer, job_id: str, *states: str) -> bool:
    return bool(eventually(lambda: state(cluster, job_id) in states, within_s=60))


def failed(cluster: ClusterServer, lines: LinesJob) -> str:
    """Run a job until it has failed, and return its id."""
    submission = lines.priced()
    cluster.dispatcher.submit(submission.encode(), "me")
    assert reached(cluster, submission.job_id, "FAILED")
    offered = cluster.dispatcher.restarts.offer
    assert eventually(lambda: bool(offered(submission.job_id).points) == lines.retains, within_s=20)
    return submission.job_id


def test_a_failed_job_goes_on_from_its_newest_checkpoint_with_more_subtasks(
    cluster: ClusterServer, tmp_path: Path
) -> None:
    lines = LinesJob(tmp_path)
    job_id = failed(cluster, lines)
    restarts = cluster.dispatcher.restarts
    offer = restarts.offer(job_id)
    assert (offer.refusal, offer.points[0].kind, offer.remark) == ("", "checkpoint", "")
    lines.prices.touch()
    changes = RestartChanges(parallelism={"price": 2}, options={"execution.checkpointing.interval": "300 ms"})
    started = restarts.restart(job_id, NEW, None, changes, "me")
    assert started.start_from == offer.points[0].path
    lines.release()
    assert reached(cluster, NEW, "FINISHED", "FAILED"), cluster.dispatcher.view(NEW).status()["exceptions"]
    assert lines.verdict().is_exact, lines.verdict().report()
    ended = cluster.dispatcher.view(NEW)
    sizes = {vertex["name"]: vertex["parallelism"] for vertex in ended.status()["vertices"]}
    assert sizes["price"] == 2 and ended.description()["configuration"]["execution.checkpointing.interval"] == "300 ms"
    assert restarts.offer(job_id).restarted_as == (NEW,) and restarts.offer(NEW).restarted_from == job_id
    assert restarts.restart(job_id, NEW, None, changes, "me") == started, "the same request again"
    again = restarts.restart(NEW, OTHER, "", UNCHANGED, "me")
    assert reached(cluster, again.job_id, "FINISHED"), "a new start of a new start, from nothing"


def test_a_running_job_stops_with_a_savepoint_and_goes_on_from_there(cluster: ClusterServer, tmp_path: Path) -> None:
    lines = LinesJob(tmp_path, records=600)
    submission = lines.scored(0.0)
    job_id = cluster.dispatcher.submit(submission.encode(), "me")
    assert eventually(lambda: lines.newest_checkpoint() >= 1, within_s=30)
    restarts = cluster.dispatcher.restarts
    with pytest.raises(PlanError, match="no operator 'skore'"):  # before it is stopped
        restarts.restart(job_id, NEW, None, RestartChanges(parallelism={"skore": 2}), "me")
    with pytest.raises(JobExecutionError, match="has not ended; cancel it before"):
        restarts.restart(job_id, NEW, "", UNCHANGED, "me")
    started = restarts.restart(job_id, NEW, None, UNCHANGED, "me")
    assert "-savepoints/savepoint-" in started.start_from and state(cluster, job_id) == "FINISHED"
    lines.release()
    assert reached(cluster, NEW, "FINISHED")
    assert lines.verdict().is_exact, lines.verdict().report()
    assert restarts.offer(job_id).points[0].kind == "savepoint"


def test_a_job_without_a_checkpoint_says_so_and_begins_from_nothing(cluster: ClusterServer, tmp_path: Path) -> None:
    lines = LinesJob(tmp_path, retains=False)
    job_id = failed(cluster, lines)
    restarts = cluster.dispatcher.restarts
    assert "deleted when it ended, as its options say" in restarts.offer(job_id).remark
    with pytest.raises(JobExecutionError, match="cannot go on.*from nothing"):
        restarts.restart(job_id, NEW, None, UNCHANGED, "me")
    with pytest.raises(NoCheckpointError):
        restarts.restart(job_id, NEW, str(tmp_path / "nowhere"), UNCHANGED, "me")
    assert cluster.dispatcher.lineage.successors(job_id) == (), "what is refused leaves no job"
    lines.prices.touch()
    lines.release()
    restarts.restart(job_id, NEW, "", UNCHANGED, "me")
    assert reached(cluster, NEW, "FINISHED")


def test_checkpoints_that_somebody_deleted_are_not_offered(cluster: ClusterServer, tmp_path: Path) -> None:
    lines = LinesJob(tmp_path)
    job_id = failed(cluster, lines)
    (metadata,) = (tmp_path / "checkpoints").glob("*/chk-*/_metadata")
    metadata.unlink()
    assert cluster.dispatcher.restarts.offer(job_id).points == ()


def test_a_job_whose_rows_its_program_draws_is_refused(cluster: ClusterServer) -> None:
    env = StreamExecutionEnvironment({"execution.target": "local"})
    env.from_collection([1, 2]).sink_to(DrawnSink())
    submission = RemoteSubmission.of(env.get_job_graph("rows"), (), None)
    job_id = cluster.dispatcher.submit(submission.encode(), "me")
    job = cluster.dispatcher.client(job_id)
    while job.rows(1.0) is not None:
        pass
    assert reached(cluster, job_id, "FINISHED")
    with pytest.raises(JobExecutionError, match="gives its rows to the program"):
        cluster.dispatcher.restarts.restart(job_id, NEW, "", UNCHANGED, "me")
    assert state(cluster, NEW) == "FAILED", "what keeps a job from its start can be read"
