"""The hint LOOKUP of a SELECT: how the rows of a table are asked for that is joined by FOR SYSTEM_TIME AS OF."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from rayflink.common.options.option_types import BOOLEAN, DURATION, INT

from ...errors import SqlError, nearest
from ...parsing.hints import LOOKUPS
from ...parsing.statements import Tree
from ...plan.lookup_joins import LookupHint
from ..expressions import place_of
from ..scope import Scope

_Read: TypeAlias = Callable[[str], Any]


def _positive(text: str) -> int:
    number: int = INT.read(text)
    if number < 1:
        raise ValueError
    return number


def _time(text: str) -> int:
    time_ms: int = DURATION.read(text).to_millis()
    if time_ms < 1:
        raise ValueError
    return time_ms


def _among(*values: str) -> _Read:
    def read(text: str) -> str:
        if text.lower() not in values:
            raise ValueError
        return text.lower()

    return read


_OPTIONS: Mapping[str, tuple[_Read, str]] = {
    "table": (str, "the name of the table in FROM"),
    "async": (BOOLEAN.read, "'true' or 'false'"),
    "output-mode": (_among("ordered", "allow_unordered"), "'ordered' or 'allow_unordered'"),
    "capacity": (_positive, "a whole number above 0"),
    "timeout": (_time, "a duration above 0, such as '10 s'"),
    "retry-predicate": (_among("lookup_miss"), "'lookup_miss'"),
    "retry-strategy": (_among("fixed_delay"), "'fixed_delay'"),
    "fixed-delay": (_time, "a duration above 0, such as '1 s'"),
    "max-attempts": (_positive, "a whole number above 0"),
    "shuffle": (BOOLEAN.read, "'true' or 'false'"),
}
"""Name of an option -> what reads its value, and what that is to be."""
_RETRY = ("retry-predicate", "retry-strategy", "fixed-delay", "max-attempts")


def _written_hints(tree: Tree) -> Sequence[Mapping[str, str]]:
    hint = tree.args.get("hint")
    return () if hint is None else hint.meta.get(LOOKUPS) or ()


def check_lookup_hints(tree: Tree, scope: Scope, looked_up: Sequence[str]) -> None:
    """Check that each hint LOOKUP of a SELECT names a table of it that is looked up.

    Args:
        looked_up: names of the tables that are joined by FOR SYSTEM_TIME AS OF.

    Raises:
        SqlError: one names no table, or another one.
    """
    for options in _written_hints(tree):
        name, names = options.get("table"), [part.alias for part in scope.parts]
        if name is None:
            raise SqlError("LOOKUP has no option 'table'", "write LOOKUP('table' = 'c', ...)", "", place_of(tree))
        if name in looked_up:
            continue
        if name not in names:
            problem = f"LOOKUP of {name!r}, which is not a table of FROM{nearest(name, names)}"
            raise SqlError(problem, f"the tables are {', '.join(names)}", "", place_of(tree))
        remedy = f"join it as JOIN ... FOR SYSTEM_TIME AS OF a.proc_time AS {name} ON ..., or leave the hint out"
        raise SqlError(f"LOOKUP of {name!r}, which is not joined by FOR SYSTEM_TIME AS OF", remedy, "", place_of(tree))


def lookup_hint(tree: Tree | None, name: str) -> LookupHint:
    """Return the hint of a table in a SELECT; the last one counts where there are several.

    Raises:
        SqlError: an option is unknown, or has a value of another form.
    """
    options: Mapping[str, str] = {}
    for written in () if tree is None else _written_hints(tree):
        if written.get("table") == name:
            options = written
    values: dict[str, Any] = {}
    for key, text in options.items():
        if key not in _OPTIONS:
            problem = f"LOOKUP has no option {key!r}{nearest(key, _OPTIONS)}"
            raise SqlError(problem, f"its options are {', '.join(_OPTIONS)}", "", place_of(tree))
        read, wanted = _OPTIONS[key]
        try:
            values[key] = read(text)
        except (ValueError, TypeError) as error:
            raise SqlError(f"{key!r} of LOOKUP is {text!r}", f"wanted is {wanted}", "", place_of(tree)) from error
    retries = [key for key in _RETRY if key in values]
    missing = [key for key in _RETRY if key not in values]
    if retries and missing:
        problem = f"LOOKUP has {retries[0]!r} without {', '.join(map(repr, missing))}"
        raise SqlError(problem, "give all four of them, or none", "", place_of(tree))
    output = values.get("output-mode")
    return LookupHint(
        values.get("async"), None if output is None else output == "allow_unordered", values.get("capacity"),
        values.get("timeout"), bool(retries), values.get("fixed-delay", 0), values.get("max-attempts", 0),
        values.get("shuffle", False),
    )  # fmt: skip


__all__ = ["check_lookup_hints", "lookup_hint"]
