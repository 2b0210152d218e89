"""A pytest plugin that records which lines of the product each test runs, its fixtures included."""

from __future__ import annotations

import json
import sys
import threading
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = tuple(f"{ROOT / folder}/" for folder in ("rayflink", "actors", "state"))

QUIETLY = ["-q", "-n0", "-p", "no:cacheprovider", "--no-header", "--no-summary", "--tb=no", "--hypothesis-seed=0",
           "-m", "not ray and not spark"]  # fmt: skip

Lines = dict[str, set[int]]
"""Path relative to the repository to the numbers of lines that ran in functions there."""


class Tracing:
    """Records the `lines` that each test runs, parameters taken together, and its `seconds`."""

    def __init__(self) -> None:
        self.lines: dict[str, Lines] = {}
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.failed: set[str] = set()
        self._files: dict[str, str] = {}
        self._now: Lines = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Trace all threads that begin while the test runs."""
        self._now = self.lines.setdefault(test_of(item.nodeid), {})
        before = sys.gettrace()
        threading.settrace(self._enter)
        sys.settrace(self._enter)
        try:
            return (yield)
        finally:
            sys.settrace(before)
            threading.settrace(before)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the time of a test, and whether it failed or was skipped."""
        name = test_of(report.nodeid)
        self.seconds[name] += report.duration
        if not report.passed:
            self.failed.add(name)

    def _enter(self, frame: FrameType, event: str, argument: object) -> Any:
        path = self._path(frame.f_code)
        if not path or frame.f_code.co_name == "<module>":
            return None
        lines = self._now.setdefault(path, set())

        def line(frame: FrameType, event: str, argument: object) -> Any:
            if event == "line":
                lines.add(frame.f_lineno)
            return line

        return line

    def _path(self, code: CodeType) -> str:
        name = code.co_filename
        if name not in self._files:
            resolved = str(Path(name).resolve()) if name.endswith(".py") else ""
            self._files[name] = resolved.removeprefix(f"{ROOT}/") if resolved.startswith(PRODUCT) else ""
        return self._files[name]


def test_of(nodeid: str) -> str:
    """The name of a test without its parameters."""
    return nodeid.partition("[")[0]


def main(out: str, tests: list[str]) -> int:
    """Run tests and write what each ran, as JSON: its seconds and its lines; without those that do not pass."""
    tracing = Tracing()
    pytest.main([*QUIETLY, *tests], plugins=[tracing])
    passed = {name: lines for name, lines in tracing.lines.items() if name not in tracing.failed}
    found = {
        name: {"seconds": tracing.seconds[name], "lines": {path: sorted(known) for path, known in lines.items()}}
        for name, lines in passed.items()
    }
    Path(out).write_text(json.dumps(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
