"""Recursion without the interpreter's stack, so that a pipeline may be thousands of operators long."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

T = TypeVar("T")


def run_nested(call: Generator[Any, Any, T]) -> T:
    """Return the result of `call`, a generator in which `x = yield f(...)` stands for the recursive call `x =
    f(...)`.
    """
    stack: list[Generator[Any, Any, Any]] = [call]
    answer: Any = None
    while True:
        try:
            inner = stack[-1].send(answer)
        except StopIteration as done:
            stack.pop()
            answer = done.value
            if not stack:
                return answer  # type: ignore[no-any-return]
        else:
            stack.append(inner)
            answer = None
