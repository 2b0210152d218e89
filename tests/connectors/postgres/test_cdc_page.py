"""The examples of docs/cdc.md run and give what they show."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from benchmarks.servers.postgres_server import PostgresServer
from tests.connectors.postgres.test_postgres_cdc import running, server  # noqa: F401  # fixtures

PAGE = Path(__file__).parents[3] / "docs" / "cdc.md"
MODULES = ("cdc.chunks", "postgres.pgoutput", "postgres.postgres_values", "postgres.snapshot_marks")


@pytest.mark.slow
def test_the_examples_of_the_page_run(server: PostgresServer) -> None:  # noqa: F811
    names = {"dsn": server.dsn, "host": str(server.home)}
    found = doctest.testfile(str(PAGE), module_relative=False, extraglobs=names, globs={})
    assert found.attempted >= 20 and found.failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_the_docstrings_run(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"rayflink.connectors.{name}"))
    assert found.attempted > 0 and found.failed == 0
