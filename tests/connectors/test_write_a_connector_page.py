"""The examples of docs/write-a-connector.md run and give what they show."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "write-a-connector.md"


@pytest.mark.slow
def test_the_examples_of_the_page_run() -> None:
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    found = doctest.testfile(str(PAGE), module_relative=False, optionflags=options)
    assert found.attempted >= 25
    assert found.failed == 0
