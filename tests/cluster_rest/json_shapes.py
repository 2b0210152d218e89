"""The shape of JSON: the fields of an answer and their types, without the values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_ID = re.compile(r"[0-9a-f]{32}")
ANY_ID = "<id>"
"""Stands for the keys of an object that has ids of vertices as keys."""


@dataclass
class Shape:
    """What stands at one place of an answer, over all elements of its lists.

    Args:
        types: of the values there.
        fields: of the objects there.
        counts: field -> the number of objects that have it.
        objects: their number.
        element: of the lists there; None: there are none, or they are empty.
    """

    types: set[str] = field(default_factory=set)
    fields: dict[str, Shape] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    objects: int = 0
    element: Shape | None = None

    def add(self, value: Any) -> None:
        """Take in a value."""
        self.types.add(_type(value))
        if isinstance(value, dict):
            self.objects += 1
            for key in dict.fromkeys(ANY_ID if _ID.fullmatch(key) else key for key in value):
                self.counts[key] = self.counts.get(key, 0) + 1
            for key, item in value.items():
                self.fields.setdefault(ANY_ID if _ID.fullmatch(key) else key, Shape()).add(item)
        if isinstance(value, list):
            for item in value:
                self.element = self.element or Shape()
                self.element.add(item)

    @classmethod
    def of(cls, value: Any) -> Shape:
        """Return the shape of a value."""
        shape = cls()
        shape.add(value)
        return shape


def _type(value: Any) -> str:
    if value == "NaN":
        return "float"
    kinds = {bool: "bool", int: "int", float: "float", str: "string", type(None): "null", dict: "object", list: "list"}
    return kinds[type(value)]


def differences(flink: Shape, ours: Shape, place: str = "") -> Iterator[str]:
    """Return what one has and the other has not, a line for each place."""
    if flink.types != ours.types:
        yield f"{place or '/'}: Flink {'|'.join(sorted(flink.types))}, here {'|'.join(sorted(ours.types))}"
    for name in flink.fields.keys() - ours.fields.keys() if ours.objects else ():
        yield f"{place}/{name}: missing here"
    for name in ours.fields.keys() - flink.fields.keys() if flink.objects else ():
        yield f"{place}/{name}: not in Flink"
    for name in sorted(flink.fields.keys() & ours.fields.keys()):
        yield from differences(flink.fields[name], ours.fields[name], f"{place}/{name}")
    if flink.element is not None and ours.element is not None:
        yield from differences(flink.element, ours.element, f"{place}[]")
    elif flink.element is not None:
        yield f"{place}[]: empty here"
    elif ours.element is not None:
        yield f"{place}[]: empty in Flink"
