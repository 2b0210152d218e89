"""Summaries of states, for readers of a checkpoint without its job and for a later version of the job.

The schema of a state is JSON: `type` is the declared type of its values, where there is one; `values` are the names of
the classes of values that were seen; `classes` says of each class of records in them which fields it had.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..classes.class_schemas import ClassSchema, classes_in, name_of
from ..descriptors import StateDescriptor

SAMPLES = 16
"""Values of a state that are looked at."""


@dataclass(frozen=True, slots=True)
class StateSummary:
    """The description of one state of an operator, for readers of a checkpoint without its job.

    Args:
        name: of the state.
        kind: such as "value", "map" or "list".
        value_type: of its values, as text.
        schema: of its values, as JSON; "" where it has none.
        ttl: its time to live, as text; "" where it has none.
    """

    name: str
    kind: str
    value_type: str
    schema: str = ""
    ttl: str = ""

    @property
    def is_keyed(self) -> bool:
        """Return whether the state is keyed state or timers, not operator state."""
        return self.kind != "broadcast" and not self.kind.endswith(" list") or self.kind == "expiring list"

    @property
    def classes(self) -> dict[str, ClassSchema]:
        """Return the classes of records in its values, by name."""
        classes = self.parsed_schema.get("classes", {})
        return {name: ClassSchema.from_json(name, fields) for name, fields in classes.items()}

    @property
    def parsed_schema(self) -> dict[str, Any]:
        """Return the schema as an object; {} where the state has none."""
        schema: dict[str, Any] = json.loads(self.schema) if self.schema else {}
        return schema

    def with_classes(self, classes: Mapping[str, ClassSchema], values: Iterable[str] = ()) -> StateSummary:
        """Return the summary with these classes of records in place of its own."""
        schema = self.parsed_schema
        schema["classes"] = {name: classes[name].to_json() for name in sorted(classes)}
        schema["values"] = sorted(values)
        return replace(self, value_type=_display_type(schema), schema=_encode_schema(schema))

    def merge(self, other: StateSummary) -> StateSummary:
        """Merge what both summaries know; this one wins."""
        left, right = self.parsed_schema, other.parsed_schema
        values = {*left.get("values", ()), *right.get("values", ())}
        merged = replace(self, schema=_encode_schema({**left, "type": left.get("type", right.get("type"))}))
        return merged.with_classes({**other.classes, **self.classes}, values)


def summary_of(descriptor: StateDescriptor, kind: str, samples: Iterable[Any]) -> StateSummary:
    """Summarize a state.

    Args:
        kind: in which it is stored.
        samples: some of its values; of lists and maps some of what is in them.
    """
    values = list(samples)
    classes: dict[str, ClassSchema] = {}
    for value in values:
        classes_in(value, classes)
    expiry = descriptor.expiry
    ttl = "" if expiry is None else f"{expiry.ttl_ms} ms"
    schema: dict[str, Any] = {}
    types = [describe_type(type_info) for type_info in descriptor.types()]
    if any(type_info is not None for type_info in types):
        schema["type"] = types[0] if len(types) == 1 else types
    summary = StateSummary(descriptor.name, kind, "", _encode_schema(schema), ttl)
    return summary.with_classes(classes, {name_of(type(value)) for value in values})


def merge_summaries(summaries: Iterable[StateSummary]) -> tuple[StateSummary, ...]:
    """Merge summaries into one per state; keyed state comes first."""
    by_name: dict[tuple[bool, str], StateSummary] = {}
    for summary in summaries:
        place = not summary.is_keyed, summary.name
        known = by_name.get(place)
        by_name[place] = summary if known is None or known == summary else known.merge(summary)
    return tuple(by_name[place] for place in sorted(by_name))


def describe_type(type_info: object) -> Any:
    """Return a declared type as JSON: its name, or for a row [[field, type], ...]; None where there is none."""
    if type_info is None:
        return None
    names = getattr(type_info, "get_field_names", None)
    kinds = getattr(type_info, "get_field_types", None)
    if callable(names) and callable(kinds):
        return [[name, describe_type(kind)] for name, kind in zip(names(), kinds(), strict=True)]
    return str(type_info)


def _display_type(schema: Mapping[str, Any]) -> str:
    """Return the type of values for display."""
    declared = schema.get("type")
    if declared is not None:
        return declared if isinstance(declared, str) else json.dumps(declared)
    return " | ".join(name.removeprefix("builtins:") for name in schema.get("values", ()))


def _encode_schema(schema: Mapping[str, Any]) -> str:
    known = {name: part for name, part in schema.items() if part}
    return json.dumps(known, separators=(",", ":"), sort_keys=True) if known else ""


__all__ = ["SAMPLES", "StateSummary", "merge_summaries", "summary_of", "describe_type"]
