"""Patterns with an id and a version, which a stream or a program may replace while partial matches are alive."""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from rayflink.common.errors import NotSerializable, RayflinkError, described, shorten
from rayflink.common.user_code.call_sites import call_site
from rayflink.common.user_code.code_pickler import CodePickler
from rayflink.common.user_code.unpicklable import cause

from .errors import MalformedPatternException
from .nfa.compiler import compile_pattern
from .pattern import AnyPattern, Pattern

PatternSource: TypeAlias = "AnyPattern | Callable[[], AnyPattern]"
"""A pattern, or a callable that returns one."""
RuleName: TypeAlias = tuple[str, int]
"""(id of the pattern, its version)."""


class UnreadableRule(RayflinkError):
    """The pattern of a rule cannot be made of its bytes, or by its callable.

    Args:
        rule: its id and version.
        problem: why.
    """

    def __init__(self, rule: str, problem: str) -> None:
        super().__init__(rule, problem)
        self.rule, self.problem = rule, problem

    def __str__(self) -> str:
        return (
            f"the pattern of {self.rule} cannot be read: {self.problem}; run with the modules and the version of "
            "Python that it was written with, or give a rule of a newer version and begin without partial matches by "
            "drop_partial_matches_on_change()"
        )


class PatternRule:
    """A version of a pattern: it replaces the older one of its id, or removes it.

    A rule travels in streams and is stored in state. Functions and classes of modules go by their names, lambdas and
    functions of the script by their code, which only the same version of Python can read.

    Args:
        pattern_id: of the pattern.
        version: from 0; greater than that of the rule which it replaces.
        pattern: what to look for; or a callable without arguments that returns it, which is called where the rule
            takes effect, such as `functools.partial(fraud, limit=500)`; None removes the pattern of this id.

    Raises:
        MalformedPatternException: the pattern cannot be matched, or id or version are none.
        NotSerializable: it cannot be pickled.

    >>> PatternRule("large", 2, Pattern.begin("large").where(lambda amount: amount > 500))
    PatternRule('large', 2, Pattern(large))
    >>> PatternRule("large", 3)
    PatternRule('large', 3, None)
    """

    __slots__ = ("_classes", "_code", "_python", "_source", "pattern_id", "version")

    def __init__(self, pattern_id: str, version: int, pattern: PatternSource | None = None) -> None:
        if not isinstance(pattern_id, str) or not pattern_id:
            _refuse(f"a rule has the id {pattern_id!r:.100}", "pass a non-empty string")
        if not isinstance(version, int) or isinstance(version, bool) or version < 0:
            _refuse(f"the rule {pattern_id!r} has the version {version!r:.100}", "pass a whole number from 0 on")
        if isinstance(pattern, Pattern):
            compile_pattern(pattern)
        elif pattern is not None and not callable(pattern):
            _refuse(
                f"the rule {pattern_id!r} has {pattern!r:.100} as its pattern",
                "pass a Pattern, a callable that returns one, or None to remove the pattern of this id",
            )
        self.pattern_id, self.version = pattern_id, version
        self._source = pattern
        self._code, self._classes = (b"", ()) if pattern is None else _to_bytes(pattern)
        self._python = sys.version_info[:2] if _CODE in self._code else None

    @property
    def name(self) -> RuleName:
        """The id and the version."""
        return self.pattern_id, self.version

    @property
    def removes(self) -> bool:
        """Return whether the rule removes the pattern of its id."""
        return not self._code

    def pattern(self) -> AnyPattern:
        """Return the pattern.

        Raises:
            UnreadableRule: it was pickled by another version of Python, or refers to what does not exist.
        """
        if self._source is None:
            self._source = self._read()
        if isinstance(self._source, Pattern):
            return self._source
        try:
            pattern = self._source()
        except Exception as error:
            raise UnreadableRule(self._named(), f"its callable raised {described(error)}") from error
        if not isinstance(pattern, Pattern):
            raise UnreadableRule(self._named(), f"its callable returned {shorten(pattern)}, which is no Pattern")
        return pattern

    def _read(self) -> Any:
        if self._python is not None and self._python != sys.version_info[:2]:
            written, running = (".".join(map(str, version)) for version in (self._python, sys.version_info[:2]))
            raise UnreadableRule(self._named(), f"it has code of Python {written}, and this is Python {running}")
        try:
            return pickle.loads(self._code)
        except Exception as error:
            raise UnreadableRule(self._named(), described(error)) from error

    def _named(self) -> str:
        return f"the rule {self.pattern_id!r}, version {self.version}"

    def __reduce__(self) -> tuple[Callable[..., PatternRule], tuple[Any, ...]]:
        # the classes of the script are in the pickle of a program, so that all its processes have them
        return _restored, (self.pattern_id, self.version, self._code, self._python, self._classes)

    def __deepcopy__(self, memo: object) -> PatternRule:
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PatternRule) and (self.name, self._code) == (other.name, other._code)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        shown = None if self.removes else "..." if self._source is None else self._source
        return f"PatternRule({self.pattern_id!r}, {self.version}, {shorten(shown)})"


