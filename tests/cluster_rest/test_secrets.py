"""No answer, log or archive of a cluster has a secret of its options, its jobs or its clients."""

from __future__ import annotations

import logging
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from rayflink.cluster.cluster_server import local_cluster
from rayflink.cluster.history_server import HistoryServer
from rayflink.cluster.jobs.cluster_job import ClusterJobs
from rayflink.common.configuration import Configuration
from rayflink.connectors.discard import DiscardingSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.launch.remote_submission import RemoteSubmission
from rayflink.serving.json_requests import Route
from tests.cluster.watching import eventually

PLANTED = "planted-secret"
"""The beginning of every secret."""
WAIT_S = 30


def ask(url: str, method: str = "GET", body: bytes | None = None, token: str = "") -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers, method=method), timeout=20) as answer:
            return answer.status, answer.read() + str(answer.headers).encode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read() + str(error.headers).encode()


def submission(fails: bool) -> RemoteSubmission:
    def check(number: int) -> int:
        if fails:
            raise ValueError(f"{number} is no price")
        return number

    secret = f"{PLANTED}-of-the-job"
    env = StreamExecutionEnvironment({
        "parallelism.default": "1", "restart-strategy.type": "none", "s3.secret-key": secret, "my.password": secret,
        "my.url": f"jdbc:postgresql://me:{secret}@host/db?password={secret}", "rest.token": f"{PLANTED}-of-a-client",
    })  # fmt: skip
    env.get_config().set_global_job_parameters({"api-key": secret, "kind": "test"})
    env.from_sequence(1, 10).map(check).sink_to(DiscardingSink())
    return RemoteSubmission.of(env.get_job_graph("with secrets"), [], None)


def paths(routes: list[Route], jobs: ClusterJobs, job_id: str) -> Iterator[str]:
    """Return a path for each route that reads, with values that exist where they are known."""
    vertices = [vertex["id"] for vertex in jobs.view(job_id).status()["vertices"]]
    vertex = vertices[0] if vertices else "0" * 32
    values = {"jobid": job_id, "job": job_id, "vertexid": vertex, "vertex": vertex, "name": "index.html",
              "taskmanagerid": "local", "checkpointid": "1", "triggerid": "0" * 32}  # fmt: skip
    for route in routes:
        if route.method == "GET" and not route.pattern.startswith(("/v1/", "/ui/")):
            yield re.sub(r"\{(\w+)[^}]*\}", lambda match: values.get(match[1], "0"), route.pattern)


@pytest.mark.slow
def test_no_answer_log_or_archive_has_a_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    tokens, audit, token = tmp_path / "tokens", tmp_path / "audit.jsonl", f"{PLANTED}-token-of-the-cluster"
    tokens.write_text(f"ann READ {PLANTED}-token-of-ann\n")
    tokens.chmod(0o600)
    options = {"rest.port": "0", "rest.token": token, "rest.auth.tokens-file": str(tokens),
               "rest.audit.file": str(audit), "jobmanager.archive.fs.dir": str(tmp_path / "archives"),
               "s3.secret-key": f"{PLANTED}-of-the-cluster",
               "historyserver.web.port": "0", "security.ssl.rest.key-password": f"{PLANTED}-password"}  # fmt: skip
    configuration = Configuration.from_dict(options)
    cluster = local_cluster(configuration)
    cluster.start()
    answers: dict[str, bytes] = {}
    try:
        for fails in (False, True):
            status, body = ask(f"{cluster.url}/rayflink/jobs", "POST", submission(fails).encode(), token)
            assert status == 200, body
        ended = eventually(
            lambda: {job["state"] for job in cluster.dispatcher.statuses()} == {"FINISHED", "FAILED"}, WAIT_S
        )
        assert ended, cluster.dispatcher.statuses()
        for sent, job in zip(("", token), cluster.dispatcher.statuses(), strict=True):
            for path in paths(cluster._routes(), cluster.dispatcher, job["jid"]):
                status, answers[path] = ask(f"{cluster.url}{path}?token={PLANTED}-in-a-query", token=sent)
                assert status != 500, answers[path]
            for other in (f"{PLANTED}-token-of-ann", f"{PLANTED}-token-that-is-wrong"):
                for path in ("/jobs/overview", "/rayflink/jobs/x/rows", "/nothing"):
                    answers[f"{path} {len(other)}"] = ask(f"{cluster.url}{path}", token=other)[1]
            ask(f"{cluster.url}/jobs/{job['jid']}?mode=cancel&password={PLANTED}", "PATCH")
        ask(f"{cluster.url}/rayflink/jobs", "POST", f"{PLANTED} nonsense".encode(), token)
    finally:
        cluster.stop()
    history = HistoryServer(configuration)
    history.start()
    try:
        for job in history.jobs.statuses():
            for path in paths(history._routes(), history.jobs, job["jid"]):
                status, answers[f"history {path}"] = ask(f"{history.url}{path}")
                assert status != 500, answers[f"history {path}"]
        assert len(history.jobs.statuses()) == 2
    finally:
        history.stop()
    files = {str(path): path.read_bytes() for path in [audit, *(tmp_path / "archives").rglob("*.json")]}
    assert len(files) == 3 and files[str(audit)].count(b"\n") > 10
    leaks = [name for name, content in {**answers, **files}.items() if PLANTED.encode() in content]
    assert not leaks
    shown = [f"{record.getMessage()} {vars(record)} {record.exc_info}" for record in caplog.records]
    assert not [line for line in shown if PLANTED in line] and PLANTED not in caplog.text
    assert any("******" in answer.decode(errors="replace") for answer in answers.values())
