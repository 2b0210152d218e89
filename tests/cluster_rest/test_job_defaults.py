"""Options of a cluster hold for its jobs where they say nothing themselves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rayflink.actors.job.submission import Submission
from rayflink.cluster.cluster_server import local_cluster
from rayflink.cluster.dispatcher.job_defaults import job_defaults, with_defaults
from rayflink.common.configuration import Configuration
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.launch.remote_submission import RemoteSubmission
from tests.cluster.watching import eventually

JOB = "a" * 32
SLOTS = {"rayflink.ray.slots-per-process": "20", "rayflink.ray.slot-cpus": "0.05"}
DEFAULTS = {"execution.checkpointing.dir": "/all", "execution.checkpointing.interval": "1 s", "s3.secret-key": "abc"}


def submission(mode: str = "STREAMING", **configuration: str) -> RemoteSubmission:
    options = {key.replace("__", "."): value for key, value in configuration.items()}
    described = {"jid": JOB, "mode": mode, "configuration": options, "vertices": []}
    return RemoteSubmission(JOB, "demo", described, None, Submission(b"program"))


def test_a_job_gets_what_it_lacks_a_place_for_its_checkpoints_and_shows_no_secret() -> None:
    got = with_defaults(submission(), DEFAULTS)
    assert got.submission.defaults == DEFAULTS
    assert got.stored is not None and (got.stored.url, got.stored.options) == (f"/all/{JOB}", {"s3.secret-key": "abc"})
    assert got.description["configuration"] == {**DEFAULTS, "s3.secret-key": "******"}
    assert RemoteSubmission.decode(got.encode()) == replace(got, archives=[], cached=[])


def test_a_cluster_says_how_many_slots_share_a_process_and_what_they_reserve() -> None:
    assert job_defaults({**SLOTS, "rayflink.ray.share-coordinators": False}) == SLOTS


def test_its_own_options_win_also_by_their_older_names() -> None:
    got = with_defaults(submission(state__checkpoints__dir="/own"), DEFAULTS)
    assert "execution.checkpointing.dir" not in got.submission.defaults
    assert got.stored is not None and got.stored.url == f"/own/{JOB}"


def test_a_job_in_batch_mode_or_without_defaults_stays_as_it_is() -> None:
    assert with_defaults(submission("BATCH"), DEFAULTS).stored is None
    assert with_defaults(submission(), {}) == submission()


def test_a_job_of_a_cluster_takes_checkpoints_where_the_cluster_says(tmp_path: Path) -> None:
    options = {"execution.checkpointing.dir": str(tmp_path), "execution.checkpointing.interval": "50 ms"}
    cluster = local_cluster(Configuration.from_dict({"rest.port": 0, **options}))
    cluster.start()
    try:
        env = StreamExecutionEnvironment({})
        env.from_sequence(1, 1 << 40).add_sink(lambda value: None)
        job_id = cluster.dispatcher.submit(RemoteSubmission.of(env.get_job_graph(), (), None).encode(), "me")
        assert eventually(lambda: list(tmp_path.glob(f"{job_id}/chk-*/_metadata")), within_s=30)
        cluster.dispatcher.running(job_id).cancel()
    finally:
        cluster.stop()
