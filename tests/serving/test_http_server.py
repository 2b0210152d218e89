"""A server: who is answered, what is bounded, TLS, and how it ends."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rayflink.common.errors import ConfigError
from rayflink.serving.http_server import HttpServer, ServerError
from rayflink.serving.json_application import JsonApplication
from rayflink.serving.json_requests import FileAnswer, JsonRequest, Refusal, Role, Route
from rayflink.serving.server_settings import ServerSettings, TlsSettings

Start = Callable[[ServerSettings], HttpServer]


def echo(request: JsonRequest) -> dict[str, Any]:
    if request.query.get("fails"):
        raise Refusal(418, "no tea")
    return {"name": request.parameters["name"], "document": request.document()}


def page(request: JsonRequest) -> FileAnswer:
    headers = {"etag": request.headers.get("if-none-match", "")}
    return FileAnswer(b"<p>hello", "text/html; charset=utf-8", headers, 203)


@pytest.fixture
def start() -> Iterator[Start]:
    servers = []

    def run(settings: ServerSettings) -> HttpServer:
        routes = [Route("POST", "/echo/{name}", echo), Route("GET", "/page", page, Role.NONE)]
        servers.append(HttpServer(settings, JsonApplication(settings, routes)))
        servers[-1].start()
        return servers[-1]

    yield run
    for server in servers:
        server.stop()


def post(url: str, body: bytes = b"{}", headers: dict[str, str] | None = None, **more: Any) -> tuple[int, Any]:
    request = urllib.request.Request(url, body, headers or {}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=10, **more) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)["errors"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "gateway.example.org", ""])
def test_an_address_that_others_reach_is_refused_without_a_token(host: str) -> None:
    with pytest.raises(ConfigError, match="a loopback address where there is no token"):
        ServerSettings(host, 0)
    settings = ServerSettings(host, 0, token="abc")
    assert "abc" not in repr(settings)


def test_requests_are_answered_refused_and_counted(start: Start) -> None:
    url = start(ServerSettings("127.0.0.1", 0, most_bytes=100)).url
    assert post(f"{url}/echo/a", b'{"x": 1}') == (200, {"name": "a", "document": {"x": 1}})
    assert post(f"{url}/echo/a?fails=1") == (418, ["no tea"])
    assert post(f"{url}/nothing") == (404, ["Not found: /nothing"])
    assert post(f"{url}/echo/a", b"[1]")[0] == 400
    assert post(f"{url}/echo/a", b" " * 101) == (
        413, ["the body has more than 100 bytes; send less, or raise rest.request.max-size"],
    )  # fmt: skip


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example.org"}, {"Host": "evil.example.org:80"}, {"Origin": "http://evil.example.org"}]
)
def test_a_page_of_a_browser_is_not_answered_without_a_token(start: Start, headers: dict[str, str]) -> None:
    status, [message] = post(f"{start(ServerSettings('127.0.0.1', 0)).url}/echo/a", headers=headers)
    assert status == 403 and "set a token" in message


@pytest.mark.parametrize("sent", [None, "", "Bearer", "Bearer wrong", "Basic correct", "Bearer correct2"])
def test_only_the_token_opens_a_server_that_has_one(start: Start, sent: str | None) -> None:
    url = f"{start(ServerSettings('127.0.0.1', 0, 'correct')).url}/echo/a"
    assert post(url, headers={} if sent is None else {"Authorization": sent})[0] == 401
    headers = {"Authorization": "Bearer correct", "Host": "gateway.example.org", "Origin": "https://example.org"}
    assert post(url, headers=headers)[0] == 200


def test_a_file_is_answered_without_a_token_with_its_type_status_and_headers(start: Start) -> None:
    url = start(ServerSettings("127.0.0.1", 0, "correct")).url
    request = urllib.request.Request(f"{url}/page", headers={"If-None-Match": '"x"'})
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert (answer.status, answer.read(), answer.headers["etag"]) == (203, b"<p>hello", '"x"')
        assert answer.headers["content-type"] == "text/html; charset=utf-8"


def test_connections_send_small_answers_at_once() -> None:
    settings = ServerSettings("127.0.0.1", 0)
    listening = HttpServer(settings, JsonApplication(settings, []))._listening()
    assert listening.proto == socket.IPPROTO_TCP, "asyncio turns Nagle's algorithm off for TCP alone"
    listening.close()


def test_a_port_that_is_taken_and_a_wrong_certificate_are_named(start: Start, tmp_path: Any) -> None:
    taken = start(ServerSettings("127.0.0.1", 0)).url.rpartition(":")[2]
    with pytest.raises(ServerError, match=f"cannot listen on 127.0.0.1:{taken}.*give another port"):
        start(ServerSettings("127.0.0.1", int(taken)))
    (tmp_path / "c.pem").write_text("nonsense")
    pair = str(tmp_path / "c.pem"), str(tmp_path / "k.pem")
    with pytest.raises(ConfigError, match="a certificate in PEM"):
        start(ServerSettings("127.0.0.1", 0, tls=TlsSettings(*pair)))


@pytest.mark.parametrize("package", ["uvicorn", "starlette.applications"])
def test_a_missing_package_is_named_with_its_extra(start: Start, monkeypatch: Any, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ServerError, match=r"pip install 'rayflink\[gateway\]'"):
        start(ServerSettings("127.0.0.1", 0))


@pytest.mark.slow
def test_requests_and_answers_are_encrypted(start: Start, tmp_path: Any) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
               "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    server = start(ServerSettings("localhost", 0, tls=TlsSettings(str(certificate), str(key))))
    assert server.url.startswith("https://localhost:")
    trusted = ssl.create_default_context(cafile=str(certificate))
    assert post(f"{server.url}/echo/a", context=trusted)[0] == 200
    with pytest.raises(urllib.error.URLError, match="certificate verify failed"):
        post(f"{server.url}/echo/a")


def test_a_server_that_is_stopped_answers_what_it_has_begun(start: Start) -> None:
    begun, goes_on = threading.Event(), threading.Event()

    def answer(request: JsonRequest) -> dict[str, Any]:
        begun.set()
        goes_on.wait(10)
        return {"done": True}

    settings = ServerSettings("127.0.0.1", 0)
    server = HttpServer(settings, JsonApplication(settings, [Route("POST", "/slow", answer)]))
    server.start()
    answers: list[Any] = []
    client = threading.Thread(target=lambda: answers.append(post(f"{server.url}/slow")))
    client.start()
    begun.wait(10)
    stopping = threading.Thread(target=server.stop)
    stopping.start()
    goes_on.set()
    stopping.join(10)
    client.join(10)
    assert answers == [(200, {"done": True})]
    with pytest.raises(OSError), socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), 1):
        pass
