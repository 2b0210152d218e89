"""What docs/pyflink.md says is so; what it says of logs and of Ray is shown by the tests of the examples."""

from __future__ import annotations

import doctest

import pytest

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.slow
def test_the_examples_of_the_page_run(repository):
    found = doctest.testfile(str(repository / "docs" / "pyflink.md"), module_relative=False, optionflags=FLAGS)
    assert found.attempted > 50
    assert found.failed == 0
