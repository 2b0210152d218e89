"""Names for the types of a user's objects, which the runtime does not know.

Most names stand for `typing.Any`: a record may be a number, a tuple, a `Row` or an object of any class, and mypy checks
nothing about it. A parameter has such a name instead of `Any` to say which of the user's objects it takes. What
rayflink itself creates has a type of its own, and what may be anything at all (a value that is only tested, printed or
passed on) is an `object`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

UserRecord: TypeAlias = Any
"""One record of a stream, as the user's sources and functions create it."""
UserKey: TypeAlias = Any
"""The key of a record, as a key selector returns it, or a key of the user's map state; see `canonical_key`."""
UserValue: TypeAlias = Any
"""A value of the user that is no whole record: a value in state, a field of a record, an argument of a function."""
UserAccumulator: TypeAlias = Any
"""The accumulator of a user's aggregate function."""
UserCode: TypeAlias = Any
"""A function as the program passes it: a callable, or an object of a function class such as `MapFunction`."""
SourceSplit: TypeAlias = Any
"""A split of a source in the source's own form; only its enumerator and its readers look inside."""
EnumeratorState: TypeAlias = Any
"""The snapshot of a source's enumerator in the source's own form."""
TypeHint: TypeAlias = object
"""A type as the program declares it: a `TypeInformation`, a typing hint such as `list[str]`, or a class."""

__all__ = [
    "EnumeratorState", "SourceSplit", "TypeHint", "UserAccumulator", "UserCode", "UserKey", "UserRecord", "UserValue",
]  # fmt: skip
