"""The pages on SQL and the Table API: their examples run."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from tests.test_site import WITH_RAY, blocks, check_session

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
TUTORIAL = DOCS / "sql-tutorial.md"


@pytest.mark.slow
@pytest.mark.parametrize("page", ["sql.md", "table-api.md", "planner-rules.md"])
def test_the_examples_of_a_page_give_what_it_shows(page):
    found = doctest.testfile(str(DOCS / page), module_relative=False)
    assert found.attempted > 6 and found.failed == 0


@pytest.mark.slow
@pytest.mark.parametrize("page", ["sql-match.md", "sql-over.md", "sql-plans.md", "sql-process-table-functions.md"])
def test_the_example_of_a_clause_gives_what_its_page_shows(page):
    found = doctest.testfile(str(DOCS / page), module_relative=False)
    assert found.attempted > 6 and found.failed == 0


@pytest.mark.slow
def test_the_example_of_lookup_joins_gives_what_the_page_shows():
    found = doctest.testfile(str(DOCS / "sql-lookup-joins.md"), module_relative=False)
    assert found.attempted > 6 and found.failed == 0


@pytest.mark.slow
def test_every_command_of_the_tutorial_prints_what_stands_below_it(tmp_path):
    assert check_session(tmp_path, TUTORIAL) >= 9


def test_every_session_of_the_tutorial_is_run():
    found = blocks(TUTORIAL)
    sessions = {title for kind, title, _ in found if kind == "console"}
    assert sessions == {"", WITH_RAY}  # the latter in tests/cluster/programs/test_examples_on_ray.py
    assert {kind for kind, _, _ in found} == {"console", "python"}
    assert all(title for kind, title, _ in found if kind == "python")
