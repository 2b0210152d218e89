"""The page about patterns: its programs run, and print what it shows."""

from __future__ import annotations

import doctest

import pytest

from tests.source_files import ROOT
from tests.test_site import check_session


@pytest.mark.slow
def test_the_programs_of_the_page_print_what_it_shows() -> None:
    results = doctest.testfile(str(ROOT / "docs" / "cep.md"), module_relative=False)
    assert results.attempted > 20 and results.failed == 0


@pytest.mark.slow
def test_every_command_of_the_tutorial_prints_what_stands_below_it(tmp_path):
    assert check_session(tmp_path, ROOT / "docs" / "cep-tutorial.md") == 5
