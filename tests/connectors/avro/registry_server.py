"""A schema registry for tests: Confluent's HTTP API on loopback, with credentials and failures on demand."""

from __future__ import annotations

import base64
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

_PROMOTED = {("int", "long"), ("int", "float"), ("int", "double"), ("long", "float"), ("long", "double"),
             ("float", "double"), ("string", "bytes"), ("bytes", "string")}  # fmt: skip


class Refused(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.status = code, code if code < 1000 else code // 100


class RegistryServer:
    """The registry; `with RegistryServer() as registry: registry.url`.

    Attributes:
        user_info: "user:password" that requests must bring; None: none is wanted.
        failures: HTTP statuses of the next answers, in place of what they would be.
        requests: method and path of each request.
    """

    def __init__(self) -> None:
        self.user_info: str | None = None
        self.token: str | None = None
        self.failures: list[int] = []
        self.requests: list[str] = []
        self.schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.compatibility: dict[str, str] = {"": "BACKWARD"}
        self.mode = "READWRITE"
        self._lock = threading.Lock()

    def __enter__(self) -> RegistryServer:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def answer(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(size)) if size else {}
                status, found = registry.handle(self.command, self.path, body, self.headers.get("Authorization"))
                data = json.dumps(found).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = answer

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def handle(self, method: str, path: str, body: Any, authorization: str | None) -> tuple[int, Any]:
        with self._lock:
            self.requests.append(f"{method} {path}")
            if self.failures:
                status = self.failures.pop(0)
                return status, {"error_code": status, "message": "a failure on demand"}
            wanted = None
            if self.user_info is not None:
                wanted = f"Basic {base64.b64encode(self.user_info.encode()).decode()}"
            if self.token is not None:
                wanted = f"Bearer {self.token}"
            if wanted is not None and authorization != wanted:
                return 401, {"error_code": 401, "message": "Unauthorized"}
            try:
                return 200, self._route(method, path.partition("?")[0], body)
            except Refused as error:
                return error.status, {"error_code": error.code, "message": str(error)}

    def _route(self, method: str, path: str, body: Any) -> Any:
        parts = [unquote(part) for part in path.strip("/").split("/")]
        match method, parts:
            case "GET", ["subjects"]:
                return list(self.subjects)
            case "GET", ["subjects", subject, "versions"]:
                return list(range(1, len(self._versions(subject)) + 1))
            case "GET", ["subjects", subject, "versions", version]:
                return self._version(subject, version)
            case "POST", ["subjects", subject, "versions"]:
                return {"id": self.register(subject, body)}
            case "POST", ["subjects", subject]:
                return self._looked_up(subject, body)
            case "GET", ["schemas", "ids", number]:
                return self._schema(int(number))
            case "GET", ["config", *subject]:
                return {"compatibilityLevel": self._compatibility("".join(subject))}
            case "PUT", ["config", *subject]:
                self.compatibility["".join(subject)] = body["compatibility"]
                return body
            case "GET", ["mode"]:
                return {"mode": self.mode}
            case "PUT", ["mode"]:
                self.mode = body["mode"]
                return body
            case "POST", ["compatibility", "subjects", subject, "versions", "latest"]:
                return {"is_compatible": self._is_compatible(subject, body)}
        raise Refused(404, "HTTP 404 Not Found")

    def register(self, subject: str, body: dict[str, Any]) -> int:
        """Register a schema as a request does; return its id."""
        if self.mode == "READONLY":
            raise Refused(42205, f"Subject {subject} is in read-only mode")
        content = {key: body[key] for key in ("schema", "schemaType", "references") if key in body}
        number = self.schemas.index(content) + 1 if content in self.schemas else 0
        if number not in self.subjects.get(subject, []):
            if subject in self.subjects and not self._is_compatible(subject, body):
                raise Refused(409, "Schema being registered is incompatible with an earlier schema")
            if not number:
                self.schemas.append(content)
                number = len(self.schemas)
            self.subjects.setdefault(subject, []).append(number)
        return number

    def _versions(self, subject: str) -> list[int]:
        if subject not in self.subjects:
            raise Refused(40401, f"Subject '{subject}' not found.")
        return self.subjects[subject]

    def _version(self, subject: str, version: str) -> dict[str, Any]:
        versions = self._versions(subject)
        number = len(versions) if version == "latest" else int(version)
        if not 1 <= number <= len(versions):
            raise Refused(40402, f"Version {version} not found.")
        schema_id = versions[number - 1]
        return {"subject": subject, "version": number, "id": schema_id, **self.schemas[schema_id - 1]}

    def _looked_up(self, subject: str, body: dict[str, Any]) -> dict[str, Any]:
        for version, schema_id in enumerate(self._versions(subject), 1):
            if json.loads(self.schemas[schema_id - 1]["schema"]) == json.loads(body["schema"]):
                return self._version(subject, str(version))
        raise Refused(40403, "Schema not found")

    def _schema(self, number: int) -> dict[str, Any]:
        if not 1 <= number <= len(self.schemas):
            raise Refused(40403, f"Schema {number} not found")
        return self.schemas[number - 1]

    def _compatibility(self, subject: str) -> str:
        return self.compatibility.get(subject, self.compatibility[""])

    def _is_compatible(self, subject: str, body: dict[str, Any]) -> bool:
        if self._compatibility(subject) == "NONE":
            return True
        last = self.schemas[self._versions(subject)[-1] - 1]
        return can_read(json.loads(body["schema"]), json.loads(last["schema"]))


def can_read(reader: Any, writer: Any) -> bool:
    """Return whether one schema can read what another wrote, of the records and plain types that the tests use."""
    if isinstance(writer, list):
        return all(can_read(reader, branch) for branch in writer)
    if isinstance(reader, list):
        return any(can_read(branch, writer) for branch in reader)
    kinds = [part["type"] if isinstance(part, dict) else part for part in (reader, writer)]
    if kinds == ["record", "record"]:
        fields = {field["name"]: field["type"] for field in writer["fields"]}
        return all(
            can_read(field["type"], fields[field["name"]]) if field["name"] in fields else "default" in field
            for field in reader["fields"]
        )
    return kinds[0] == kinds[1] or (kinds[1], kinds[0]) in _PROMOTED


def without_secret(text: str, *secrets: str) -> bool:
    """Return whether a text has none of some secrets, also not as base64."""
    return not any(re.search(re.escape(secret), text) or base64.b64encode(secret.encode()).decode() in text
                   for secret in secrets)  # fmt: skip
