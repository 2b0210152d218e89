"""The description of all requests by OpenAPI 3, made from the routes and the types of their functions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, get_args, get_type_hints

import msgspec

from rayflink.serving.json_requests import Answer, FileAnswer, Role, Route, StreamAnswer
from rayflink.version import __version__

from ..typed_requests import VERSION, TypedEndpoint

__all__ = ["openapi_document"]

Schema: TypeAlias = "dict[str, Any]"
"""A JSON object."""
_PARAMETER = re.compile(r"\{(\w+)\}")
_REFERENCES = "#/components/schemas/{name}"
_HEX = {"type": "string", "pattern": "^[0-9a-fA-F]{32}$"}
_IDS = ("jobid", "vertexid", "triggerid", "datasetid", "applicationid", "job_id", "job")
_NUMBERS = ("subtaskindex", "attempt", "checkpointid")
_FILES = (FileAnswer, StreamAnswer)


class Errors(msgspec.Struct, frozen=True):
    """The answer to a request that is refused, or fails: what was wrong, and what to do."""

    errors: list[str]


def openapi_document(routes: Iterable[Route]) -> Schema:
    """Return the description of routes.

    A path with the version of Flink's interface is not listed where the same path is there without it.
    """
    routes = [route for route in routes]
    known = {(route.method, route.pattern) for route in routes}
    listed = [
        route
        for route in routes
        if not route.pattern.startswith(f"/{VERSION}/")
        or (route.method, route.pattern.removeprefix(f"/{VERSION}")) not in known
    ]
    described = [(route, _Described(route)) for route in listed]
    types = [value for _, facts in described for value in facts.types]
    schemas, components = msgspec.json.schema_components([Errors, *types], ref_template=_REFERENCES)
    schema_of = {id(value): schema for value, schema in zip(types, schemas[1:], strict=True)}
    paths: Schema = {}
    for route, facts in sorted(described, key=lambda pair: pair[0].pattern):
        paths.setdefault(route.pattern, {})[route.method.lower()] = facts.operation(schema_of, schemas[0])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "rayflink",
            "version": __version__,
            "description": f"Paths of Flink's interface may begin with /{VERSION}.",
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


class _Described:
    """A route with the types of its function.

    Args:
        route: described here.
    """

    def __init__(self, route: Route) -> None:
        self._route = route
        endpoint = route.answer
        self._typed = endpoint if isinstance(endpoint, TypedEndpoint) else None
        self._function: Callable[..., Answer] = endpoint if self._typed is None else self._typed.function
        self._result = _result_type(self._function)
        self._body = None if self._typed is None else self._typed.body
        query = None if self._typed is None else self._typed.query
        self._query: Sequence[msgspec.structs.FieldInfo] = () if query is None else msgspec.structs.fields(query)
        self.types: list[object] = [value for value in (self._result, self._body) if value is not None]
        """The types that are described among the components."""
        self.types += [field.type for field in self._query]

    def operation(self, schema_of: Mapping[int, Schema], errors: Schema) -> Schema:
        """Return the description of the requests.

        Args:
            schema_of: id of a type -> its description.
            errors: description of a refusal.
        """
        route, typed = self._route, self._typed
        status = 200 if typed is None else typed.status
        document: Schema = {
            "operationId": f"{route.method.lower()}{re.sub(r'[^0-9A-Za-z]+', '_', route.pattern)}".rstrip("_"),
            "summary": (inspect.getdoc(self._function) or "").partition("\n")[0],
            "tags": [route.pattern.strip("/").partition("/")[0] or "pages"],
            "x-role": route.role.name,
            "responses": {str(status): self._response(schema_of), "4XX": _json("refused", errors)},
        }
        if route.role is not Role.NONE:
            document["security"] = [{}, {"token": []}]
        parameters = [_path_parameter(name) for name in _PARAMETER.findall(route.pattern)]
        parameters += [_query_parameter(field, schema_of[id(field.type)]) for field in self._query]
        if parameters:
            document["parameters"] = parameters
        if self._body is not None:
            content = {"application/json": {"schema": schema_of[id(self._body)]}}
            document["requestBody"] = {"required": False, "content": content}
        return document

    def _response(self, schema_of: Mapping[int, Schema]) -> Schema:
        if self._result is not None:
            return _json("the answer", schema_of[id(self._result)])
        if _returned(self._function) in _FILES:
            return {"description": "a file", "content": {"*/*": {}}}
        return _json("the answer", {})


def _returned(function: Callable[..., Answer]) -> object:
    try:
        return get_type_hints(function).get("return")
    except (NameError, TypeError):  # a function without hints, or with some that only a type checker sees
        return None


def _result_type(function: Callable[..., Answer]) -> object:
    """Return the type of what a function answers with; None where it says none, or that of a file."""
    returned = _returned(function)
    if returned in _FILES or any(part in _FILES for part in get_args(returned)):
        return None
    try:
        msgspec.json.schema(returned)
    except (TypeError, RecursionError):
        return None
    return None if returned in (Any, type(None), bytes) else returned


def _json(description: str, schema: Schema) -> Schema:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _path_parameter(name: str) -> Schema:
    schema = _HEX if name in _IDS else {"type": "integer"} if name in _NUMBERS else {"type": "string", "minLength": 1}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameter(field: msgspec.structs.FieldInfo, schema: Schema) -> Schema:
    return {"name": field.encode_name, "in": "query", "required": field.required, "schema": schema}
