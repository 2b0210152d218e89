"""The examples of docs/cdc-mysql.md run and give what they show."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from benchmarks.servers.mysql_server import MySqlServer

PAGE = Path(__file__).parents[3] / "docs" / "cdc-mysql.md"


@pytest.mark.slow
def test_the_examples_of_the_page_run(server: MySqlServer) -> None:
    names = {"host": "127.0.0.1", "port": server.port, "user": server.user, "password": server.password}
    found = doctest.testfile(str(PAGE), module_relative=False, extraglobs=names, globs={})
    assert found.attempted >= 10 and found.failed == 0
