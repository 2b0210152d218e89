"""Connections, cursors and results, in this process and at gateways: the same behaviour everywhere."""

from __future__ import annotations

import datetime as dt
import gc
import threading
from decimal import Decimal

import pytest

from rayflink import dbapi
from rayflink.dbapi.gateway_client import HEARTBEAT, GatewayClient

VALUES = [
    1, True, 1 << 63, 1.5, Decimal("1.50"),
    Decimal("-12345678901234567890123456789012345678"), "it's ?", b"\x00\xff", dt.date(2024, 1, 31), dt.time(1, 2, 3),
    dt.datetime(2024, 1, 1, 1, 2, 3, 456789), dt.datetime(2024, 1, 1, 1, 2, 3, tzinfo=dt.timezone.utc),
    dt.timedelta(days=1, milliseconds=5), dt.timedelta(hours=-3), [1, 2], {"a": 1},
]  # fmt: skip
ENDLESS = "CREATE TABLE endless (n INT) WITH ('connector' = 'datagen', 'rows-per-second' = '500')"


def test_the_module_says_what_it_is():
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 1, "qmark")


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_comes_back_as_it_went(shared, value):
    assert shared.execute("SELECT ?", (value,)).fetchone() == (value,)


def test_columns_are_described(shared):
    cursor = shared.execute("SELECT 1 AS a, CAST(NULL AS DECIMAL(5, 2)) AS b, 'x' AS c, DATE '2024-01-31' AS d, X'00'")
    kinds = [column[1] for column in cursor.description]
    assert kinds == [dbapi.NUMBER, dbapi.NUMBER, dbapi.STRING, dbapi.DATETIME, dbapi.BINARY]
    assert kinds[0] != dbapi.STRING
    assert cursor.description[1] == ("b", "DECIMAL", None, None, 5, 2, True)
    assert cursor.description[0][6] is False


def test_rows_are_fetched_in_parts(shared):
    cursor = shared.execute("SELECT n FROM (VALUES (1), (2), (3), (4), (5)) AS t (n)")
    assert cursor.rowcount == -1
    rows = [cursor.fetchone(), *cursor.fetchmany(2), *cursor.fetchmany(), *cursor]
    assert sorted(rows) == [(1,), (2,), (3,), (4,), (5,)]
    assert cursor.fetchone() is None
    assert cursor.fetchall() == cursor.fetchmany(3) == []


def test_statements_without_rows_have_no_description(connect):
    with connect() as connection:
        cursor = connection.execute("CREATE TABLE nothing (n INT) WITH ('connector' = 'blackhole')")
        assert cursor.description is None
        assert cursor.fetchall() == []
        assert connection.execute("SHOW TABLES").fetchall() == [("nothing",)]


def test_inserts_are_written_when_they_return(connect, tmp_path):
    with connect() as connection, connection.cursor() as cursor:
        options = f"'connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path}'"
        cursor.execute(f"CREATE TABLE people (id INT, name STRING) WITH ({options})")
        cursor.executemany("INSERT INTO people VALUES (?, ?)", [(1, "ann"), (2, "bo")])
        assert cursor.description is None
        assert cursor.job_id
        assert sorted(cursor.execute("SELECT * FROM people")) == [(1, "ann"), (2, "bo")]


def test_changes_are_shown_where_they_are_wanted(connect):
    query = "SELECT a, COUNT(*) FROM (VALUES ('x'), ('x')) AS t (a) GROUP BY a"
    with connect(mode="streaming", changelog=True) as connection:
        cursor = connection.execute(query)
        assert cursor.description[0][0] == "op"
        assert [row[0] for row in cursor] == ["+I", "-U", "+U"]
    with connect(mode="streaming") as connection, pytest.raises(dbapi.NotSupportedError, match="changelog=True"):
        connection.execute(query).fetchall()


def test_a_query_without_end_is_read_as_it_comes_until_it_is_cancelled(connect):
    with connect(mode="streaming") as connection:
        connection.execute(ENDLESS)
        cursor = connection.execute("SELECT n FROM endless")
        assert len(cursor.fetchmany(5)) == 5
        has_read = threading.Event()

        def read() -> None:
            for _ in cursor:
                has_read.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        assert has_read.wait(30)
        cursor.cancel()
        reader.join(30)
        assert not reader.is_alive()
        assert connection.execute("SELECT 1").fetchall() == [(1,)]


@pytest.mark.parametrize("what", ["alone", "with its connection"])
def test_rows_that_are_dropped_end_their_query_in_another_thread(gateway_url, monkeypatch, what):
    """The garbage collector drops them in any thread: one that serves the gateway would wait for its own answer."""
    requests, is_closed, request = [], threading.Event(), GatewayClient.request

    def recorded(client, method, path, body=None):
        answer = request(client, method, path, body)
        requests.append((method, path.rpartition("/")[2], threading.current_thread().name))
        if path.endswith("/close"):
            is_closed.set()
        return answer

    connection = dbapi.connect(gateway_url, mode="streaming", options={"execution.target": "local"})
    connection.execute(ENDLESS)
    cursor = connection.execute("SELECT n FROM endless")
    assert len(cursor.fetchmany(5)) == 5
    monkeypatch.setattr(GatewayClient, "request", recorded)
    if what == "with its connection":
        cycle = [connection, cursor]
        cycle.append(cycle)
        del connection, cycle
    del cursor
    gc.collect()
    assert is_closed.wait(30)
    assert ("DELETE", "close", HEARTBEAT) in requests


