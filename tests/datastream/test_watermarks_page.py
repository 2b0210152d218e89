"""The examples of docs/watermarks.md and of the strategy's docstrings run and give what they show."""

from __future__ import annotations

import doctest
from pathlib import Path

from rayflink.common import watermarks


def test_the_examples_of_the_page_run(repository: Path) -> None:
    page = str(repository / "docs" / "watermarks.md")
    found = doctest.testfile(page, module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted >= 18 and found.failed == 0


def test_the_examples_of_the_docstrings_run() -> None:
    found = doctest.testmod(watermarks)
    assert found.attempted >= 4 and found.failed == 0
