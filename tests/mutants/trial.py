"""Run tests against changes of the product, each in a process of its own that ends with it.

A process imports what the tests import, and forks for each change: the child puts the changed code into the functions
that exist, runs the tests, and ends. So a change touches no file, and nothing is imported twice.
"""

from __future__ import annotations

import ast
import gc
import importlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from enum import Enum
from io import StringIO
from types import CodeType, FunctionType

import pytest
from hypothesis import Phase, settings

from tests.mutants.tracing import QUIETLY, ROOT

settings.register_profile(
    "mutants", deadline=None, max_examples=25, phases=[Phase.explicit, Phase.generate], database=None
)
"""Without the search for the smallest example that fails."""
NOT_TRIED = 77
"""How a child ends that could not put its change in place."""
ALL, FAST = "not ray and not spark", "not ray and not spark and not slow"
"""Marks of tests."""


class Verdict(Enum):
    """What became of a change."""

    FAILED = "a test failed"
    HUNG = "a test did not end"
    ELSEWHERE = "another test failed"
    SURVIVED = "all tests passed"
    NOT_TRIED = "the change cannot be put in place"


@dataclass(frozen=True)
class Change:
    """A module of the product with other code.

    Args:
        path: of the module, relative to the repository.
        tree: what it becomes; its functions stand in the same lines.
    """

    path: str
    tree: ast.Module


def module_name(path: str) -> str:
    """The name under which the file at a path is imported."""
    name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return name if name.startswith("rayflink") else f"rayflink.{name}"


def put_in_place(change: Change) -> int:
    """Give all functions of the module that exist their changed code; returns how many got it.

    Raises: ValueError: a changed function uses other variables of its surroundings than the one that exists.
    """
    importlib.import_module(module_name(change.path))
    file = str(ROOT / change.path)
    before = _functions(compile((ROOT / change.path).read_text(encoding="utf-8"), file, "exec"))
    after = _functions(compile(change.tree, file, "exec"))
    changed = {key: code for key, code in after.items() if key in before and before[key] != code}
    gc.unfreeze()
    count = 0
    for function in [each for each in gc.get_objects() if isinstance(each, FunctionType)]:
        code = function.__code__
        if os.path.realpath(code.co_filename) == file and (new := changed.get((code.co_name, code.co_firstlineno))):
            function.__code__ = new
            count += 1
    return count


def _functions(code: CodeType) -> dict[tuple[str, int], CodeType]:
    found = {}
    for inner in (each for each in code.co_consts if isinstance(each, CodeType)):
        found |= {(inner.co_name, inner.co_firstlineno): inner, **_functions(inner)}
    return found


def run(tests: Sequence[str], marks: str) -> int:
    """Run tests in this process without output; returns what pytest returns."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        return int(pytest.main([*QUIETLY, "-m", marks, "-x", "--hypothesis-profile=mutants", *tests]))


def imported(tests: Sequence[str]) -> bool:
    """Import what tests import; False when they cannot be collected."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        return int(pytest.main([*QUIETLY, "--collect-only", *tests])) == 0


def try_change(change: Change | None, tests: Sequence[str], timeout_s: float, marks: str = ALL) -> Verdict:
    """Run tests with these marks against a change, or without one, in a child of this process."""
    child = os.fork()
    if child == 0:
        os.setpgrp()
        code = NOT_TRIED
        try:
            if change is None or _is_in_place(change):
                code = run(tests, marks)
        except BaseException:  # a change that breaks even the end of the tests is noticed
            code = 1
        finally:
            os._exit(code)
    return _ended(child, timeout_s)


def _is_in_place(change: Change) -> bool:
    try:
        return put_in_place(change) > 0
    except Exception:
        return False


def _ended(child: int, timeout_s: float) -> Verdict:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return {0: Verdict.SURVIVED, NOT_TRIED: Verdict.NOT_TRIED}.get(code, Verdict.FAILED)
        time.sleep(0.02)
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return Verdict.HUNG


class Trials:
    """Runs changes against tests, which first run without one and then get five times as long, and 20 s.

    What tests import is imported before, by `imported`.
    """

    def __init__(self) -> None:
        self._timeouts: dict[tuple[str, ...], float] = {}

    def verdict(self, tests: tuple[str, ...], change: Change, marks: str = ALL) -> Verdict:
        """What becomes of a change; it is not tried where the tests do not pass without it."""
        sys.stdout.flush()
        sys.stderr.flush()
        if tests not in self._timeouts:
            began = time.monotonic()
            passed = try_change(None, tests, 120, marks) is Verdict.SURVIVED
            self._timeouts[tests] = 20 + 5 * (time.monotonic() - began) if passed else 0
        timeout_s = self._timeouts[tests]
        return try_change(change, tests, timeout_s, marks) if timeout_s else Verdict.NOT_TRIED


__all__ = ["ALL", "FAST", "Change", "Trials", "Verdict", "imported", "module_name", "put_in_place"]
