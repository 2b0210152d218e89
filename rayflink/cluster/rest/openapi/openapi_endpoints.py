"""The description of all requests, as a document and as a page."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator

import msgspec

from rayflink.serving.json_requests import FileAnswer, JsonRequest, Role, Route

from .openapi_document import Schema, openapi_document

__all__ = ["OpenApiEndpoints"]

_METHODS = ("get", "post", "put", "patch", "delete")


class OpenApiEndpoints:
    """Answers with the description of routes, and of its own.

    Args:
        routes: all others.
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        self._document = openapi_document([*routes, *self.routes()])
        self._json = msgspec.json.encode(self._document)
        self._page = _page(self._document)

    def routes(self) -> list[Route]:
        """Return the functions of the requests."""
        return [
            Route("GET", "/openapi.json", self._as_json, Role.READ), Route("GET", "/openapi", self._as_page, Role.READ)
        ]  # fmt: skip

    def _as_json(self, request: JsonRequest) -> FileAnswer:
        """Return the description of all requests by OpenAPI 3."""
        return FileAnswer(self._json, "application/json")

    def _as_page(self, request: JsonRequest) -> FileAnswer:
        """Return the description of all requests as a page, without a script."""
        return FileAnswer(self._page, "text/html; charset=utf-8")


def _page(document: Schema) -> bytes:
    """Return a page with a table of all requests, and the types that these name."""
    rows = "".join(_rows(document))
    types = "".join(
        f'<h3 id="{html.escape(name)}">{html.escape(name)}</h3><pre>{_shown(schema)}</pre>'
        for name, schema in sorted(document["components"]["schemas"].items())
    )
    head = "<tr><th>Request</th><th>Role</th><th>What it does</th><th>Parameters</th><th>Body</th><th>Answer</th></tr>"
    title = f"rayflink {html.escape(document['info']['version'])}: REST interface"
    text = f"{html.escape(document['info']['description'])} <a href=/openapi.json>The same by OpenAPI 3.</a>"
    body = f"<h1>{title}</h1><p>{text}</p><table border=1 cellpadding=4>{head}{rows}</table><h2>Types</h2>{types}"
    return f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>{body}</html>".encode()


def _rows(document: Schema) -> Iterator[str]:
    for path, operations in document["paths"].items():
        for method in _METHODS:
            if method not in operations:
                continue
            operation = operations[method]
            names = [parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "query"]
            answer = next(iter(operation["responses"].values()))
            cells = [
                f"<code>{method.upper()} {html.escape(path)}</code>", operation["x-role"].lower(),
                html.escape(operation["summary"]), html.escape(", ".join(names)),
                _reference(operation.get("requestBody", {})), _reference(answer),
            ]  # fmt: skip
            yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _reference(part: Schema) -> str:
    """Return a link to the type of a body, or what it is."""
    schema = part.get("content", {}).get("application/json", {}).get("schema", {})
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    if name:
        return f'<a href="#{html.escape(name)}">{html.escape(name)}</a>'
    return f"<code>{html.escape(json.dumps(schema))}</code>" if schema else ""


def _shown(schema: Schema) -> str:
    return html.escape(json.dumps(schema, indent=2))
