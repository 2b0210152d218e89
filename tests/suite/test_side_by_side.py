"""Which commands run the tests in several processes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.suite import side_by_side

ROOT = Path(__file__).resolve().parents[2]


def started(monkeypatch: pytest.MonkeyPatch, *arguments: str, niceness: int = 0) -> int:
    """Return how many processes a command would start on a machine of three processors."""
    monkeypatch.setattr(side_by_side, "processors", lambda: 3)
    monkeypatch.setattr(side_by_side, "niceness", lambda: niceness)
    asked: list[int] = []

    @pytest.hookimpl(tryfirst=True)
    def instead_of_running(config: pytest.Config) -> int:
        asked.append(side_by_side.processes(config))
        return 0

    quick = ["--noconftest", "-p", "no:unraisableexception"]  # no search for garbage at the end
    assert pytest.main([*quick, *arguments], [SimpleNamespace(pytest_cmdline_main=instead_of_running)]) == 0
    return asked[0]


@pytest.mark.parametrize(
    ("arguments", "number"),
    [
        (["-m", "not slow and not ray"], 3),
        (["-m", "not ray", "tests"], 3),
        (["-m", "not ray", "."], 3),
        ([], 0),
        (["-m", "ray"], 0),
        (["-m", "not slow"], 0),
        (["-m", "not ray", "tests/state"], 0),
        (["-m", "not ray", "-k", "window"], 0),
        (["-m", "not ray", "-n", "0"], 0),
        (["-m", "not ray", "-n", "2"], 0),
        (["-m", "not ray", "-s"], 0),
        (["-m", "not ray", "--pdb"], 0),
        (["-m", "not ray", "--collect-only"], 0),
        (["-m", "not ray", "-p", "no:xdist"], 0),
    ],
)
def test_only_the_whole_suite_without_ray_is_divided(monkeypatch, arguments, number):
    monkeypatch.chdir(ROOT)
    assert started(monkeypatch, *arguments) == number


def test_a_run_of_low_priority_has_one_process_more(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert started(monkeypatch, "-m", "not ray", niceness=19) == 4
    assert started(monkeypatch, "-m", "ray", niceness=19) == 0
