"""Which tests a run takes. Those marked `soak` stay out of it unless `--soak` asks for all or for a slice.

A slice is a part of them chosen by a hash of their names, so each test is in one slice of a number, whatever else there
is. Continuous integration runs one slice, chosen by the commit, so that many commits together run all.
"""

from __future__ import annotations

import ast
import os
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from rayflink.testing import HARDSHIPS

Hardship = Callable[[Any, Any, str], None]
WHOLE_JOBS = {"as a job in this process", "as a simulated job"}
FEW_EXAMPLES = 8
SHARE_OF_EXAMPLES = 6
_ONLY_ON_RAY = re.compile(r"\s*(soak\s+and\s+)?ray\s*")
"""Expressions of marks that only tests on Ray match."""
_EXCLUDED = re.compile(r"not (\w+)")
ALL_EXAMPLES = pytest.StashKey[bool]()
"""Of a test of hypothesis that tries all examples it asks for, as it is in the slice that is run."""
SETTINGS = "_hypothesis_internal_use_settings"
"""Where hypothesis keeps what a test's own `@settings` says; there is no other way to it once a test is made."""


@dataclass(frozen=True)
class Slice:
    """The tests of one part of `count`.

    Args:
        number: in [1, count].
    """

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Slice:
        """A slice of `K/N`, or all tests of `all`.

        Raises:
            pytest.UsageError: the text is neither.
        """
        if text == "all":
            return cls(1, 1)
        found = re.fullmatch(r"(\d+)/(\d+)", text)
        number, count = map(int, found.groups()) if found else (0, 0)
        if not 1 <= number <= count:
            raise pytest.UsageError(f"found {text!r}, wanted 'all' or K/N with 1 <= K <= N, such as 3/8")
        return cls(number, count)

    def __contains__(self, name: str) -> bool:
        return zlib.crc32(name.encode()) % self.count == self.number - 1


SAMPLE = Slice(1, 3)
"""Tests of operators whose cases run as whole jobs each day."""


def add_option(parser: pytest.Parser) -> None:
    """Add `--soak` to the command line."""
    message = "run the tests marked `soak` too: all of them, or the part K of N, such as 3/8"
    parser.addoption("--soak", metavar="all|K/N", default="", help=message)
    message = "of all files of tests, take only the part K of N"
    parser.addoption("--part", metavar="K/N", default="", help=message)


def is_left_out(file: Path, config: pytest.Config) -> bool:
    """Return whether a file of tests is not of the part that `--part` takes, or has none that the marks let run.

    Such a file is not imported. To import and collect all of them takes longer than a third of the fast tests.
    """
    if not file.name.startswith("test_") or file.suffix != ".py":
        return False
    asked = config.getoption("--part")
    if asked and os.path.relpath(file, config.rootpath) not in Slice.parse(asked):
        return True
    marks: str = config.option.markexpr
    if _ONLY_ON_RAY.fullmatch(marks):
        return not marks_ray(file)
    excluded = excluded_marks(marks)
    return bool(excluded) and not excluded.isdisjoint(marks_of_module(file.read_text(encoding="utf-8")))


def excluded_marks(expression: str) -> set[str]:
    """Return the marks with which no test runs under an expression of marks, as far as it is a list of `not MARK`."""
    found = [_EXCLUDED.fullmatch(part.strip()) for part in expression.split(" and ")]
    return {match[1] for match in found if match} if all(found) else set()


def marks_of_module(text: str) -> set[str]:
    """Return the marks in `pytestmark` of a module, which all of its tests bear."""
    if "\npytestmark" not in text:
        return set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            marks = node.value.elts if isinstance(node.value, ast.List) else [node.value]
            attributes = [mark.func if isinstance(mark, ast.Call) else mark for mark in marks]
            return {attribute.attr for attribute in attributes if isinstance(attribute, ast.Attribute)}
    return set()


def marks_ray(file: Path) -> bool:
    """Return whether a file of tests names the mark of those on Ray."""
    return "mark.ray" in file.read_text(encoding="utf-8")


def check_marks(items: list[pytest.Item]) -> None:
    """Check that each test on Ray says so in its file, for the others are left out by that.

    Raises:
        pytest.UsageError: a test on Ray is in a file without the mark.
    """
    for file in {item.path for item in items if item.get_closest_marker("ray")}:
        if not marks_ray(file):
            raise pytest.UsageError(f"{file} has tests on Ray, but `mark.ray` is not in it: `-m ray` leaves it out")


def deselect(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take the soak tests that do not run out of `items`; a test that a command names runs in any case."""
    asked = config.getoption("--soak") or ("all" if re.search(r"\bsoak\b", config.option.markexpr) else "")
    part = Slice.parse(asked) if asked else None

    def runs(item: pytest.Item) -> bool:
        if item.get_closest_marker("soak") is None or _is_named(item, config):
            return True
        return part is not None and item.nodeid in part

    kept = [item for item in items if runs(item)]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if not runs(item)])
        items[:] = kept


def limit_examples(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let tests of hypothesis that ask for many examples try a part of them, but for those of the slice that is run.

    The examples are others in each run, so that what is not tried today is tried on another day.
    """
    part = Slice.parse(config.getoption("--soak")) if config.getoption("--soak") else None
    for item in items:
        function = getattr(item, "function", None)
        asked = getattr(function, SETTINGS, None)
        if asked is None or asked.max_examples <= FEW_EXAMPLES:
            continue
        if part is not None and item.nodeid in part:
            item.stash[ALL_EXAMPLES] = True
        else:
            fewer = settings(asked, max_examples=max(FEW_EXAMPLES, asked.max_examples // SHARE_OF_EXAMPLES))
            setattr(function, SETTINGS, fewer)


def sample_jobs(config: pytest.Config) -> None:
    """Let `verify` run a case as a whole job in a part of the tests; all its other hardships are in each.

    Those of the slice that is run have the whole jobs, too; and on Ray all cases run as whole jobs.
    """
    part = Slice.parse(config.getoption("--soak")) if config.getoption("--soak") else None
    for name in WHOLE_JOBS & HARDSHIPS.keys():
        HARDSHIPS[name] = _sampled(HARDSHIPS[name], part)


def _sampled(hardship: Hardship, part: Slice | None) -> Hardship:
    def check(case: Any, expected: Any, name: str) -> None:
        test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
        always = not test.startswith("tests/operators/") or test in SAMPLE
        if always or (part is not None and test in part):
            hardship(case, expected, name)

    return check


def is_long(item: pytest.Item) -> bool:
    """Return whether a test takes longer here than day by day: it is marked, or tries all its examples."""
    return item.get_closest_marker("soak") is not None or item.stash.get(ALL_EXAMPLES, False)


def _is_named(item: pytest.Item, config: pytest.Config) -> bool:
    """Whether an argument of the command is the test, or the function or class that it comes from."""
    _, _, name = item.nodeid.partition("::")
    for argument in config.args:
        path, _, named = argument.partition("::")
        if named and Path(config.invocation_params.dir, path).resolve() == item.path.resolve():
            if name == named or name.startswith((f"{named}[", f"{named}::")):
                return True
    return False
