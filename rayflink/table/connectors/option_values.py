"""Parses the values of options from strings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rayflink.common.options.option_types import ValueType


def one_of(*values: str) -> Callable[[str], str]:
    """Return a reader of options that accepts one of some strings."""

    def parse(text: str) -> str:
        if text not in values:
            raise ValueError(" or ".join(values))
        return text

    return parse


def typed(kind: ValueType[Any]) -> Callable[[str], Any]:
    """Return a value as options of jobs have it."""

    def parse(text: str) -> Any:
        try:
            return kind.read(text)
        except (ValueError, TypeError) as error:
            raise ValueError(f"a {kind.name}, such as {kind.example}") from error

    return parse


def is_number(text: str, whole: bool) -> bool:
    """Return whether a text is a number, or a whole one."""
    try:
        int(text) if whole else float(text)
    except ValueError:
        return False
    return True


def whole_from(least: int) -> Callable[[str], int]:
    """Return a whole number that is not less."""

    def parse(text: str) -> int:
        if not is_number(text, True) or int(text) < least:
            raise ValueError(f"a whole number of at least {least}")
        return int(text)

    return parse