def test_an_insert_that_is_waited_for_is_cancelled_from_another_thread(connect):
    with connect(mode="streaming", options={"table.dml-sync": "true"}) as connection:
        connection.execute(ENDLESS)
        connection.execute("CREATE TABLE nothing (n INT) WITH ('connector' = 'blackhole')")
        cursor, begun = connection.cursor(), threading.Event()
        follow = cursor._follow
        cursor._follow = lambda statement: (follow(statement), begun.set())
        canceller = threading.Thread(target=lambda: begun.wait(30) and cursor.cancel(), daemon=True)
        canceller.start()
        with pytest.raises(dbapi.OperationalError, match="cancelled"):
            cursor.execute("INSERT INTO nothing SELECT n FROM endless")
        canceller.join(30)
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_maps_have_keys_of_every_kind(shared):
    row = shared.execute("SELECT MAP[X'00ff', 1], MAP[DATE '2024-01-31', 1], MAP[1.50, 1], MAP[ARRAY[1], 2]").fetchone()
    assert row[:3] == ({b"\x00\xff": 1}, {dt.date(2024, 1, 31): 1}, {Decimal("1.50"): 1})
    assert list(row[3].values()) == [2]


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("SELEC 1", dbapi.ProgrammingError),
        ("SELECT * FROM missing", dbapi.ProgrammingError),
        ("SELECT 1; SELECT 2", dbapi.ProgrammingError),
    ],
)
def test_a_wrong_statement_is_refused(shared, statement, error):
    with pytest.raises(error):
        shared.execute(statement)
    assert shared.execute("SELECT 1").fetchall() == [(1,)]


def test_a_job_that_fails_is_told(shared):
    with pytest.raises(dbapi.OperationalError, match="(?i)division by zero|/ by zero"):
        shared.execute("SELECT 1 / (n - 1) FROM (VALUES (1)) AS t (n)").fetchall()


def test_a_fetch_after_a_failure_raises_the_same_error(connect):
    with connect(mode="streaming") as connection:
        cursor = connection.execute("SELECT a, COUNT(*) FROM (VALUES ('x'), ('x')) AS t (a) GROUP BY a")
        with pytest.raises(dbapi.NotSupportedError) as first:
            cursor.fetchall()
        for fetch in (cursor.fetchone, cursor.fetchall, lambda: next(cursor)):
            with pytest.raises(dbapi.NotSupportedError) as later:
                fetch()
            assert later.value is first.value
        assert cursor.execute("SELECT 1").fetchall() == [(1,)]


def test_a_connection_that_is_closed_during_a_fetch_is_told(connect):
    connection, has_read = connect(mode="streaming"), threading.Event()
    connection.execute(ENDLESS)
    cursor = connection.execute("SELECT n FROM endless")
    closer = threading.Thread(target=lambda: has_read.wait(30) and connection.close(), daemon=True)
    closer.start()
    with pytest.raises(dbapi.InterfaceError, match="the connection is closed; connect again"):
        for number, _ in enumerate(iter(cursor._rows)):
            if number == 5:
                has_read.set()
    closer.join(30)
    assert not closer.is_alive()


def test_what_is_closed_is_refused(connect):
    connection = connect()
    cursor = connection.cursor()
    with pytest.raises(dbapi.ProgrammingError, match="no statement was run"):
        cursor.fetchone()
    with pytest.raises(dbapi.InterfaceError, match="number of rows -1, expected 0 or more"):
        cursor.fetchmany(-1)
    cursor.close()
    with pytest.raises(dbapi.InterfaceError, match="the cursor is closed"):
        cursor.execute("SELECT 1")
    other = connection.cursor()
    connection.close()
    connection.close()
    for call in (lambda: other.execute("SELECT 1"), connection.cursor, connection.commit):
        with pytest.raises(dbapi.InterfaceError, match="the connection is closed"):
            call()


def test_there_is_nothing_to_roll_back(shared):
    shared.commit()
    with pytest.raises(shared.NotSupportedError, match="nothing to roll back"):
        shared.rollback()
    with pytest.raises(dbapi.ProgrammingError, match="run the query with execute"):
        shared.cursor().executemany("SELECT ?", [(1,)])


def test_options_and_databases_are_of_the_session(connect):
    with connect(options={"table.local-time-zone": "Asia/Tokyo"}) as connection:
        query = "SELECT CAST(TO_TIMESTAMP_LTZ(0, 3) AS STRING)"
        assert connection.execute(query).fetchone() == ("1970-01-01 09:00:00.000",)
    with connect(catalog="default_catalog", database="default_database") as connection:
        assert connection.execute("SHOW CURRENT DATABASE").fetchone() == ("default_database",)
    with pytest.raises(dbapi.ProgrammingError, match="nowhere"):
        connect(catalog="nowhere")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"mode": "fast"}, "expected 'batch' or 'streaming'"),
        ({"gateway": "localhost:8083"}, "expected http://HOST:PORT"),
        ({"gateway": "http://localhost:8083", "token": "secret\n"}, r"line ends .*read_text\(\).strip\(\)"),
    ],
)
def test_wrong_arguments_are_refused(arguments, problem):
    token = arguments.pop("token", None)
    with pytest.raises(dbapi.InterfaceError, match=problem):
        dbapi.connect(**arguments if token is None else {"gateway": dbapi.Gateway(arguments["gateway"], token)})


def test_a_gateway_that_is_not_there_is_told(unused_port):
    with pytest.raises(dbapi.OperationalError, match="cannot be reached"):
        dbapi.connect(f"http://127.0.0.1:{unused_port}")


def test_a_connection_that_is_dropped_sends_no_heartbeats(gateway_url):
    before = {thread for thread in threading.enumerate() if thread.name == HEARTBEAT}
    connection = dbapi.connect(gateway_url)
    [beating] = {thread for thread in threading.enumerate() if thread.name == HEARTBEAT} - before
    del connection
    gc.collect()
    beating.join(30)
    assert not beating.is_alive()
