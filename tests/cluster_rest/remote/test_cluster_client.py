"""The client of a dispatcher: where it is, who gets a token, what is asked again."""

from __future__ import annotations

import json
import os
import pickle
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from rayflink.cluster.rest.numbered_answers import NumberedAnswers
from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError, JobExecutionError
from rayflink.common.process_begin import process_begin
from rayflink.connectors.collected import DrawnOnce, RowBlock
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.launch.cluster_address import ClusterAddress, started_cluster_file
from rayflink.launch.cluster_client import ClusterClient, ClusterRequest, ClusterUnreachable, RequestRefused
from rayflink.launch.remote_handle import result_of_status
from rayflink.serving.json_requests import Refusal
from rayflink.table import StreamTableEnvironment

JOB = "a" * 32
HERE = "http://127.0.0.1:8081"


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a cluster have been started on this machine, whose process is this one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = started_cluster_file()
    file.parent.mkdir(parents=True)
    pid = os.getpid()
    file.write_text(json.dumps({"pid": pid, "begin": process_begin(pid), "url": HERE, "token": "secret"}))


def address(**options: str) -> ClusterAddress:
    settings = {key.replace("_", "."): value for key, value in options.items()}
    return ClusterAddress.of(Configuration.from_dict(settings))


@pytest.mark.parametrize(
    ("options", "url", "token"),
    [
        ({}, HERE, "secret"),
        ({"rest_address": "localhost"}, "http://localhost:8081", "secret"),
        ({"rest_port": "8081"}, HERE, "secret"),
        ({"rest_port": "9000"}, "http://127.0.0.1:9000", ""),
        ({"rest_address": "10.0.0.3"}, "http://10.0.0.3:8081", ""),
        ({"rest_address": "https://flink.example.org"}, "https://flink.example.org:443", ""),
        ({"rest_address": "10.0.0.3", "rest_token": "own"}, "http://10.0.0.3:8081", "own"),
        ({"rest_token": "own"}, HERE, "own"),
    ],
)
def test_a_token_is_shown_to_its_own_cluster_only(started: None, options: Any, url: str, token: str) -> None:
    chosen = address(**options)
    assert (chosen.url, chosen.token) == (url, token)
    assert "own" not in repr(chosen) and "secret" not in repr(chosen)


def test_without_a_cluster_the_remedy_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="`rayflink cluster start`, or set rest.address"):
        address()
    with pytest.raises(ConfigError, match="a host, or a URL without a path"):
        address(rest_address="http://10.0.0.3/flink")


def test_a_cluster_whose_process_has_ended_is_none(started: None) -> None:
    document = json.loads(started_cluster_file().read_text())
    started_cluster_file().write_text(json.dumps({**document, "begin": "1"}))
    with pytest.raises(ConfigError, match="no cluster was started on this machine"):
        address()


def test_statements_that_name_another_cluster_do_not_take_the_token_there() -> None:
    env = StreamExecutionEnvironment({"rest.address": "10.0.0.3", "rest.token": "own", "rest.port": "8081"})
    tables = StreamTableEnvironment.create(env)

    def token_after(*statements: str) -> str:
        for statement in statements:
            tables.execute_sql(statement)
        return ClusterAddress.of(env.get_configuration()).token

    assert token_after() == "own"
    assert token_after("SET 'rest.address' = 'elsewhere'", "RESET 'rest.token'") == ""
    assert token_after("SET 'rest.token' = 'of it'") == "of it"
    assert token_after("RESET") == "own"
    assert token_after("SET 'rest.port' = '9'", "RESET 'rest.token'") == ""


class Scripted(BaseHTTPRequestHandler):
    """Answers with what the test has written, in turn: a status and a body, or None to close the connection."""

    protocol_version = "HTTP/1.1"
    script: list[tuple[int, bytes] | None]
    seen: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        self.seen.append((self.path, self.headers.get("Authorization")))
        answer = self.script.pop(0)
        if answer is None:
            self.close_connection = True
            return
        status, body = answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if status == 302:
            self.send_header("Location", "http://elsewhere/")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


class Threaded(socketserver.ThreadingMixIn, HTTPServer):
    daemon_threads = True


