"""Values of programs as JSON can have them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["plain"]

DEEPEST = 20
"""Values at this depth of others are text."""


def plain(value: object, depth: int = DEEPEST) -> Any:
    """Return a value of a program as JSON can have it: other keys, numbers and objects as text, no half characters.

    >>> plain({(1, 2): {3}, "a": [1.5, float("nan"), "\\ud800"]})
    {'(1, 2)': '{3}', 'a': [1.5, 'nan', '\\\\ud800']}
    """
    if value is None or type(value) in (bool, int) or type(value) is float and math.isfinite(value):
        return value
    if depth and isinstance(value, Mapping):
        return {_text(key): plain(item, depth - 1) for key, item in value.items()}
    if depth and isinstance(value, (list, tuple)):
        return [plain(item, depth - 1) for item in value]
    return _text(value)


def _text(value: object) -> str:
    try:
        return str(value).encode("utf-8", "backslashreplace").decode()
    except Exception as error:  # a class of the program may raise anything
        return f"a {type(value).__name__}, whose text raises {type(error).__name__}"
