"""Text of values and errors that a program made, bounded in characters and in time.

Whoever reports a failure shows a record and an error whose `__repr__` and `__str__` belong to the program: they may be
slow, never return, or give more text than memory holds. Values of Python's own types are written here, element by
element, until there is enough text. Methods of other types run in a thread of their own with a deadline.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextvars import copy_context
from dataclasses import fields
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

from rayflink.user_types import UserValue

DEADLINE_S = 1.0
"""Seconds for the string of one value or error."""
MOST_CHARACTERS = 100_000
"""Characters of a value that are written; the length of a longer string is not known."""
_ATOMS = frozenset({
    bool, int, float, complex, type(None), type(Ellipsis), range, date, datetime, time, timedelta, timezone, Decimal,
    UUID,
})  # fmt: skip
_BRACKETS: dict[Any, tuple[str, str]] = {
    list: ("[", "]"), tuple: ("(", ")"), set: ("{", "}"), frozenset: ("frozenset({", "})"), dict: ("{", "}"),
}  # fmt: skip
_BUILTIN_STR = frozenset({BaseException.__str__, OSError.__str__, ImportError.__str__, KeyError.__str__})
"""Of these classes, and of those that inherit it, `__str__` runs no code but that of the arguments."""
_SHORT = frozenset({str, bytes, int, float, bool, type(None)})
_OWN_PACKAGE = __name__.partition(".")[0]


class _TooLong(Exception):
    """Raised when the string is long enough."""


class TookTooLong(Exception):
    """A method of the program did not return within `DEADLINE_S`, or was not called since one before it still runs."""

    def __init__(self, how: str = f"takes more than {DEADLINE_S:g} s") -> None:
        super().__init__(how)


def bounded_repr(value: object, limit: int) -> tuple[str, str]:
    """Return `repr(value)` in at most `limit` characters, and a note on its length.

    >>> bounded_repr([1, "two"], 200), bounded_repr("x" * 50, 5)
    (("[1, 'two']", ''), ("'xxxx", '... (52 characters)'))
    >>> bounded_repr("x" * 1_000_000, 5)
    ("'xxxx", '... (more than 100000 characters)')

    Args:
        value: anything.
        limit: characters, from 0 to `MOST_CHARACTERS`.

    Returns: the text, and "" where that is all of it, else how many characters there are.
    Raises: what a `__repr__` of the program raises; TookTooLong.
    """
    writer = _Writer()
    try:
        writer.write(value)
        length = f"{writer.length}"
    except _TooLong:
        length = f"more than {MOST_CHARACTERS}"
    text = "".join(writer.parts)
    return (text, "") if writer.length <= limit else (text[:limit], f"... ({length} characters)")


def bounded_str(error: BaseException, limit: int = 10_000) -> str:
    """Return `str(error)` in about `limit` characters.

    >>> bounded_str(ValueError("x" * 50), 5)
    'xxxxx... (50 characters)'

    Raises: what a `__str__` of the program raises; TookTooLong.
    """
    return cut(_str_of(error), limit)


def cut(text: str, limit: int) -> str:
    """Return the first `limit` characters of a string, and their number where that is not all."""
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def within_deadline(call: Callable[[], Any]) -> Any:
    """Return the result of a call that runs code of the program, in a thread of its own.

    Raises: what the call raises; TookTooLong.
    """
    return _CALLS.result_of(call)


def _str_of(error: BaseException) -> str:
    kind = type(error)
    is_plain = kind.__str__ in _BUILTIN_STR and all(type(argument) in _SHORT for argument in error.args)
    if is_plain or kind.__module__.partition(".")[0] == _OWN_PACKAGE:
        return str(error)
    return str(within_deadline(lambda: str(error)))


class _Calls:
    """Runs calls in threads; while one that was given up still runs, there is no other."""

    def __init__(self) -> None:
        self._late: threading.Thread | None = None
        self._lock = threading.Lock()

    def result_of(self, call: Callable[[], Any]) -> Any:
        with self._lock:
            if self._late is not None and self._late.is_alive():
                raise TookTooLong("is left out, as one before it still runs")
            self._late = None
        results: list[Any] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                results.append(call())
            except BaseException as error:  # raised where the result is waited for
                errors.append(error)

        context = copy_context()
        thread = threading.Thread(target=context.run, args=(run,), name="text of a value", daemon=True)
        thread.start()
        thread.join(DEADLINE_S)
        if thread.is_alive():
            with self._lock:
                self._late = thread
            raise TookTooLong
        if errors:
            raise errors[0]
        return results[0]


_CALLS = _Calls()


class _Writer:
    """Gathers the parts of a repr, at most `MOST_CHARACTERS`."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.length = 0
        self._within: set[int] = set()

    def write(self, value: object) -> None:
        """Write a value as `repr` does.

        Raises: what a `__repr__` of the program raises; TookTooLong; _TooLong.
        """
        kind = type(value)
        if kind in _ATOMS:
            self._add(repr(value))
        elif isinstance(value, (str, bytes, bytearray)) and kind in (str, bytes, bytearray):
            whole = len(value) <= MOST_CHARACTERS
            self._add(repr(value if whole else value[:MOST_CHARACTERS]))
            if not whole:
                raise _TooLong
        elif kind in _BRACKETS or _has_fields(kind):
            self._write_container(value, kind)
        else:
            self._add(str(within_deadline(lambda: repr(value))))

    def _write_container(self, value: UserValue, kind: type) -> None:
        begin, end = _BRACKETS.get(kind) or ("", "")
        if kind in (set, frozenset) and not value:
            self._add(repr(value))
        elif id(value) in self._within:
            self._add(f"{begin}...{end}")
        else:
            self._within.add(id(value))
            self._add(begin)
            if kind is dict:
                self._write_items(value)
            elif kind in _BRACKETS:
                self._write_elements(value)
            else:
                self._write_fields(*_parts_of(value, kind))
            self._add("," + end if kind is tuple and len(value) == 1 else end)
            self._within.discard(id(value))

    def _write_elements(self, elements: Iterable[UserValue]) -> None:
        for number, element in enumerate(elements):
            if number:
                self._add(", ")
            self.write(element)

    def _write_items(self, items: dict[Any, Any]) -> None:
        for number, (key, item) in enumerate(items.items()):
            if number:
                self._add(", ")
            self.write(key)
            self._add(": ")
            self.write(item)

    def _write_fields(self, begin: str, named: list[tuple[str, Any]], end: str) -> None:
        self._add(begin)
        for number, (name, field) in enumerate(named):
            self._add(f", {name}" if number else name)
            self.write(field)
        self._add(end)

    def _add(self, text: str) -> None:
        self.parts.append(text[: MOST_CHARACTERS - self.length])
        self.length += len(text)
        if self.length > MOST_CHARACTERS:
            raise _TooLong


