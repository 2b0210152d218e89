"""Declares options: each is registered under the heading by which it is documented."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..config_options import ConfigOption
from ..time import Duration
from .option_types import ValueType

T = TypeVar("T")
SECTIONS: dict[str, list[ConfigOption[Any]]] = {}
"""Heading -> its options, in the order in which they were declared."""
Test = tuple[Callable[[Any], bool], str]
"""(which values are accepted, what they are)."""
POSITIVE: Test = (lambda value: value > 0, "a number above 0")
NOT_NEGATIVE: Test = (lambda value: value >= 0, "a number of at least 0")
LONGER_THAN_ZERO: Test = (lambda value: value.to_nanos() > 0, "a duration above 0")
NOT_EMPTY: Test = (lambda value: value.bytes > 0, "a size above 0 bytes")
NAME: Test = (bool, "a name")
PART: Test = (lambda value: 0 < value < 1, "a number between 0 and 1")
FRACTION: Test = (lambda value: 0 <= value <= 1, "a number in [0, 1]")
NO_NEGATIVE_TIME: Test = (lambda value: value.to_nanos() >= 0, "a duration of at least 0")


def declare(
    section: str,
    key: str,
    type: ValueType[T],
    default: T | None,
    help: str,
    *fallback: tuple[str, ...],
    **more: Any,
) -> ConfigOption[T]:
    """Register an option; `more` may hold the `test` of its values, why it is `refused` or how `unheeded`."""
    accepts, wanted = more.pop("test", (None, ""))
    older = fallback[0] if fallback else ()
    option = ConfigOption(key, type, default, help, older, accepts, wanted, **more)
    SECTIONS.setdefault(section, []).append(option)
    return option


def millis(amount: int) -> Duration:
    """Return a duration of milliseconds."""
    return Duration.of_millis(amount)
