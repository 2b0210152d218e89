"""Sinks of PostgreSQL keep their promise through crashes at every place, restores, rescaling and lost connections."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager

import pytest

from rayflink.common import Row, Types
from rayflink.common.connector_base.delivery_guarantee import DeliveryGuarantee
from rayflink.common.connector_base.sink import Sink
from rayflink.connectors.jdbc.jdbc_sink import JdbcSink
from rayflink.connectors.postgres.postgres_sink import PostgresSink
from rayflink.datastream.connectors.jdbc import JdbcConnectionOptions
from rayflink.testing import SinkSubject, check_sink
from tests.connectors.postgres.postgres_table import dsn, execute, numbers_in, refusing, server, url_of

pytestmark = pytest.mark.slow
__all__ = ["dsn", "server"]
NUMBER = Types.ROW_NAMED(["n"], [Types.INT()])
SEEDS = pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 20))])


class Table(SinkSubject):
    """The table `t`; an outage is a server that ends all connections and refuses new ones."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        execute(dsn, "TRUNCATE t")

    def create_sink(self) -> Sink:
        return PostgresSink(self.dsn, "t", ["n"])

    def record(self, number: int) -> object:
        return (number,)

    def read(self) -> Iterable[int]:
        return numbers_in(self.dsn)

    def outage(self) -> AbstractContextManager[None]:
        return refusing(self.dsn)


class JdbcTable(Table):
    """The same, written by a statement of JDBC."""

    guarantee = DeliveryGuarantee.AT_LEAST_ONCE
    statement = "INSERT INTO t (n) VALUES (?)"

    def create_sink(self) -> Sink:
        builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url_of(self.dsn))
        return JdbcSink.sink(self.statement, NUMBER, builder.with_user_name("postgres").build())

    def record(self, number: int) -> Row:
        return Row(number)


class JdbcUpserts(JdbcTable):
    """The same by key: repeated rows change nothing."""

    guarantee = DeliveryGuarantee.EXACTLY_ONCE
    statement = "INSERT INTO t (n) VALUES (?) ON CONFLICT (n) DO NOTHING"


@SEEDS
def test_the_sink_writes_each_record_once(dsn: str, seed: int) -> None:
    check_sink(lambda: Table(dsn), [seed])


@SEEDS
def test_the_sink_of_jdbc_writes_each_record_at_least_once(dsn: str, seed: int) -> None:
    check_sink(lambda: JdbcTable(dsn), [seed], records=120)


@SEEDS
def test_upserts_of_jdbc_leave_each_record_once(dsn: str, seed: int) -> None:
    execute(dsn, "ALTER TABLE t ADD UNIQUE (n)")
    check_sink(lambda: JdbcUpserts(dsn), [seed], records=120)
