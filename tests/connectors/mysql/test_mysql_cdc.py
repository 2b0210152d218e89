"""Snapshots and changes together are the table, while others write to it."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from rayflink.common import Row, RowKind, WatermarkStrategy
from rayflink.connectors.mysql import snapshot_positions
from rayflink.datastream.connectors.mysql_cdc import RowChangesDeserializationSchema, StartupOptions
from rayflink.testing import SourceSubject, check_source
from tests.connectors.cdc.collected_changes import collecting, derived, environment, eventually
from tests.connectors.mysql.change_jobs import Writer, builder, fill, has_changes, is_ended, marker, table

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("seed", "parallelism"), [(1, 1), (2, 3)])
def test_a_parallel_snapshot_under_writes_and_the_changes_are_the_table(server, seed, parallelism):
    fill(server, 3000)
    writer = Writer(server, seed, 4000)
    with collecting(environment(parallelism), builder(server).split_size(100).build()) as job:
        job.wait(has_changes(300))
        writer.end()
        marker(server)
        records = job.wait(is_ended)
    assert derived(records) == table(server)
    assert sum(record["op"] == "r" for record in records) > 1000
    assert writer.written > 100


def test_a_server_without_positions_of_snapshots_is_asked_until_it_is_quiet(server, monkeypatch):
    hidden = snapshot_positions.named
    monkeypatch.setattr(
        snapshot_positions, "named", lambda cursor, text: {} if "binlog_snapshot" in text else hidden(cursor, text)
    )
    fill(server, 1000)
    writer = Writer(server, 4, 1500, connections=1)
    with collecting(environment(2), builder(server).split_size(100).build()) as job:
        job.wait(has_changes(200))
        writer.end()
        marker(server)
        assert derived(job.wait(is_ended)) == table(server)


def test_keys_that_are_strings_are_divided_in_the_order_of_the_server(server):
    server.execute("DROP TABLE t", "CREATE TABLE t (id varchar(20) COLLATE latin1_german2_ci PRIMARY KEY, "
                   "a varchar(200), n bigint) CHARACTER SET latin1")  # fmt: skip
    fill(server, 600, "CONCAT(ELT(seq % 5 + 1, 'a', 'B', 'c', 'Ä', 'z'), seq)")

    def key(number: int) -> str:
        return "aBcÄz"[number % 5] + str(number)

    writer = Writer(server, 7, 800, key=key)
    with collecting(environment(2), builder(server).split_size(40).build()) as job:
        job.wait(has_changes(200))
        writer.end()
        marker(server, "'end'")
        records = job.wait(is_ended)
    assert derived(records) == table(server)


def test_a_table_without_a_key_is_one_chunk(server):
    server.execute("ALTER TABLE t DROP PRIMARY KEY")
    fill(server, 500)
    with collecting(environment(), builder(server).split_size(10).build()) as job:
        job.wait(lambda records: len(records) == 500)
        server.execute("UPDATE t SET n = 1 WHERE id = 3", "DELETE FROM t WHERE id = 4")
        records = job.wait(lambda records: len(records) == 502)
    assert derived(records) == table(server)


def test_rows_of_several_tables_have_their_kinds_and_places(server):
    server.execute("CREATE TABLE u (k int PRIMARY KEY, v numeric(6,2))", "INSERT INTO t VALUES (1, 'one', 1)",
                   "INSERT INTO u VALUES (5, 2.5)")  # fmt: skip
    source = builder(server, r"shop\.[tu]").deserializer(RowChangesDeserializationSchema(include_table=True))
    stream = environment().from_source(source.build(), WatermarkStrategy.no_watermarks(), "changes")
    with stream.execute_and_collect() as drawn:
        rows = {row.table_name: row for row in (next(drawn), next(drawn))}
        assert list(rows["t"]) == ["shop", "", "t", 0, 1, "one", 1]
        assert str(rows["u"].v) == "2.50" and rows["u"].get_row_kind() is RowKind.INSERT
        server.execute("UPDATE t SET a = 'two' WHERE id = 1", "UPDATE t SET id = 2", "DELETE FROM u")
        changes: list[Row] = [next(drawn) for _ in range(5)]
    kinds = ["UPDATE_BEFORE", "UPDATE_AFTER", "DELETE", "INSERT", "DELETE"]
    assert [row.get_row_kind().name for row in changes] == kinds
    assert list(changes[1])[4:] == [1, "two", 1] and changes[0].op_ts > 1_600_000_000_000


TYPES = {
    "i1": ("tinyint", "-128"), "u1": ("tinyint unsigned", "255"), "i2": ("smallint", "-32768"),
    "u2": ("smallint unsigned", "65535"), "i3": ("mediumint", "-8388608"), "u3": ("mediumint unsigned", "16777215"),
    "u4": ("int unsigned", "4294967295"), "i8": ("bigint", "-9223372036854775808"),
    "u8": ("bigint unsigned", "18446744073709551615"), "f4": ("float", "0.1"), "f8": ("double", "0.1"),
    "d": ("decimal(20,5)", "-123456789012345.12345"), "e": ("decimal(5,2)", "-0.07"), "big": ("decimal(65,30)", "-1.5"),
    "c": ("char(5)", "'ab '"),
    "s": ("varchar(300) character set latin1", "'ü€,\"\n\\\\'"), "tx": ("text character set utf8mb4", "'日本'"),
    "by": ("binary(4)", "x'0100'"), "vb": ("varbinary(10)", "x'00ff22'"), "bl": ("blob", "''"),
    "dt": ("date", "'2024-02-29'"), "tm": ("time(3)", "'23:59:59.123'"),
    "ts": ("datetime(6)", "'1024-02-29 12:00:00.5'"),
    "tz": ("timestamp(2) null", "'2024-02-29 12:00:00.25'"), "y": ("year", "2024"), "bt": ("bit(1)", "1"),
    "bits": ("bit(10)", "513"), "en": ("enum('a','it''s')", "'it''s'"), "se": ("set('x','y','z')", "'x,z'"),
    "no": ("set('x','y')", "''"), "j": ("json", "'{\"a\": [1, null]}'"), "zero": ("date", "'0000-00-00'"),
    "part": ("datetime", "'2024-00-10 00:00:00'"), "g": ("int generated always as (i1 + 1) stored", "DEFAULT"),
    "v": ("int generated always as (i1 + 1) virtual", "DEFAULT"), "p": ("point", "POINT(1, 2)"),
}  # fmt: skip


@pytest.mark.parametrize("metadata", ["FULL", "NO_LOG"])
def test_all_types_are_the_same_from_the_snapshot_and_from_the_log(server, metadata):
    columns = ", ".join(f"`{name}` {kind}" for name, (kind, _) in TYPES.items())
    server.execute(f"SET GLOBAL binlog_row_metadata = {metadata}", "DROP TABLE t",
                   f"CREATE TABLE t (id bigint PRIMARY KEY, {columns})")  # fmt: skip
    insert = f"INSERT INTO t VALUES (%s, {', '.join(value for _, value in TYPES.values())})"
    strict = "SET sql_mode = '', time_zone = '+02:00'"
    server.execute(strict, insert % 1, "INSERT INTO t (id) VALUES (2)")
    try:
        with collecting(environment(), builder(server).build()) as job:
            job.wait(lambda records: len(records) == 2)
            server.execute(strict, insert % 3, "INSERT INTO t (id) VALUES (4)")
            records = job.wait(lambda records: len(records) == 4)
    finally:
        server.execute("SET GLOBAL binlog_row_metadata = FULL")
    first, empty, third, empty_too = (record["after"] for record in records)
    assert third == {**first, "id": 3} and empty_too == {**empty, "id": 4}
    assert set(empty.values()) == {2, None} and first["u8"] == "18446744073709551615" and first["f4"] == 0.1
    assert first["d"] == "-123456789012345.12345" and first["e"] == "-0.07" and first["big"] == "-1.5" + "0" * 29
    assert first["c"] == "ab" and first["s"] == 'ü€,"\n\\' and first["tx"] == "日本" and first["by"] == "AQAAAA=="
    assert first["dt"] == "2024-02-29" and first["tm"] == "23:59:59.123000"
    assert first["ts"] == "1024-02-29T12:00:00.500000"
    assert first["tz"] == "2024-02-29T10:00:00.250000+00:00" and first["y"] == 2024
    assert first["bt"] is True and first["bits"] == 513 and first["en"] == "it's" and first["se"] == "x,z"
    assert first["no"] == "" and first["bl"] == "" and first["zero"] is None and first["part"] is None
    assert first["g"] == first["v"] == -127 and first["j"] == '{"a": [1, null]}'


def test_startup_options(server):
    def ids(startup: StartupOptions, count: int) -> list[int]:
        with collecting(environment(), builder(server).startup_options(startup).build()) as job:
            return [record["after"]["id"] for record in job.wait(lambda records: len(records) >= count)]

    server.execute("FLUSH BINARY LOGS")
    ((file, *_),) = server.ask("SHOW MASTER STATUS")
    ((gtids,),) = server.ask("SELECT @@gtid_binlog_pos")
    fill(server, 3)
    assert ids(StartupOptions.specific_offset(file), 3) == [0, 1, 2]
    assert ids(StartupOptions.specific_offset(gtids), 3) == [0, 1, 2]
    ((there,),) = server.ask("SELECT UNIX_TIMESTAMP()")
    eventually(lambda: server.ask("SELECT UNIX_TIMESTAMP()")[0][0] > there)
    server.execute("INSERT INTO t VALUES (10, 'a', 1)")
    assert ids(StartupOptions.timestamp((there + 1) * 1000), 1) == [10]
    with collecting(environment(), builder(server).startup_options(StartupOptions.latest()).build()) as job:
        dumps = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND = 'Binlog Dump'"
        eventually(lambda: server.ask(dumps)[0][0])
        server.execute("INSERT INTO t VALUES (11, 'a', 1)")
        assert [record["after"]["id"] for record in job.wait(len)] == [11]
    source = builder(server).startup_options(StartupOptions.snapshot()).split_size(2).build()
    stream = environment(2).from_source(source, WatermarkStrategy.no_watermarks(), "rows")
    assert len(list(stream.execute_and_collect())) == 5


def test_the_earliest_change_is_the_first(server):
    server.execute("RESET MASTER", "INSERT INTO t VALUES (1, 'a', 1)", "DELETE FROM t")
    with collecting(environment(), builder(server).startup_options(StartupOptions.earliest()).build()) as job:
        assert [record["op"] for record in job.wait(lambda records: len(records) == 2)] == ["c", "d"]


def test_several_readers_without_checkpoints_are_refused_and_one_is_not(server):
    fill(server, 1)
    with collecting(environment(2, interval=""), builder(server).build()) as job:
        assert "the parallelism of the source to 1" in job.fails()
    with collecting(environment(1, interval=""), builder(server).build()) as job:
        job.wait(len)
        marker(server)
        assert derived(job.wait(is_ended)) == table(server)


def test_a_range_of_server_ids_that_is_too_short_is_refused(server):
    with collecting(environment(3), builder(server).server_id("5401-5402").build()) as job:
        assert "set a range such as '5401-5403'" in job.fails()


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 16))])
def test_each_row_comes_once_through_crashes_at_every_place(server, seed):
    class Rows(SourceSubject):
        def __init__(self):
            server.execute("TRUNCATE t")

        def __getstate__(self):
            return {}  # a job needs `number` alone

        def create_source(self):
            return builder(server).split_size(10).build()

        def write(self, numbers: Sequence[int]):
            server.execute(*(f"INSERT INTO t VALUES ({number}, 'a', 0)" for number in numbers))

        def number(self, record: str) -> int:
            change = json.loads(record)
            assert change["op"] in "rc"
            return int(change["after"]["id"])

    check_source(Rows, seeds=[seed], records=90)