@contextmanager
def answering(*script: tuple[int, bytes] | None) -> Iterator[tuple[ClusterClient, list[tuple[str, str | None]]]]:
    """Return a client of a server that gives these answers, and the requests that it has seen."""
    seen: list[tuple[str, str | None]] = []
    handler = type("Handler", (Scripted,), {"script": list(script), "seen": seen})
    server = Threaded(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    client = ClusterClient(ClusterAddress(f"http://127.0.0.1:{server.server_port}", "secret"), 5.0, 3, 0.001)
    try:
        yield client, seen
    finally:
        client.close()
        server.shutdown()
        server.server_close()
        thread.join()


REQUEST = ClusterRequest("GET", "/jobs", {"wait_s": 0})


def test_a_request_is_repeated_while_the_dispatcher_begins_anew() -> None:
    busy = 503, b'{"errors": ["the dispatcher begins"]}'
    with answering((200, b"1"), busy, busy, (200, b"2"), None, (200, b"3")) as (client, seen):
        assert [client.ask(REQUEST) for _ in range(3)] == [b"1", b"2", b"3"]
    assert {request for request in seen} == {("/jobs?wait_s=0", "Bearer secret")} and len(seen) == 6


def test_a_dispatcher_that_has_never_answered_is_asked_once_but_for_patient_requests() -> None:
    busy = 503, b"no JSON"
    with answering(busy) as (client, seen):
        with pytest.raises(RequestRefused, match="HTTP 503.*'no JSON'; ask again in a moment"):
            client.ask(REQUEST)
    with answering(busy, busy, (200, b"yes")) as (client, seen):
        assert client.ask(REQUEST, patient=True) == b"yes"
    with answering((200, b""), busy, (200, b"no")) as (client, seen):
        client.ask(REQUEST)
        with pytest.raises(RequestRefused):
            client.ask(REQUEST, is_wanted=lambda: False)


def test_no_token_goes_where_an_answer_refers_to() -> None:
    with answering((302, b"")) as (client, seen):
        with pytest.raises(RequestRefused, match="it refers to http://elsewhere/, and no token is sent elsewhere"):
            client.ask(REQUEST)


def test_an_error_of_the_server_has_its_messages_and_a_remedy() -> None:
    with answering((413, b'{"errors": ["the body has more than 5 bytes"]}'), (200, b"<html>")) as (client, _):
        with pytest.raises(RequestRefused, match="more than 5 bytes; send less, or raise rest.server.max-content"):
            client.ask(REQUEST)
        with pytest.raises(RequestRefused, match="was answered with '<html>'.*rest.address"):
            client.document(REQUEST)


@pytest.mark.parametrize(
    "error", [ClusterUnreachable(HERE, "refused", "start it"), RequestRefused(HERE, 401, "no token", "send one")]
)
def test_the_errors_survive_pickling(error: Exception) -> None:
    twin = pickle.loads(pickle.dumps(error))
    assert (str(twin), twin.args) == (str(error), error.args)


def test_an_answer_that_was_lost_is_given_again_and_not_to_another_client() -> None:
    clock = [0.0]
    answers, blocks = NumberedAnswers(lambda: clock[0]), iter([b"a", b"b", b"c"])
    assert [answers.answer(JOB, number, lambda: next(blocks)) for number in (1, 2, 2)] == [b"a", b"b", b"b"]
    with pytest.raises(Refusal, match="the job has another client"):
        answers.answer(JOB, 1, lambda: next(blocks))
    clock[0] = 1_000.0
    answers.answer("another", 1, lambda: b"")
    assert answers.answer(JOB, 1, lambda: next(blocks)) == b"c"


@pytest.mark.parametrize("attempt", [None, 0])
def test_rows_that_are_lost_before_the_first_that_comes_are_noticed(attempt: int | None) -> None:
    with pytest.raises(JobExecutionError, match="has lost 3 rows .* from row 0 on"):
        DrawnOnce(JOB, starts_anew=True).new([RowBlock("sink#0", 3, attempt, ["d"])])


def test_the_result_of_a_job_is_read_from_its_last_status() -> None:
    entry = {"exception": "ZeroDivisionError", "kind": "ZeroDivisionError", "traceback": "a\nb", "operator": "map",
             "line": "job.py:3", "record": "7", "place": {"subtask": 1}}  # fmt: skip
    status = {"jid": JOB, "name": "demo", "state": "FAILED", "timestamps": {"RUNNING": 5, "FAILED": 9},
              "vertices": [], "exceptions": [entry]}  # fmt: skip
    result = result_of_status(status, {"rows": 1})
    assert (result.runtime_ms, result.failed_subtask, result.accumulators) == (4, 1, {"rows": 1})
    assert result.failure is not None and (result.failure.operator, result.failure.record) == ("map", "7")