def _has_fields(kind: type) -> bool:
    """Return whether it is a Row, or a named tuple or dataclass with the `__repr__` that Python made for it."""
    method = kind.__repr__
    if issubclass(kind, tuple):
        return hasattr(kind, "_fields") and getattr(method, "__module__", "") == "collections"
    if "__dataclass_fields__" in vars(kind):
        return "__repr__" in vars(kind) and hasattr(method, "__wrapped__")
    return "_repr_parts" in vars(kind)


def _parts_of(value: UserValue, kind: Any) -> tuple[str, list[tuple[str, Any]], str]:
    """Return what stands before the fields in the repr, each field with what stands before it, and the end."""
    if issubclass(kind, tuple):
        return f"{kind.__name__}(", [(f"{name}=", getattr(value, name)) for name in kind._fields], ")"
    if "_repr_parts" in vars(kind):
        parts: tuple[str, list[tuple[str, Any]], str] = value._repr_parts()
        return parts
    shown = [(f"{field.name}=", getattr(value, field.name)) for field in fields(kind) if field.repr]
    return f"{kind.__qualname__}(", shown, ")"


__all__ = ["DEADLINE_S", "MOST_CHARACTERS", "TookTooLong", "bounded_repr", "bounded_str", "cut", "within_deadline"]
