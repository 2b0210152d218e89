"""The examples of docs/testing.md and of the test kit's own docstrings run and give what they show."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = (
    "conformance", "elements", "faults", "hardships", "harness", "simulation", "sources", "storage_laws", "story",
)  # fmt: skip


@pytest.mark.slow
def test_the_examples_of_the_page_run(repository):
    page = repository / "docs" / "testing.md"
    found = doctest.testfile(
        str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    assert found.attempted > 20
    assert found.failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_the_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(f"rayflink.testing.{name}")).failed == 0
