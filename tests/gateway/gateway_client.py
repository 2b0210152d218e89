"""A client of Flink's gateway protocol, for tests: it asks ours and Flink's alike."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from typing import Any

LIMIT_S = 60
POLL_S = 0.02


class Failed(Exception):
    """The gateway answered with an error."""

    def __init__(self, status: int, errors: list[str]) -> None:
        super().__init__(status, errors)
        self.status, self.errors = status, errors


class GatewayClient:
    """One session of a gateway.

    Args:
        url: of the gateway.
        properties: of the session.
        version: of the protocol.
        token: None: none is sent.
    """

    def __init__(
        self, url: str, properties: dict[str, str] | None = None, version: str = "v4", token: str | None = None
    ) -> None:
        self.url, self.version, self._token = url, version, token
        opened = self.ask("POST", f"/{version}/sessions", {"sessionName": "test", "properties": properties or {}})
        self.handle = opened["sessionHandle"]
        self.path = f"/{version}/sessions/{self.handle}"

    def ask(self, method: str, path: str, document: Any = None) -> dict[str, Any]:
        return ask(method, self.url + path, document, self._token)

    def submit(self, statement: str, **more: Any) -> str:
        """Send a statement and return the path of its operation."""
        answer = self.ask("POST", f"{self.path}/statements", {"statement": statement, **more})
        return f"{self.path}/operations/{answer['operationHandle']}"

    def pages(self, operation: str, form: str = "JSON") -> Any:
        """Yield the answers that have rows, and the last."""
        path, deadline = f"{operation}/result/0?rowFormat={form}", time.monotonic() + LIMIT_S
        while True:
            page = self.ask("GET", path)
            if page["resultType"] == "NOT_READY" or page["resultType"] == "PAYLOAD" and not page["results"]["data"]:
                assert time.monotonic() < deadline, f"no rows within {LIMIT_S} s"
                time.sleep(POLL_S)
            else:
                yield page
            if page["resultType"] == "EOS":
                return
            path = page["nextResultUri"]

    def run(self, statement: str, form: str = "JSON", **more: Any) -> dict[str, Any]:
        """Run a statement and return its answers as one."""
        operation = self.submit(statement, **more)
        pages = list(self.pages(operation, form))
        rows = [[row["kind"], *row["fields"]] for page in pages for row in page["results"]["data"]]
        self.ask("DELETE", f"{operation}/close")
        last = pages[-1]
        columns = [[column["name"], column["logicalType"]] for column in last["results"]["columns"]]
        return {
            "columns": columns, "rows": rows, "kind": last["resultKind"], "is_query": last["isQueryResult"],
            "job": last.get("jobID"),
        }  # fmt: skip

    def rows(self, statement: str) -> list[list[Any]]:
        return [row[1:] for row in self.run(statement)["rows"]]


def ask(method: str, url: str, document: Any = None, token: str | None = None, **more: Any) -> dict[str, Any]:
    """Send one request, and return the JSON of its answer; raises `Failed` for an error."""
    body = None if document is None else document if isinstance(document, bytes) else json.dumps(document).encode()
    headers = {"Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(url, body, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=LIMIT_S, **more) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            raise Failed(error.code, json.load(error)["errors"]) from None
