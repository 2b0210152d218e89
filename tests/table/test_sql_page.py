"""The pages on SQL and the Table API: their examples run."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"


@pytest.mark.slow
@pytest.mark.parametrize("page", ["sql.md", "table-api.md"])
def test_the_examples_of_a_page_give_what_it_shows(page):
    found = doctest.testfile(str(DOCS / page), module_relative=False)
    assert found.attempted > 6 and found.failed == 0