def _restored(
    pattern_id: str, version: int, code: bytes, python: tuple[int, int] | None, classes: tuple[type, ...]
) -> PatternRule:
    rule = PatternRule.__new__(PatternRule)
    rule.pattern_id, rule.version = pattern_id, version
    rule._source, rule._code, rule._python, rule._classes = None, code, python, classes
    return rule


_CODE = b"_code_of_file"
"""The name in a pickle of the function that makes the code of others."""


class _Pickler(CodePickler):
    """Pickles functions of the script by value and its classes by name: there is one of each in a process."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.main_classes: dict[type, None] = {}

    def reducer_override(self, obj: object) -> Any:
        if isinstance(obj, type) and obj.__module__ == "__main__" and _has_name(obj):
            self.main_classes[obj] = None
            return obj.__qualname__
        return super().reducer_override(obj)


def _has_name(cls: type) -> bool:
    namesake: object = sys.modules["__main__"]
    for part in cls.__qualname__.split("."):
        namesake = getattr(namesake, part, None)
    return namesake is cls


def _to_bytes(pattern: PatternSource) -> tuple[bytes, tuple[type, ...]]:
    """Return the pickle of a pattern, and the classes of the script that it refers to."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    try:
        pickler.dump(pattern)
    except Exception as error:
        raise NotSerializable("the pattern of a rule", cause(pattern, error)) from error
    return file.getvalue(), tuple(pickler.main_classes)


def _refuse(problem: str, remedy: str) -> None:
    raise MalformedPatternException(problem, remedy, call_site())


class PatternMatch(dict[str, list[Any]]):
    """The events of a match by the names of the pattern's steps, with the pattern that it is of.

    Args:
        events: names of steps -> lists of events.
        pattern_id: of the pattern.
        version: of the rule whose pattern was found.

    >>> match = PatternMatch({"large": [900]}, "large", 2)
    >>> match["large"], match.pattern_id, match.version
    ([900], 'large', 2)
    """

    __slots__ = ("pattern_id", "version")

    def __init__(self, events: dict[str, list[Any]], pattern_id: str, version: int) -> None:
        super().__init__(events)
        self.pattern_id, self.version = pattern_id, version

    def __reduce__(self) -> tuple[type[PatternMatch], tuple[dict[str, list[Any]], str, int]]:
        return PatternMatch, (dict(self), self.pattern_id, self.version)


@dataclass(frozen=True)
class RejectedRule:
    """A record of the stream of rules that has no effect, or a rule that is disabled.

    Args:
        rule: the record, most often a `PatternRule`.
        reason: why.
    """

    rule: object
    reason: str


__all__ = ["PatternMatch", "PatternRule", "PatternSource", "RejectedRule", "RuleName", "UnreadableRule"]
