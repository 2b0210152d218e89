"""Schemas of a registry that refer to types of others, put together to one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from .avro_schema import BadAvroSchema, Json


def with_references(
    answer: Mapping[str, Json], fetch: Callable[[str, int], Mapping[str, Json]]
) -> Json:
    """Return a schema in which the types of the schemas that it refers to are defined where they are used first.

    >>> referenced = {"schema": '{"type": "fixed", "name": "a.F", "size": 4}'}
    >>> answer = {"schema": '{"type": "array", "items": "a.F"}',
    ...           "references": [{"name": "a.F", "subject": "f", "version": 1}]}
    >>> with_references(answer, lambda subject, version: referenced)
    {'type': 'array', 'items': {'type': 'fixed', 'name': 'a.F', 'size': 4}}

    Args:
        answer: with the `schema` as a string, and its `references`.
        fetch: subject, version -> the same of another schema.

    Raises:
        BadAvroSchema: a schema is no JSON.
    """
    known: dict[str, Json] = {}
    _collect(answer, fetch, known)
    return _inlined(_parsed(answer), "", known, set())


def _collect(
    answer: Mapping[str, Json], fetch: Callable[[str, int], Mapping[str, Json]], known: dict[str, Json]
) -> None:
    for reference in answer.get("references") or ():
        if reference["name"] not in known:
            referenced_schema = fetch(reference["subject"], int(reference["version"]))
            known[reference["name"]] = _parsed(referenced_schema)
            _collect(referenced_schema, fetch, known)


def _parsed(answer: Mapping[str, Json]) -> Json:
    try:
        return json.loads(answer["schema"])
    except ValueError as error:
        raise BadAvroSchema(f"the schema is no JSON ({error})", "register it again") from error


def _inlined(part: Json, namespace: str, known: Mapping[str, Json], used: set[str]) -> Json:
    if isinstance(part, str):
        full = part if "." in part or not namespace else f"{namespace}.{part}"
        name = full if full in known else part
        if name not in known or name in used:
            return part
        used.add(name)
        return _inlined(known[name], "", known, used)
    if isinstance(part, list):
        return [_inlined(branch, namespace, known, used) for branch in part]
    name = str(part.get("name", ""))
    space = name.rpartition(".")[0] or str(part.get("namespace") or namespace)
    schema = {
        key: _inlined(value, space, known, used) if key in ("items", "values", "type") else value
        for key, value in part.items()
    }
    if "fields" in part:
        schema["fields"] = [{**field, "type": _inlined(field["type"], space, known, used)} for field in part["fields"]]
    return schema


__all__ = ["with_references"]
