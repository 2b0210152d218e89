"""What the tests take is within their budget, and what is not is reported with the tests that cause it."""

from __future__ import annotations

import json

import pytest

from tests.suite.time_budget import KINDS, RECORD, Budget, by_folder, folder_of

RECORDED = json.loads(RECORD.read_text()) if RECORD.exists() else {}
SMALL = Budget({"fast": 5}, {"fast": 2.0}, 2.0, {"fast": {"state": 3, "tests": 1}})
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
    spent = {"fast": {f"{TABLES}[1]": 2.5, f"{TABLES}[2]": 1.0, "tests/test_public_api.py::test_b": 1.0}}
    assert by_folder(spent["fast"]) == {"state": 3.5, "tests": 1.0}
    first, second = SMALL.exceeded(spent)
    assert first == f"{TABLES}[1] took 2.5 s of CPU time, a fast test 2 s: mark it slow"
    assert second == (
        f"state: fast tests took 3.5 s of CPU time, their budget is 3 s: {TABLES}[1] 2.5 s, {TABLES}[2] 1.0 s"
    )
    assert not list(SMALL.exceeded(spent, tolerance=1.5))


def test_a_folder_without_a_budget_may_take_nothing():
    assert folder_of("tests/table/runtime/ranks/test_sorting.py::TestLife::runTest") == "table"
    (line,) = SMALL.exceeded({"fast": {"tests/new/test_c.py::test_c": 0.1}})
    assert line.startswith("new: fast tests took 0.1 s of CPU time, their budget is 0 s")
