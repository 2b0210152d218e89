"""The page about patterns: its programs run, and print what it shows."""

from __future__ import annotations

import doctest

import pytest

from tests.source_files import ROOT


@pytest.mark.slow
def test_the_programs_of_the_page_print_what_it_shows() -> None:
    results = doctest.testfile(str(ROOT / "docs" / "cep.md"), module_relative=False)
    assert results.attempted > 20 and results.failed == 0
