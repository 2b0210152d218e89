"""Rows of an HTTP service on loopback that are looked up by key in SQL."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pytest

from rayflink.common.errors import JobFailed
from rayflink.table import EnvironmentSettings, SqlError, TableEnvironment

PEOPLE = {
    1: {"id": 1, "name": "Ann", "born": "1990-01-02", "tags": ["a"]},
    2: [{"id": 2, "name": "Bob", "more": 1}, {"id": 2, "name": "Bo"}],
    3: None,
}
"""Answers by id; others are 404."""


class People:
    """A service that answers for one id by GET, and for many by POST; `away` requests find it overloaded."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.bodies: list[Any] = []
        self.headers: list[str | None] = []
        self.away = 0
        self.url = ""


@pytest.fixture
def people() -> Iterator[People]:
    service, lock = People(), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            with lock:
                service.paths.append(self.path)
                service.headers.append(self.headers["X-Token"])
            query = parse_qs(urlsplit(self.path).query)
            number = query.get("id", [urlsplit(self.path).path.rpartition("/")[2]])[0]
            self.answer(PEOPLE.get(int(number), 404) if number.isdecimal() else 400)

        def do_POST(self) -> None:
            keys = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                service.bodies.append(keys)
            found = [PEOPLE.get(key["id"]) for key in keys]
            self.answer([row for rows in found if rows for row in (rows if isinstance(rows, list) else [rows])])

        def answer(self, value: Any) -> None:
            with lock:
                status = 503 if service.away else value if isinstance(value, int) else 200
                service.away = max(0, service.away - 1)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(value).encode())

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.block_on_close = True, False
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    service.url = f"http://127.0.0.1:{server.server_port}/people"
    yield service
    server.shutdown()
    server.server_close()
    thread.join(5)


def environment(url: str, **options: str) -> TableEnvironment:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("execution.target", "local").set("parallelism.default", "1")
    given = {"n": [1, 2, 3, 4, 5], "who": [1, 2, 3, 9, 1]}
    t_env.create_temporary_view("given", t_env.from_arrow(pa.table(given)))
    t_env.execute_sql("CREATE VIEW orders AS SELECT *, PROCTIME() AS clock FROM given")
    known = {"connector": "rest-lookup", "url": url, **{key.replace("__", "-").replace("_", "."): value
                                                         for key, value in options.items()}}  # fmt: skip
    written = ", ".join(f"'{key}' = '{value}'" for key, value in known.items())
    t_env.execute_sql(f"CREATE TABLE people (id BIGINT, name STRING, born DATE, tags ARRAY<STRING>) WITH ({written})")
    return t_env


JOINED = "FROM orders AS o {} JOIN people FOR SYSTEM_TIME AS OF o.clock AS p ON o.who = p.id"


def rows(t_env: TableEnvironment, columns: str, kind: str = "LEFT", where: str = "") -> list[tuple[Any, ...]]:
    return [tuple(row) for row in t_env.execute_sql(f"SELECT {columns} {JOINED.format(kind)}{where}").collect()]


WANTED = [(1, "Ann"), (2, "Bob"), (2, "Bo"), (3, None), (4, None), (5, "Ann")]


@pytest.mark.slow
def test_each_key_is_a_request_and_what_is_away_is_asked_again(people: People) -> None:
    t_env = environment(people.url + "/{id}?v=1", lookup_http__headers_X__Token="abc")
    assert rows(t_env, "n, name") == WANTED
    assert set(people.paths) == {f"/people/{number}?v=1" for number in (1, 2, 3, 9)}
    assert set(people.headers) == {"abc"}
    assert "abc" not in str(list(t_env.execute_sql("SHOW CREATE TABLE people").collect()))
    people.away, people.paths = 1, []
    found = rows(environment(people.url), "n, name, tags", "INNER", " WHERE p.name = 'Bo' AND p.id > 0")
    assert found == [(2, "Bo", None)] and "/people?id=2&name=Bo" in people.paths


@pytest.mark.slow
def test_the_keys_of_a_batch_are_one_request(people: People) -> None:
    many = {"lookup__method": "POST", "lookup_cache": "PARTIAL", "lookup_partial__cache_max__rows": "10"}
    assert rows(environment(people.url, **many), "n, name") == WANTED
    assert sorted(key["id"] for body in people.bodies for key in body) == [1, 2, 3, 9]
    people.bodies.clear()
    assert len(rows(environment(people.url, lookup_request_max__keys="1", lookup__method="POST"), "n")) == 6
    assert {len(body) for body in people.bodies} == {1}


@pytest.mark.slow
def test_a_service_that_stays_away_or_refuses_fails_the_job(people: People) -> None:
    people.away = 100
    with pytest.raises(JobFailed, match=r"could not be asked in 1 tries: .*answered HTTP 503"):
        rows(environment(people.url, lookup_max__retries="0"), "n, name")
    people.away = 0
    with pytest.raises(JobFailed, match="the lookup in default_catalog.default_database.people failed: .*HTTP 400"):
        rows(environment(people.url.replace("/people", "/x?id=y"), lookup_max__retries="0"), "n, name")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"url": "ftp://x"}, "is no URL of a service"),
        ({"url": "http://x/{key}"}, "which is no column"),
        ({"url": "http://x", "json_ignore__errors": "true"}, "which 'json' does not know"),
        ({"url": "http://x", "lookup_cache": "FULL"}, "expected NONE or PARTIAL"),
    ],
)
def test_definitions_are_checked(options: dict[str, str], problem: str) -> None:
    with pytest.raises(SqlError, match=problem):
        environment(**options)


def test_a_table_that_is_only_looked_up_is_not_read_and_needs_the_keys_of_its_url() -> None:
    t_env = environment("http://x/{name}")
    with pytest.raises(SqlError, match="only finds rows by key.*FOR SYSTEM_TIME AS OF a.proc_time"):
        t_env.execute_sql("SELECT * FROM people")
    with pytest.raises(SqlError, match=r"has \{name\}, which is no key of the join"):
        rows(t_env, "n")
