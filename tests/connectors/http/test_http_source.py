"""Webhooks: a request is answered once it is safe, and its records arrive at least once."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from benchmarks.servers.kafka_broker import free_ports
from rayflink.common.connector_base.delivery_guarantee import DeliveryGuarantee
from rayflink.common.connector_base.source import PENDING, ReaderContext, Source
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import rows_of
from rayflink.common.serialization import SimpleStringSchema
from rayflink.datastream.connectors.http import HttpEndpoint, HttpError, HttpSource
from rayflink.state.clock import SystemClock
from rayflink.testing import SourceSubject, check_source


def _post(port: int, body: bytes, path: str = "/", **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


class Webhook:
    """A reader with its server."""

    def __init__(self, source: HttpSource[str]) -> None:
        self.metrics = MetricGroup()
        self.reader = source.create_reader(ReaderContext(clock=SystemClock(), metrics=self.metrics))
        self.reader.add_splits([source.first_split()])
        self.port: int = self.reader._server.server_port  # type: ignore[attr-defined]

    def poll(self) -> list[Any]:
        """Poll until there is a batch."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            batch = self.reader.poll(2)
            if batch is not PENDING:
                return list(rows_of(batch))
            time.sleep(0.001)
        raise AssertionError("no request arrived")


@pytest.fixture
def start() -> Iterator[Callable[..., Webhook]]:
    started: list[Webhook] = []

    def begin(waits_for_checkpoint: bool = False, separator: bytes | None = None, **limits: Any) -> Webhook:
        endpoint = HttpEndpoint(0, **limits)
        webhook = Webhook(HttpSource(endpoint, SimpleStringSchema(), separator, waits_for_checkpoint, timeout_s=20))
        started.append(webhook)
        return webhook

    yield begin
    for webhook in started:
        webhook.reader.close()


def test_a_request_becomes_records(start: Callable[..., Webhook]) -> None:
    webhook = start(separator=b"\n")
    assert _post(webhook.port, b"a\nb\nc\n") == (204, b"")
    assert webhook.poll() == ["a", "b"] and webhook.poll() == ["c"]


def test_the_answer_waits_for_the_checkpoint_that_has_the_whole_request(start: Callable[..., Webhook]) -> None:
    webhook = start(waits_for_checkpoint=True, separator=b",")
    answers: list[int] = []
    client = threading.Thread(target=lambda: answers.append(_post(webhook.port, b"a,b,c")[0]))
    client.start()
    assert webhook.poll() == ["a", "b"]
    half = webhook.reader.snapshot_state()
    assert webhook.poll() == ["c"]
    whole = webhook.reader.snapshot_state()
    webhook.reader.notify_checkpoint_complete(1, half)
    client.join(0.05)
    assert not answers, "a part of the request is in no checkpoint"
    webhook.reader.notify_checkpoint_complete(2, whole)
    client.join(20)
    assert answers == [204]


def test_a_reader_that_closes_answers_that_nothing_is_safe(start: Callable[..., Webhook]) -> None:
    webhook = start(waits_for_checkpoint=True)
    answers: list[int] = []
    client = threading.Thread(target=lambda: answers.append(_post(webhook.port, b"a")[0]))
    client.start()
    assert webhook.poll() == ["a"]
    webhook.reader.close()
    client.join(20)
    assert answers == [503]


@pytest.mark.parametrize(
    ("limits", "request_", "status"),
    [
        ({}, {"body": b"\xff"}, 400),
        ({"token": "secret"}, {"body": b"a"}, 401),
        ({"token": "secret"}, {"body": b"a", "Authorization": "Bearer other"}, 401),
        ({"token": "secret"}, {"body": b"a", "Authorization": "Bearer secret"}, 204),
        ({"path": "/in"}, {"body": b"a"}, 404),
        ({"path": "/in"}, {"body": b"a", "path": "/in?from=x"}, 204),
        ({"most_bytes": 3}, {"body": b"abcd"}, 413),
    ],
)
def test_what_is_no_good_request_is_answered(
    start: Callable[..., Webhook], limits: Any, request_: Any, status: int
) -> None:
    webhook = start(**limits)
    assert _post(webhook.port, **request_)[0] == status
    assert webhook.metrics.counter("numRecordsInErrors").get_count() == (status == 400)
    if status != 204:
        assert webhook.reader.poll(9) is PENDING


def test_too_many_requests_are_rejected_and_counted(start: Callable[..., Webhook]) -> None:
    webhook = start(most_waiting=2)
    assert [_post(webhook.port, b"a")[0] for _ in range(3)] == [204, 204, 503]
    assert webhook.metrics.counter("numRequestsRejected").get_count() == 1
    webhook.poll()
    assert _post(webhook.port, b"a")[0] == 204


def test_a_request_without_the_token_is_refused_before_its_body_is_read(start: Callable[..., Webhook]) -> None:
    webhook = start(token="secret")
    with socket.create_connection(("127.0.0.1", webhook.port), timeout=5) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nContent-Length: 200000\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 401")
        connection.sendall(bytes(200_000))
        connection.sendall(b"POST / HTTP/1.1\r\nContent-Length: 1\r\nAuthorization: Bearer secret\r\n\r\nx")
        assert connection.recv(1000).startswith(b"HTTP/1.1 204")
    assert webhook.poll() == ["x"]


def test_a_port_in_use_is_named(start: Callable[..., Webhook]) -> None:
    port = start().port
    with pytest.raises(HttpError, match=f"cannot listen on 127.0.0.1:{port} .*choose a free port"):
        Webhook(HttpSource(HttpEndpoint(port), SimpleStringSchema()))


def test_the_token_is_in_no_representation() -> None:
    assert "secret" not in repr(HttpEndpoint(80, token="secret"))
    with pytest.raises(HttpError, match="is no endpoint"):
        HttpEndpoint(-1)


@pytest.mark.slow
def test_the_source_keeps_its_promise() -> None:
    (port,) = free_ports(1)
    stopping = threading.Event()
    clients = ThreadPoolExecutor(16)

    def post(number: int) -> None:
        while not stopping.is_set():
            try:
                if _post(port, str(number).encode())[0] == 204:
                    return
            except OSError:
                pass
            stopping.wait(0.02)

    class Hook(SourceSubject):
        guarantee = DeliveryGuarantee.AT_LEAST_ONCE

        def create_source(self) -> Source:
            return HttpSource(HttpEndpoint(port), SimpleStringSchema())

        def write(self, numbers: Sequence[int]) -> None:
            for number in numbers:
                clients.submit(post, number)

    try:
        check_source(Hook, seeds=range(3), records=60)
    finally:
        stopping.set()
        clients.shutdown()
