"""The page on SQL: its examples run."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "sql.md"


@pytest.mark.slow
def test_the_examples_of_the_page_give_what_it_shows():
    found = doctest.testfile(str(PAGE), module_relative=False)
    assert found.attempted > 6 and found.failed == 0
