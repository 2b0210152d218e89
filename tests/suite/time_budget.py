"""How much processor time each folder of tests may take, and how much it takes.

`time_budget.yaml` gives each folder seconds of CPU time, and their sums have limits: a folder that needs more must get
it from another. `times.json` holds what the last recorded run took; `make times` writes it, and so does
`make test OPTIONS=--write-times`. Each run of all tests on Ray or without it is measured too, and fails where a folder
takes a multiple of its budget although the other folders keep to theirs: on a slower machine, or where the tests share
its processors with others, all of them take more.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import yaml

from tests.suite.process_times import ProcessTimes
from tests.suite.side_by_side import is_whole
from tests.suite.soak import is_long

HERE = Path(__file__).resolve().parent
RECORD = HERE / "times.json"
KINDS = ("fast", "local", "ray")
"""Tests of every day; all those without Ray; those on Ray. Long ones, which are marked `soak`, are in none."""
SLOWEST = 5
"""Tests of each folder and kind that the record names."""
_SPENT, _FAST = "cpu seconds", "is fast"

Seconds = Mapping[str, Mapping[str, float]]
"""Kind -> test or folder -> seconds of CPU time."""


@dataclass(frozen=True)
class Budget:
    """What is allowed.

    Args:
        limits: kind -> CPU seconds of all folders together.
        longest: kind -> CPU seconds of one test.
        tolerance: how many times its budget a folder may take in a run in which the others take theirs.
        unnoticed: CPU seconds that a folder may take in a run in any case.
        steady: how many times their budgets the others take at most in a run that says anything: where they take more,
            the machine is slowed down by others, now more and now less.
        folders: kind -> folder -> CPU seconds.
    """

    limits: Mapping[str, float]
    longest: Mapping[str, float]
    tolerance: float
    unnoticed: float
    steady: float
    folders: Seconds

    @classmethod
    def read(cls) -> Budget:
        """The budget of this repository."""
        return cls(**yaml.safe_load((HERE / "time_budget.yaml").read_text(encoding="utf-8")))

    def exceeded(self, spent: Seconds) -> Iterator[str]:
        """What takes too long in a run, a line each, however fast the machine is.

        Args:
            spent: by test.
        """
        for kind, seconds in spent.items():
            folders = by_folder(seconds)
            for test, took in seconds.items():
                most, pace = self.longest[kind], self.pace(kind, folders, folder_of(test))
                if pace <= self.steady and took > most and took > most * self.tolerance * pace:
                    advice = f"mark it {'slow' if kind == 'fast' else 'soak'}"
                    yield f"{test} took {took:.1f} s of CPU time, a {kind} test {most:g} s: {advice}"
            for folder, took in folders.items():
                budget, pace = self.folders[kind].get(folder, 0), self.pace(kind, folders, folder)
                if pace <= self.steady and took > max(budget * self.tolerance * pace, self.unnoticed):
                    named = ", ".join(f"{test} {seconds[test]:.1f} s" for test in slowest(seconds, folder))
                    message = f"{folder}: {kind} tests took {took:.1f} s of CPU time, their budget is {budget:g} s"
                    yield f"{message}, others took {pace:.1f} times theirs or less: {named}"

    def pace(self, kind: str, folders: Mapping[str, float], folder: str) -> float:
        """Return how many times their budgets the folders other than one take, at least 1: the median of the folders.

        Args:
            folders: what each has taken.
        """
        budgets = {other: self.folders[kind].get(other, 0) for other in folders.keys() - {folder}}
        ratios = [folders[other] / budget for other, budget in budgets.items() if budget >= self.unnoticed]
        return max(1.0, median(ratios)) if ratios else 1.0


def folder_of(test: str) -> str:
    """The folder below tests/ that a test belongs to; "tests" for those that lie there."""
    parts = test.partition("::")[0].split("/")
    return parts[1] if len(parts) > 2 else parts[0]


def by_folder(seconds: Mapping[str, float]) -> dict[str, float]:
    """Folder -> CPU seconds of its tests."""
    sums: defaultdict[str, float] = defaultdict(float)
    for test, took in seconds.items():
        sums[folder_of(test)] += took
    return dict(sorted(sums.items()))


def slowest(seconds: Mapping[str, float], folder: str) -> list[str]:
    """The tests of a folder that take most, the worst first."""
    tests = [test for test in seconds if folder_of(test) == folder]
    return sorted(tests, key=lambda test: -seconds[test])[:SLOWEST]


class Recorder:
    """A plugin that measures each test, in whichever process it runs, and looks at the sums at the end.

    Args:
        config: with the option `--write-times`, to keep what was measured.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._writes = bool(config.getoption("--write-times"))
        self._is_whole = is_whole(config) and "ray" in config.option.markexpr
        self._began = 0.0
        self._ended: float | None = None
        self._spent: dict[str, dict[str, float]] = {kind: {} for kind in KINDS}
        self._exceeded: list[str] = []
        self._others = ProcessTimes()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self._began = self._cpu_seconds(item)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Behind the last test of a process all shared servers end, whose time is not that test's."""
        self._ended = self._cpu_seconds(item) if nextitem is None else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        if call.when == "teardown" and not is_long(item):
            kind = "ray" if item.get_closest_marker("ray") else "local" if item.get_closest_marker("slow") else "fast"
            ended = self._cpu_seconds(item) if self._ended is None else self._ended
            item.user_properties.append((_SPENT, (kind, ended - self._began)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties if report.when == "teardown" else ():
            if name == _SPENT:
                kind, took = value
                for each in ("fast", "local") if kind == "fast" else (kind,):
                    self._spent[each][report.nodeid] = took

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workerinput") or not self._is_whole:
            return
        if self._writes:
            write(self._spent)
        self._exceeded = list(Budget.read().exceeded(self._spent))
        if self._exceeded and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for kind, seconds in self._spent.items() if self._is_whole else ():
            if seconds:
                parts = [f"{folder} {took:.0f}" for folder, took in by_folder(seconds).items()]
                terminalreporter.line(f"CPU seconds, {kind}: {sum(seconds.values()):.0f}; {', '.join(parts)}")

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Print what took too long behind all else, where it is seen, and not cut off."""
        self._others.close()
        terminal = config.pluginmanager.get_plugin("terminalreporter")
        for line in self._exceeded if terminal is not None else ():
            terminal.line(f"TOO LONG: {line}", red=True)

    def _cpu_seconds(self, item: pytest.Item) -> float:
        """Of this process and its children that have ended; with Ray, of all processes of the run."""
        times = os.times()
        own = times.user + times.system
        if item.get_closest_marker("ray"):
            return own + self._others.seconds()
        return own + times.children_user + times.children_system


def write(spent: Seconds) -> None:
    """Put what was measured into the record; what was not run stays as it is."""
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for kind, seconds in spent.items():
        if seconds:
            record[kind] = {
                folder: {
                    "seconds": round(took, 1),
                    "slowest": {test: round(seconds[test], 2) for test in slowest(seconds, folder)},
                }
                for folder, took in by_folder(seconds).items()
            }
    RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
