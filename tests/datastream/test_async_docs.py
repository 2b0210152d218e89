"""The examples of docs/async.md and of the docstrings around async calls run and give what they show."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = (
    "common.user_code.actor_pool", "common.functions.async_retries", "datastream.async_data_stream",
    "operators.async_io.circuit_breaker", "operators.async_io.event_loops", "operators.async_io.pooled_batches",
    "operators.async_io.request_queue",
)  # fmt: skip


def test_the_examples_of_the_page_run(repository):
    page = repository / "docs" / "async.md"
    found = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted >= 15
    assert found.failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_the_docstrings_run(name):
    found = doctest.testmod(importlib.import_module(f"rayflink.{name}"))
    assert found.attempted > 0 and found.failed == 0
