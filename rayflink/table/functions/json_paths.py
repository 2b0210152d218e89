"""Paths into JSON, such as $.a[0]['b c'], and the values they lead to.

Source: Calcite JsonFunctions, and Jayway JsonPath without its filters.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from rayflink.table.plan.typed import RowError

_STEP = re.compile(
    r"\.\.(?P<deep>[^.\[\]]+|\*)|\.?\[\s*(?:'(?P<single>(?:[^'\\]|\\.)*)'|\"(?P<double>(?:[^\"\\]|\\.)*)\""
    r"|(?P<index>-?\d+)|(?P<all>\*))\s*\]|\.(?P<name>[^.\[\]]+)"
)


class JsonError(ValueError):
    """A text is no JSON, or the strict path leads nowhere."""


def _no_number(text: str) -> Any:
    raise ValueError(text)


_DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_number)


@dataclass(frozen=True)
class Path:
    """A path.

    Args:
        is_strict: whether it is an error where it leads nowhere.
        steps: names, places, "*" as True, and names at any depth as (name,).
    """

    is_strict: bool
    steps: tuple[Any, ...]

    @property
    def is_definite(self) -> bool:
        """Return whether it leads to one value at most."""
        return not any(step is True or isinstance(step, tuple) for step in self.steps)


@lru_cache(maxsize=256)
def path_of(text: str) -> Path:
    """Return a path of its text.

    Raises:
        RowError: it is none, or has filters, which are not known.
    """
    prefix = re.match(r"\s*(?:(lax|strict)\s+)?\$", text, re.I)
    steps, offset = [], prefix.end() if prefix else 0
    while prefix and offset < len(text.rstrip()):
        step = _STEP.match(text, offset)
        if step is None:
            break
        steps.append(_step(step))
        offset = step.end()
    if prefix is None or offset < len(text.rstrip()):
        raise RowError(f"{text!r} is not a supported JSON path", "write one such as '$.a[0]', without filters")
    return Path((prefix[1] or "").lower() == "strict", tuple(steps))


def _step(match: re.Match[str]) -> Any:
    parts = match.groupdict()
    if parts["deep"] is not None:
        return (parts["deep"],)
    if parts["index"] is not None:
        return int(parts["index"])
    if parts["all"] is not None or parts["name"] == "*":
        return True
    name = parts["single"] or parts["double"]
    return re.sub(r"\\(.)", r"\1", name) if name is not None else (parts["name"] or "")


def parse_json(text: str) -> Any:
    """Return the value of a text; numbers with a point keep their digits.

    Raises:
        JsonError: it is no JSON.
    """
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise JsonError(f"{text[:80]!r} is no JSON") from error


def select(document: Any, path: Path) -> Any:
    """Return the value at a path, a list of values of a path that may lead to several, None for nothing.

    Raises:
        JsonError: the path is strict and leads nowhere.
    """
    values = [document]
    for step in path.steps:
        values = [inner for value in values for inner in _step_values(value, step)]
    if not path.is_definite:
        return values
    if not values and path.is_strict:
        raise JsonError("the strict path leads nowhere")
    return values[0] if values else None


def _step_values(value: Any, step: Any) -> list[Any]:
    if isinstance(step, tuple):
        below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        here = _step_values(value, True if step[0] == "*" else step[0])
        return here + [item for inner in below for item in _step_values(inner, step)]
    if step is True:
        return list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []
    if isinstance(step, int):
        return [value[step]] if isinstance(value, list) and -len(value) <= step < len(value) else []
    return [value[step]] if isinstance(value, dict) and step in value else []


def is_scalar(value: Any) -> bool:
    """Return whether it is no object and no array."""
    return not isinstance(value, (dict, list))


def scalar_text(value: Any) -> str | None:
    """Return a value that is no object and no array as text, as Java writes it."""
    if value is None or isinstance(value, str):
        return value
    return number_text(value)


def number_text(value: Any) -> str:
    """Return a number or a truth value, as Java writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def to_json(value: Any) -> str:
    """Return a value as JSON without blanks."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quoted(name)}:{to_json(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(to_json, value)) + "]"
    if isinstance(value, str):
        return _quoted(value)
    return "null" if value is None else number_text(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
