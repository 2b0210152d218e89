"""What the tests take is within their budget, and what is not is reported with the tests that cause it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.suite.leftovers import MARK
from tests.suite.process_times import ProcessTimes
from tests.suite.time_budget import KINDS, RECORD, Budget, by_folder, folder_of

RECORDED = json.loads(RECORD.read_text()) if RECORD.exists() else {}
SMALL = Budget({"fast": 5}, {"fast": 2.0}, 2.0, 0.5, 20.0, {"fast": {"state": 3, "tests": 1}})
TABLES = "tests/state/test_tables.py::test_a"


@pytest.mark.parametrize("kind", KINDS)
def test_budgets_of_folders_stay_within_the_limit_of_all(kind):
    budget = Budget.read()
    assert sum(budget.folders[kind].values()) <= budget.limits[kind], "give as much time back in another folder"


@pytest.mark.parametrize("kind", RECORDED)
def test_no_folder_takes_more_than_its_budget(kind):
    allowed = Budget.read().folders[kind]
    over = {folder: found["seconds"] for folder, found in RECORDED[kind].items()}
    over = {folder: took for folder, took in over.items() if took > allowed.get(folder, 0)}
    assert not over, "make these quicker, or mark what is long by nature soak; `make times` writes the record"


@pytest.mark.parametrize("kind", RECORDED)
def test_the_slowest_tests_are_there_and_each_is_within_what_a_test_may_take(kind):
    longest = Budget.read().longest[kind]
    for found in RECORDED[kind].values():
        for test, took in found["slowest"].items():
            assert took <= longest, f"{test}: make it quicker, or mark it"


def test_a_test_and_a_folder_that_take_too_long_are_named():
    spent = {"fast": {f"{TABLES}[1]": 5.5, f"{TABLES}[2]": 2.0, "tests/test_public_api.py::test_b": 1.0}}
    assert by_folder(spent["fast"]) == {"state": 7.5, "tests": 1.0}
    first, second = SMALL.exceeded(spent)
    assert first == f"{TABLES}[1] took 5.5 s of CPU time, a fast test 2 s: mark it slow"
    assert second == (
        "state: fast tests took 7.5 s of CPU time, their budget is 3 s, others took 1.0 times theirs or less: "
        f"{TABLES}[1] 5.5 s, {TABLES}[2] 2.0 s"
    )


def test_a_machine_that_is_slowed_down_by_other_work_says_nothing_of_a_folder():
    spent = {f"{TABLES}[{number}]": 21.0 * 0.6 for number in range(5)}
    assert not list(SMALL.exceeded({"fast": {**spent, "tests/test_b.py::test_b": 60.0}}))


@pytest.mark.parametrize("slower", [1.0, 2.5, 10.0])
def test_on_a_slower_machine_only_a_folder_that_takes_a_larger_part_is_too_long(slower):
    spent = {f"{TABLES}[{number}]": 0.6 * slower for number in range(5)}
    assert not list(SMALL.exceeded({"fast": {**spent, "tests/test_b.py::test_b": 1.0 * slower}}))
    (line,) = SMALL.exceeded({"fast": {**spent, "tests/test_b.py::test_b": 2.5 * slower}})
    assert line.startswith(f"tests: fast tests took {2.5 * slower:.1f} s of CPU time, their budget is 1 s")


def test_two_large_folders_that_are_both_too_slow_do_not_excuse_each_other():
    folders = {"cluster": 9.0, "spark": 6.0, "state": 1.0, "table": 1.0, "tests": 1.0}
    budget = Budget({"ray": 18}, {"ray": 99.0}, 2.5, 0.5, 20.0, {"ray": folders})
    factors = {"cluster": 4, "spark": 4, "state": 1, "table": 1, "tests": 1}
    spent = {f"tests/{folder}/test_{folder}.py::test": factors[folder] * folders[folder] for folder in folders}
    lines = list(budget.exceeded({"ray": {test.replace("tests/tests", "tests"): took for test, took in spent.items()}}))
    assert [line.partition(":")[0] for line in lines] == ["cluster", "spark"]


def test_a_folder_without_a_budget_may_take_what_is_not_noticed():
    assert folder_of("tests/table/runtime/ranks/test_sorting.py::TestLife::runTest") == "table"
    (line,) = SMALL.exceeded({"fast": {"tests/new/test_c.py::test_c": 0.6}})
    assert line.startswith("new: fast tests took 0.6 s of CPU time, their budget is 0 s")
    assert not list(SMALL.exceeded({"fast": {"tests/new/test_c.py::test_c": 0.4}}))


class Processes:
    """A list of processes as Linux shows it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def show(self, pid: int, parent: int, ticks: int, environment: str = "") -> None:
        (self.folder / str(pid)).mkdir(exist_ok=True)
        fields = ["S", str(parent), *"0" * 9, str(ticks), "0", "7", "7"]
        (self.folder / str(pid) / "stat").write_text(f"{pid} (ray::(x) y) {' '.join(fields)}")
        (self.folder / str(pid) / "environ").write_text(environment)

    def end(self, pid: int) -> None:
        shutil.rmtree(self.folder / str(pid))


def test_processes_of_a_run_are_counted_when_they_have_ended_or_changed_names(tmp_path, monkeypatch):
    monkeypatch.setenv(MARK, "mine")
    listed, times, a_second = Processes(tmp_path), ProcessTimes(tmp_path), os.sysconf("SC_CLK_TCK")
    listed.show(1, 0, 50 * a_second)
    listed.show(7, 1, 2 * a_second, f"A=b\0{MARK}=mine\0")
    listed.show(8, 7, a_second)
    listed.show(9, 1, 90 * a_second, f"{MARK}=another\0")
    times.look()
    assert times.total() == 3
    listed.show(8, 7, 4 * a_second)
    listed.show(10, os.getpid(), a_second)
    times.look()
    assert times.total() == 7
    listed.end(8)
    times.look()
    assert times.total() == 7
