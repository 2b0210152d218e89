"""What docs/pyflink.md says works otherwise than in PyFlink works so; its section on logs is in test_pyflink_examples.py."""

from __future__ import annotations

import doctest

import pytest

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.slow
def test_the_examples_of_the_page_run(repository):
    found = doctest.testfile(str(repository / "docs" / "pyflink.md"), module_relative=False, optionflags=FLAGS)
    assert found.attempted > 50
    assert found.failed == 0
