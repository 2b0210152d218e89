"""Changes of rows as columns, written into tables of a real PostgreSQL server."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterable, Sequence
from decimal import Decimal
from random import Random
from typing import Any

import psycopg
import pyarrow
import pytest

from rayflink.common.connector_base.delivery_guarantee import DeliveryGuarantee
from rayflink.common.connector_base.sink import Sink, SinkWriter, WriterContext
from rayflink.common.errors import described
from rayflink.common.records.batches import ArrowBatch, Batch, rows_of
from rayflink.common.records.row_kinds import with_kinds
from rayflink.common.types import RowKind
from rayflink.connectors.postgres.postgres_changes_sink import Flushing, PostgresChangesSink
from rayflink.connectors.postgres.postgres_session import PostgresError
from rayflink.connectors.postgres.postgres_staged import staged_rows
from rayflink.operators.base import UserCodeError
from rayflink.testing import SinkSubject, check_sink
from tests.connectors.postgres.postgres_table import ask, execute, numbers_in, started

pytestmark = pytest.mark.slow
COLUMNS = {"k": pyarrow.int32(), "v": pyarrow.string()}
NEW, B, U, D = (RowKind[name].value for name in ("INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE"))


def changes(*rows: tuple[int, int | None, str | None]) -> ArrowBatch:
    """A batch of (kind, k, v)."""
    kinds, keys, values = zip(*rows, strict=True)
    data = pyarrow.record_batch([pyarrow.array(keys, pyarrow.int32()), pyarrow.array(values, pyarrow.string())],
                                names=["k", "v"])  # fmt: skip
    return ArrowBatch(with_kinds(data, list(kinds)) if any(kinds) else data)


def sink(dsn: str, keys: Sequence[str] = ("k",), exactly_once: bool = False, **more: Any) -> PostgresChangesSink:
    return PostgresChangesSink(dsn, "t", more.pop("columns", COLUMNS), keys, Flushing(**more), exactly_once)


@pytest.mark.parametrize("exactly_once", [False, True])
def test_the_table_follows_the_changes(database: str, exactly_once: bool) -> None:
    execute(database, "CREATE TABLE t (k int PRIMARY KEY, v text NOT NULL UNIQUE, more int DEFAULT 7)")
    draw, model = Random(1), {}
    with started(sink(database, exactly_once=exactly_once, most_rows=9)) as harness:
        for round_ in range(6):
            for _ in range(4):
                rows: list[tuple[int, int | None, str | None]] = []
                for _ in range(8):
                    key, value = draw.randrange(6), f"{draw.random()}"
                    if key in model and draw.random() < 0.4:
                        rows.append((D, key, None if draw.random() < 0.5 else model[key]))
                        del model[key]
                    elif key in model:
                        rows += [(B, key, model[key]), (U, key, value)] if draw.random() < 0.5 else [(U, key, value)]
                        model[key] = value
                    else:
                        rows.append((NEW, key, value))
                        model[key] = value
                harness.process_batch(changes(*rows))
            harness.snapshot(round_ + 1)
            harness.notify_checkpoint_complete(round_ + 1)
            assert dict(ask(database, "SELECT k, v FROM t")) == model
    assert ask(database, "SELECT DISTINCT more FROM t") == [(7,)] and len(model) > 2


@pytest.mark.parametrize("exactly_once", [False, True])
def test_a_row_may_take_the_unique_value_of_one_that_is_deleted(database: str, exactly_once: bool) -> None:
    execute(database, "CREATE TABLE t (k int PRIMARY KEY, v text UNIQUE)", "INSERT INTO t VALUES (1, 'a')")
    with started(sink(database, exactly_once=exactly_once)) as harness:
        harness.process_batch(changes((D, 1, "a"), (NEW, 2, "a"), (B, 3, "x"), (U, 4, "b")))
        harness.end_input()
    assert ask(database, "SELECT * FROM t ORDER BY k") == [(2, "a"), (4, "b")]


def test_rows_are_seen_when_they_are_due(database: str) -> None:
    execute(database, "CREATE TABLE t (k int, v text)")
    with started(sink(database, (), most_rows=3, interval_ms=500)) as harness:
        harness.process_batch(changes((NEW, 1, "a")))
        assert ask(database, "SELECT * FROM t") == []
        harness.set_processing_time(499)
        assert ask(database, "SELECT * FROM t") == []
        harness.set_processing_time(500)
        assert ask(database, "SELECT * FROM t") == [(1, "a")]
        harness.process_batch(changes((NEW, 2, None), (NEW, 3, ""), (NEW, 4, 'q"\n')))
        assert ask(database, "SELECT v FROM t WHERE k > 1 ORDER BY k") == [(None,), ("",), ('q"\n',)]


def test_values_of_all_types_are_written(database: str) -> None:
    execute(database, "CREATE TABLE t (a smallint, b numeric, c real, d bool, e bytea, f date, g time, h timestamp, "
            "i timestamptz, j text[], k jsonb, l interval, m uuid, n numeric(9,2), o int[], p jsonb)")  # fmt: skip
    second = datetime.datetime(2024, 1, 1, 0, 0, 1)
    utc = second.replace(tzinfo=datetime.timezone.utc)
    code = "00000000-0000-0000-0000-00000000000a"
    row = [
        (1, pyarrow.int8()), (2**40, pyarrow.int64()), (1.5, pyarrow.float64()), (True, pyarrow.bool_()),
        (b"\x00\xff", pyarrow.binary()), (second.date(), pyarrow.date32()), (second.time(), pyarrow.time32("ms")),
        (second, pyarrow.timestamp("ns")), (utc, pyarrow.timestamp("ms", "UTC")),
        (["", None, 'a"\\'], pyarrow.list_(pyarrow.string())),
        ([("x", 1)], pyarrow.map_(pyarrow.string(), pyarrow.int32())),
        (datetime.timedelta(seconds=1.5), pyarrow.duration("ms")), (code, pyarrow.string()),
        (Decimal("1.25"), pyarrow.decimal128(9, 2)), ([[1, 2], [3, 4]], pyarrow.list_(pyarrow.list_(pyarrow.int32()))),
        ({"y": [1.5]}, pyarrow.struct([("y", pyarrow.list_(pyarrow.float64()))])),
    ]  # fmt: skip
    names = list("abcdefghijklmnop")
    row[14] = ([1, None], pyarrow.list_(pyarrow.int32()))
    columns = {name: kind for name, (_, kind) in zip(names, row, strict=True)}
    batch = pyarrow.record_batch([pyarrow.array([value, None], kind) for value, kind in row], names=names)
    with started(sink(database, (), columns=columns)) as harness:
        harness.process_batch(ArrowBatch(batch))
        harness.end_input()
    full, empty = ask(database, "SELECT t.*, m::text FROM t ORDER BY a")
    expected = (1, 2**40, 1.5, True, b"\x00\xff", second.date(), second.time(), second, utc, ["", None, 'a"\\'],
                {"x": 1}, datetime.timedelta(seconds=1.5))  # fmt: skip
    assert full[:12] == expected and full[13:] == (Decimal("1.25"), [1, None], {"y": [1.5]}, code)
    assert set(empty) == {None}
    execute(database, "DROP TABLE t", "CREATE TABLE t (v text)")
    alone = pyarrow.record_batch([pyarrow.array(["a", None, "", "\\.", "x\ny"])], names=["v"])
    with started(sink(database, (), columns={"v": pyarrow.string()})) as harness:
        harness.process_batch(ArrowBatch(alone))
        harness.end_input()
    assert [value for (value,) in ask(database, "SELECT v FROM t")] == ["a", None, "", "\\.", "x\ny"]


@pytest.mark.parametrize(
    ("ddl", "keys", "message"),
    [
        ("k int, w text", (), "column 'v' is not in table 't', which has k, w"),
        ("k int, v int", (), "column 'v' of public.t is of type integer, and string is written; declare it in a type"),
        ("k int, v text", ("k",), r"has no unique index on exactly \(k\)"),
        ("k int PRIMARY KEY, v text, rayflink_deleted bool", ("k",), "has a column 'rayflink_deleted'"),
    ],
)
def test_tables_that_do_not_fit_are_refused(database: str, ddl: str, keys: tuple[str, ...], message: str) -> None:
    execute(database, f"CREATE TABLE t ({ddl})")
    with pytest.raises(Exception, match=message):
        started(sink(database, keys))


def test_what_the_user_may_not_do_is_named(database: str) -> None:
    execute(database, "CREATE TABLE t (k int PRIMARY KEY, v text)", "DROP ROLE IF EXISTS writer",
            "CREATE ROLE writer LOGIN",
            "GRANT USAGE ON SCHEMA public TO writer", "GRANT SELECT, INSERT ON t TO writer")  # fmt: skip
    own = database.replace("user=postgres", "user=writer password=s3cret")
    try:
        with pytest.raises(PostgresError, match=r"user='writer' lacks DELETE, UPDATE on public\.t; GRANT") as raised:
            sink(own).create_writer(WriterContext())
        assert "s3cret" not in described(raised.value) + repr(sink(own))
        sink(own, ()).create_writer(WriterContext()).close()
    finally:
        execute(database, "DROP OWNED BY writer", "DROP ROLE writer")


@pytest.mark.parametrize("exactly_once", [False, True])
def test_a_row_that_is_refused_is_shown(database: str, exactly_once: bool) -> None:
    execute(database, "CREATE TABLE t (k int PRIMARY KEY, v varchar(3) NOT NULL)")

    def refused(*rows: tuple[int, int | None, str | None]) -> str:
        with pytest.raises(UserCodeError) as raised, started(sink(database, exactly_once=exactly_once)) as harness:
            harness.process_batch(changes(*rows))
            harness.snapshot(1)
        return described(raised.value)

    long = refused((NEW, 1, "a\nb"), (NEW, 2, "long"), (NEW, 3, "c"))
    if exactly_once:
        assert "(2, 'long')" in long and "column 'v' of table 'public.t' refuses the row: value too long" in long
    assert "value too long for type character varying(3)" in long
    null = refused((NEW, 1, "a"), (NEW, 2, None))
    assert "(2, None)" in null and "column 'v' of table 'public.t' has no NULL" in null
    assert "column 'k' of table 'public.t' has no NULL" in refused((D, None, None))
    assert ask(database, "SELECT * FROM t") == [] and staged_rows(database) == []


def test_rows_that_break_a_constraint_are_named(database: str) -> None:
    execute(database, "CREATE TABLE t (k int PRIMARY KEY, v text UNIQUE)", "INSERT INTO t VALUES (9, 'taken')")
    refusal = r"refuses one of 2 changes: duplicate key .* Key \(v\)=\(taken\) already exists"
    with pytest.raises(Exception, match=refusal):
        with started(sink(database)) as harness:
            harness.process_batch(changes((NEW, 1, "x"), (NEW, 2, "taken")))
            harness.end_input()
    with pytest.raises(Exception, match="has no key, and a change of a row came; declare PRIMARY KEY"):
        with started(sink(database, ())) as harness:
            harness.process_batch(changes((D, 1, "x")))


def test_a_lost_connection_and_a_deadlock_are_repeated(database: str) -> None:
    execute(database, "CREATE TABLE t (k int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, ''), (2, '')")
    with started(sink(database)) as harness:
        harness.process_batch(changes((U, 1, "a")))
        harness.snapshot(1)
        execute(database, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                "AND backend_type = 'client backend'")  # fmt: skip
        harness.process_batch(changes((U, 1, "b")))
        harness.snapshot(2)
        assert ask(database, "SELECT v FROM t WHERE k = 1") == [("b",)]
        with psycopg.connect(database) as other:
            other.execute("SET deadlock_timeout = '1h'")  # the sink is chosen, after a second
            other.execute("UPDATE t SET v = 'other' WHERE k = 2")
            writing = threading.Thread(target=lambda: (harness.process_batch(changes((U, 1, "c"), (U, 2, "c"))),
                                                       harness.snapshot(3)))  # fmt: skip
            writing.start()
            other.execute("SELECT 1 FROM t WHERE k = 1 FOR UPDATE") if _waits(database) else None
            other.commit()
            writing.join(30)
    assert ask(database, "SELECT v FROM t") == [("c",), ("c",)]


def _waits(dsn: str) -> bool:
    """Wait until a transaction waits for a lock; return True."""
    from tests.connectors.postgres.change_jobs import eventually

    eventually(lambda: ask(dsn, "SELECT count(*) FROM pg_locks WHERE NOT granted") != [(0,)])
    return True


@pytest.mark.parametrize(
    ("exactly_once", "seeds"),
    [
        *((guarantee, range(1)) for guarantee in (True, False)),
        *(pytest.param(guarantee, range(1, 20), marks=pytest.mark.soak) for guarantee in (True, False)),
    ],
)
def test_the_sink_keeps_its_promise(database: str, exactly_once: bool, seeds: Sequence[int]) -> None:
    class Converting:
        """A writer of numbers."""

        def __init__(self, inner: SinkWriter) -> None:
            self.inner = inner

        def write(self, batch: Batch) -> None:
            self.inner.write(changes(*((NEW, n, "") for n in rows_of(batch))))

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

    class OfNumbers(PostgresChangesSink):
        def create_writer(self, ctx: WriterContext) -> SinkWriter:
            return Converting(super().create_writer(ctx))

    class Table(SinkSubject):
        guarantee = DeliveryGuarantee.EXACTLY_ONCE if exactly_once else DeliveryGuarantee.AT_LEAST_ONCE

        def __init__(self) -> None:
            execute(database, "DROP TABLE IF EXISTS t", "CREATE TABLE t (n int, v text)")

        def create_sink(self) -> Sink:
            columns = {"n": pyarrow.int32(), "v": pyarrow.string()}
            return OfNumbers(database, "t", columns, (), Flushing(20), exactly_once)

        def read(self) -> Iterable[int]:
            return numbers_in(database)

    check_sink(Table, seeds)


