"""The examples of docs/catalogs.md run and give what they show."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "catalogs.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL


@pytest.mark.slow
def test_the_examples_run(tmp_path: Path) -> None:
    names = {"folder": tmp_path}
    parsed = doctest.DocTestParser().get_doctest(PAGE.read_text(), names, PAGE.name, str(PAGE), 0)
    result = doctest.DocTestRunner(optionflags=FLAGS).run(parsed)
    assert (result.failed, result.attempted > 15) == (0, True)
