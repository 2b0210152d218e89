"""Errors about keys: which step extracts the key, from which record, and why that fails."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from rayflink.common.errors import RayflinkError, described
from rayflink.common.functions.callables import KeyBy

from .base import UserCodeError


class NoSuchField(RayflinkError):
    """A record has no field of the name or index that the program keys by.

    Args:
        step: the method that was given the fields.
        fields: their names or indexes.
        cause: what the look-up raised.
    """

    def __init__(self, step: str, fields: str, cause: str) -> None:
        super().__init__(step, fields, cause)
        self.step, self.fields, self.cause = step, fields, cause
        self.remedy = f"{'project' if step == 'project' else 'key by'} what every record has, or use a function"

    def __str__(self) -> str:
        return f"{self.step} wants {self.fields} of each record, found a record without ({self.cause}); {self.remedy}"


class KeyExtractionError(UserCodeError):
    """The key of a record could not be extracted; the cause is `__cause__`.

    Args:
        record: shortened; "" where it is not known.
        step: the method that was given the key selector.
        call_site: line of the user's program that called it.
    """

    def __init__(self, record: str, step: str = "key_by", call_site: str = "") -> None:
        super().__init__(step, call_site, record, "get_key")
        self.args = (record, step, call_site)

    @classmethod
    def of(cls, key_by: KeyBy, record: str) -> KeyExtractionError:
        """Return the failure of a selector given to `key_by`."""
        return cls(record, key_by.step, key_by.call_site)

    def __str__(self) -> str:
        site = f" (created at {self.call_site})" if self.call_site else ""
        cause = f": {described(self.__cause__)}" if self.__cause__ is not None else ""
        return f"Could not extract key from {self.record or 'a batch'} in {self.operator!r}{site}{cause}"


class RefusedKeyError(KeyExtractionError):
    """The key of `record` cannot be a key, or not one of the declared type; the cause says why."""

    def __str__(self) -> str:
        record = f"; the record is {self.record}" if self.record else ""
        return f"{self.__cause__}{record}"


def extraction_cause(key_by: KeyBy, error: Exception) -> Exception:
    """Describe why a key selector failed: the error it raised, or the field it wanted where it picks fields."""
    fields = _fields_of(key_by.selector)
    if fields and isinstance(error, (LookupError, AttributeError, TypeError)):
        return NoSuchField(key_by.step, fields, described(error))
    return error


def _fields_of(selector: Any) -> str:
    """Return the names or indexes that a selector picks, as a string; "" where it is a function."""
    fields: Any = getattr(selector, "columns", ())
    if type(selector) is itemgetter:
        fields = selector.__reduce__()[1]
    return f"field{'s' if len(fields) > 1 else ''} {', '.join(map(repr, fields))}" if fields else ""


__all__ = ["KeyExtractionError", "NoSuchField", "RefusedKeyError", "extraction_cause"]
