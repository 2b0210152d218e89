"""The PostgreSQL sink keeps its promise through crashes at every place, restores and rescaling."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from rayflink.common.connector_base.sink import Sink
from rayflink.connectors.postgres.postgres_sink import PostgresSink
from rayflink.testing import SinkSubject, check_sink
from tests.connectors.postgres.postgres_table import ask, dsn, execute, numbers_in, server

pytestmark = pytest.mark.slow
__all__ = ["dsn", "server"]


def test_the_sink_writes_each_record_once(dsn: str) -> None:
    class Table(SinkSubject):
        def __init__(self) -> None:
            execute(dsn, "TRUNCATE t")

        def create_sink(self) -> Sink:
            return PostgresSink(dsn, "t", ["n"])

        def record(self, number: int) -> tuple[int]:
            return (number,)

        def read(self) -> Iterable[int]:
            return numbers_in(dsn)

    check_sink(Table, seeds=range(4))
    assert len(ask(dsn, "SELECT n FROM t")) == 240
