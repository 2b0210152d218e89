"""A failure that shows half a surrogate pair is reported, and does not end a divided run."""

from __future__ import annotations

import doctest
import subprocess
import sys
from pathlib import Path

import pytest

from tests.suite import sendable_reports

FAILS = '''
import sys

def test_fails():
    print("odd \\ud800", file=sys.stderr)
    assert "odd \\ud800" == "even"
'''


def test_the_example_runs() -> None:
    assert doctest.testmod(sendable_reports).failed == 0


@pytest.mark.slow
def test_a_failure_with_half_a_pair_is_one_failure_of_a_divided_run(tmp_path: Path) -> None:
    (tmp_path / "test_odd.py").write_text(FAILS)
    plugin = "from tests.suite.sendable_reports import SendableReports\n"
    plugin += "def pytest_configure(config):\n    config.pluginmanager.register(SendableReports())\n"
    (tmp_path / "conftest.py").write_text(plugin)
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "pytest", "-n1", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", str(tmp_path)]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=90)
    assert ended.returncode == 1 and "1 failed" in ended.stdout and "INTERNALERROR" not in ended.stdout
