"""Requests to a server on loopback: methods, files, uploads, headers, the audit, and slow clients."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import os
import socket
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rayflink.serving import bounded_connections, request_bodies
from rayflink.serving.audit_log import AuditEntry, AuditLog, AuditSettings
from rayflink.serving.bounded_connections import BoundedSending
from rayflink.serving.http_server import HttpServer
from rayflink.serving.json_application import JsonApplication
from rayflink.serving.json_requests import Answer, Caller, FileAnswer, JsonRequest, Refusal, Role, Route, StreamAnswer
from rayflink.serving.server_settings import AccessSettings, ServerSettings, TlsSettings

TOKEN = "a-token-of-ann-0001"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
uploads: list[Path] = []


def show(request: JsonRequest) -> Answer:
    return {"job": request.parameters["job"], "caller": request.caller.name, "headers": dict(request.headers)}


def cancel(request: JsonRequest) -> Answer:
    if request.query.get("mode") == "fails":
        raise ValueError("postgres://me:hidden@host/db does not answer")
    if request.query.get("mode") == "refused":
        raise Refusal(409, "it has ended")
    return {}


def submit(request: JsonRequest) -> Answer:
    assert request.upload is not None
    uploads.append(request.upload)
    return {"jobid": "b" * 32, "size": request.upload.stat().st_size}


def log_file(request: JsonRequest) -> Answer:
    if request.query.get("whole"):
        return FileAnswer(b"<p>", "text/html; charset=utf-8", {"Cache-Control": "max-age=60"})
    return StreamAnswer((b"line %d\n" % number for number in range(3)), "text/plain; charset=utf-8")


ROUTES = [
    Route("GET", "/jobs/{job}", show, Role.READ),
    Route("PATCH", "/jobs/{job}", cancel, Role.OPERATE),
    Route("PUT", "/jobs/{job}/wanted", cancel, Role.OPERATE),
    Route("POST", "/rayflink/jobs", submit, Role.SUBMIT, takes_upload=True),
    Route("GET", "/log", log_file, Role.READ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    path: Path = tmp_path_factory.mktemp("serving")
    (path / "uploads").mkdir()
    return path


@pytest.fixture(scope="module")
def settings(folder: Path) -> ServerSettings:
    access = AccessSettings(guest_role=Role.OPERATE, origins=["https://a.example.org"])
    return ServerSettings(
        "127.0.0.1", 0, TOKEN, most_bytes=1_000, most_upload_bytes=100_000, access=access,
        upload_folder=str(folder / "uploads"), audit=AuditSettings(str(folder / "audit.jsonl")),
    )  # fmt: skip


@pytest.fixture(scope="module")
def server(settings: ServerSettings) -> Iterator[HttpServer]:
    running = HttpServer(settings, JsonApplication(settings, ROUTES))
    running.start()
    yield running
    running.stop()


def ask(
    server: HttpServer, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", int(server.url.rpartition(":")[2]), timeout=10)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def test_every_method_is_answered_or_refused_with_those_that_are(server: HttpServer) -> None:
    assert ask(server, "GET", "/jobs/a/")[0] == 200
    status, headers, body = ask(server, "HEAD", "/jobs/a")
    assert (status, body) == (200, b"") and int(headers["content-length"]) > 20
    for method, path in (("PATCH", "/jobs/a"), ("PUT", "/jobs/a/wanted")):
        assert ask(server, method, path, "{}") [0] == 200
    for method in ("POST", "DELETE", "TRACE", "NONSENSE"):
        status, headers, body = ask(server, method, "/jobs/a")
        assert (status, headers["allow"]) == (405, "GET, HEAD, OPTIONS, PATCH") and b"Method not allowed" in body
    status, headers, _ = ask(server, "OPTIONS", "/jobs/a")
    assert (status, headers["allow"]) == (204, "GET, HEAD, OPTIONS, PATCH")
    assert "access-control-allow-methods" not in headers
    asked = {"Origin": "https://a.example.org", "Access_Control_Request_Method": "PATCH"}
    assert ask(server, "OPTIONS", "/jobs/a", **asked)[1]["access-control-allow-origin"] == "https://a.example.org"
    assert ask(server, "GET", "/nothing")[::2] == (404, b'{"errors":["Not found: /nothing"]}')


def test_every_answer_has_the_headers_that_protect_pages(server: HttpServer) -> None:
    for method, path in (("GET", "/jobs/a"), ("GET", "/log"), ("GET", "/nothing"), ("POST", "/log")):
        headers = ask(server, method, path)[1]
        assert headers["x-content-type-options"] == "nosniff" and headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store" and "server" not in headers
        assert "access-control-allow-origin" not in headers
    page = ask(server, "GET", "/log?whole=1")[1]
    assert page["cache-control"] == "max-age=60" and "script-src 'self'" in page["content-security-policy"]


def test_files_come_in_pieces_and_in_a_type_that_the_client_takes(server: HttpServer) -> None:
    status, headers, body = ask(server, "GET", "/log")
    assert (status, body) == (200, b"line 0\nline 1\nline 2\n") and headers["content-type"].startswith("text/plain")
    assert ask(server, "GET", "/log", Accept="text/html, application/*")[0] == 406
    assert ask(server, "GET", "/jobs/a", Accept="text/plain, */*;q=0.1")[0] == 200


def test_functions_see_who_asks_and_no_secret_header(server: HttpServer) -> None:
    status, _, body = ask(server, "GET", "/jobs/a", Cookie="x=secret", **BEARER)
    answer = json.loads(body)
    assert (status, answer["caller"]) == (200, "token") and not {"authorization", "cookie"} & set(answer["headers"])


def test_an_upload_is_a_file_as_long_as_its_request_and_is_bounded(server: HttpServer, folder: Path) -> None:
    status, _, body = ask(server, "POST", "/rayflink/jobs", b"x" * 90_000, **BEARER)
    assert (status, json.loads(body)["size"]) == (200, 90_000)
    assert uploads and not uploads[-1].exists() and uploads[-1].parent == folder / "uploads"
    assert ask(server, "POST", "/rayflink/jobs", b"x" * 90_000)[0] == 401
    for content in (b"x" * 100_001, iter([b"x" * 60_000] * 2)):
        status, _, body = ask(server, "POST", "/rayflink/jobs", content, **BEARER)
        assert status == 413 and b"rest.server.max-content-length" in body
    assert ask(server, "PATCH", "/jobs/a", b"x" * 1_001)[0] == 413
    assert not os.listdir(folder / "uploads")


def test_an_error_of_a_function_shows_its_message_alone(server: HttpServer) -> None:
    status, _, body = ask(server, "PATCH", "/jobs/a?mode=fails")
    assert status == 500
    assert json.loads(body)["errors"] == ["Internal server error.",
                                          "ValueError: postgres://me:******@host/db does not answer"]  # fmt: skip


def test_each_operation_is_a_line_of_the_audit(server: HttpServer, folder: Path, caplog: Any) -> None:
    path = folder / "audit.jsonl"
    size = path.stat().st_size if path.exists() else 0
    with caplog.at_level(logging.INFO, "rayflink.audit"):
        ask(server, "GET", "/jobs/a")
        ask(server, "PATCH", f"/jobs/{'a' * 32}?mode=cancel&token=hidden")
        ask(server, "PATCH", "/jobs/a%0A%7B?mode=refused", **BEARER)
        ask(server, "POST", "/rayflink/jobs", b"program", **BEARER)
        ask(server, "POST", "/rayflink/jobs", b"program", Authorization="Bearer hidden-and-wrong")
        ask(server, "GET", "/jobs/a", Origin="http://evil.example.org")
        ask(server, "PATCH", "/jobs/a?mode=fails")
    lines = path.read_text()[size:].splitlines()
    assert lines == [record.message for record in caplog.records if record.name == "rayflink.audit"]
    assert "hidden" not in "".join(lines) and path.stat().st_mode & 0o777 == 0o600
    shown = ("token", "role", "method", "job", "outcome", "status")
    assert [tuple(json.loads(line)[name] for name in shown) for line in lines] == [
        (None, "OPERATE", "PATCH", "a" * 32, "done", 200),
        ("token", "SUBMIT", "PATCH", "a\n{", "failed", 409),
        ("token", "SUBMIT", "POST", "b" * 32, "done", 200),
        (None, "NONE", "POST", None, "refused", 401),
        (None, "NONE", "GET", "a", "refused", 403),
        (None, "OPERATE", "PATCH", "a", "failed", 500),
    ]
    first = json.loads(lines[0])
    assert first["query"] == {"mode": "cancel", "token": "******"} and first["address"] == "127.0.0.1"
    assert first["duration_ms"] >= 0 and first["time"].endswith("Z")


def test_a_proxy_that_was_not_named_does_not_choose_the_address(server: HttpServer, folder: Path) -> None:
    ask(server, "PATCH", "/jobs/a", X_Forwarded_For="10.9.9.9", X_Forwarded_Proto="https")
    assert json.loads((folder / "audit.jsonl").read_text().splitlines()[-1])["address"] == "127.0.0.1"


def test_a_full_file_of_the_audit_begins_anew_and_a_full_disk_is_counted(tmp_path: Path) -> None:
    entry = AuditEntry(0, Caller("ann", Role.OPERATE, "::1"), "PATCH", "/jobs/a", {}, "a", 200, "", 1.0)
    audit = AuditLog(AuditSettings(str(tmp_path / "audit"), 600, 2))
    for _ in range(20):
        audit.write(entry)
    audit.close()
    assert sorted(os.listdir(tmp_path)) == ["audit", "audit.1", "audit.2"]
    assert all(path.stat().st_mode & 0o777 == 0o600 and path.stat().st_size <= 600 for path in tmp_path.iterdir())
    full = AuditLog(AuditSettings("/dev/full"))
    full.write(entry)
    assert full.failures == 1


def test_a_client_that_sends_no_head_is_closed(settings: ServerSettings, monkeypatch: Any) -> None:
    monkeypatch.setattr(bounded_connections.bounded_protocol, "__defaults__", (0.05,))
    running = HttpServer(replace(settings, audit=AuditSettings()), JsonApplication(settings, ROUTES))
    running.start()
    try:
        address = "127.0.0.1", int(running.url.rpartition(":")[2])
        for begin in (b"", b"GET /jobs/a HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "):
            with socket.create_connection(address, 10) as client:
                client.sendall(begin)
                try:
                    assert client.recv(1) == b""
                except ConnectionResetError:
                    pass
        with socket.create_connection(address, 10) as client:
            client.sendall(b"GET /log HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert client.recv(12) == b"HTTP/1.1 200"
    finally:
        running.stop()


def test_a_body_that_does_not_come_is_refused_in_time(server: HttpServer, monkeypatch: Any) -> None:
    monkeypatch.setattr(request_bodies, "BODY_S", 0.05)
    for path, headers in (("/jobs/a/wanted", b""), ("/rayflink/jobs", f"Authorization: Bearer {TOKEN}\r\n".encode())):
        method = b"PUT" if path.endswith("wanted") else b"POST"
        with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), 10) as client:
            client.sendall(b"%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: x\r\n%sContent-Length: 9\r\n\r\n{"
                           % (method, path.encode(), headers))  # fmt: skip
            assert client.recv(12) == b"HTTP/1.1 408"


def test_an_answer_that_is_not_taken_is_cut_off(monkeypatch: Any) -> None:
    monkeypatch.setattr(bounded_connections, "SEND_S", 0.01)
    paths = []

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        paths.append(scope["path"])
        await send({"type": "http.response.start"})

    async def stuck(message: Any) -> None:
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        asyncio.run(BoundedSending(answer)({"type": "http", "path": "/jobs/"}, None, stuck))  # type: ignore[arg-type]
    assert paths == ["/jobs"]


@pytest.mark.slow
def test_clients_show_certificates_and_old_versions_of_tls_are_refused(tmp_path: Path) -> None:
    def certificate(name: str) -> str:
        file = str(tmp_path / f"{name}.pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
             file, "-out", f"{file}.crt", "-days", "2", "-subj", f"/CN={name}", "-addext",
             "subjectAltName=DNS:localhost,IP:127.0.0.1"],
            check=True, capture_output=True,
        )  # fmt: skip
        Path(file).write_text(Path(file).read_text() + Path(f"{file}.crt").read_text())
        return file

    own, friend, stranger = map(certificate, ("own", "friend", "stranger"))
    tls = TlsSettings(own, own, authorities=f"{friend}.crt", least="TLSv1.3")
    settings = ServerSettings("127.0.0.1", 0, TOKEN, tls, access=AccessSettings(guest_role=Role.READ))
    running = HttpServer(settings, JsonApplication(settings, ROUTES))
    running.start()

    def status(shown: str | None, most: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> int:
        context = ssl.create_default_context(cafile=f"{own}.crt")
        context.maximum_version = most
        if shown is not None:
            context.load_cert_chain(shown)
        port = int(running.url.rpartition(":")[2])
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context)
        try:
            connection.request("GET", "/jobs/a")
            return connection.getresponse().status
        finally:
            connection.close()

    try:
        assert running.url.startswith("https://") and status(friend) == 200
        for shown, most in ((None, ssl.TLSVersion.TLSv1_3), (stranger, ssl.TLSVersion.TLSv1_3),
                            (friend, ssl.TLSVersion.TLSv1_2)):  # fmt: skip
            with pytest.raises((ssl.SSLError, ConnectionError)):
                status(shown, most)
    finally:
        running.stop()
