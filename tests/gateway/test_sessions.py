"""Sessions and statements over HTTP: bounds, ends, tokens, and many at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from rayflink.gateway.gateway_session import session_options
from rayflink.gateway.session_registry import SessionRegistry
from tests.gateway.gateway_client import Failed, GatewayClient, ask

NOWHERE = "00000000-0000-0000-0000-000000000000"
ENDLESS = "CREATE TABLE endless (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '100000')"


class _Session:
    """A session that has been idle for a time."""

    def __init__(self, handle, idle_s):
        self.handle, self.idle_s, self.is_closed = handle, idle_s, False

    def touch(self):
        self.idle_s = 0.0

    def close(self):
        self.is_closed = True


def test_sessions_that_no_client_asks_for_are_closed_and_counted():
    registry = SessionRegistry(2, idle_s=600)
    old, new = _Session("old", 601.0), _Session("new", 10.0)
    for session in (old, new):
        registry.open(lambda session=session: session)
    with pytest.raises(Exception, match="exceeds the max count: 2"):
        registry.open(lambda: _Session("third", 0.0))
    registry.close_idle()
    assert (old.is_closed, new.is_closed, registry.expired, len(registry)) == (True, False, 1, 1)
    with pytest.raises(Exception, match="does not exist"):
        registry.session("old")


def test_a_heartbeat_keeps_a_session():
    registry = SessionRegistry(2, idle_s=600)
    session = registry.open(lambda: _Session("a", 599.0))
    registry.session("a")
    assert session.idle_s == 0.0


def test_options_of_the_clients_own_installation_are_left_out():
    sent = {"execution.target": "remote", "rest.address": "host", "$internal.deployment.config-dir": "/opt",
            "sql-client.execution.result-mode": "tableau", "pipeline.name": "a"}  # fmt: skip
    assert session_options(sent) == {"sql-client.execution.result-mode": "tableau", "pipeline.name": "a"}


@pytest.mark.parametrize(
    ("method", "path", "document", "status", "message"),
    [
        ("GET", f"/v4/sessions/{NOWHERE}", None, 500, "does not exist"),
        ("POST", f"/v4/sessions/{NOWHERE}/statements", {"statement": "SELECT 1"}, 500, "does not exist"),
        ("GET", "/v4/sessions/abc", None, 400, "send a UUID"),
        ("POST", "/v4/sessions", b"{bad", 400, "the body is no JSON"),
        ("POST", "/v4/sessions", [1], 400, "send an object"),
        ("POST", "/v4/sessions", {"properties": {"parallelism.default": "many"}}, 500, "parallelism.default"),
        ("POST", "/v4/sessions", b" " * (2 << 20), 413, "more than 1048576 bytes"),
        ("GET", "/v9/info", None, 404, "Not found: /v9/info"),
        ("POST", "/v4/info", None, 405, "Method not allowed: POST; send GET, HEAD, OPTIONS"),
        ("POST", f"/v1/sessions/{NOWHERE}/configure-session", {}, 404, "Not found"),
    ],
)
def test_a_request_that_cannot_be_done_is_refused_with_the_reason(gateway, method, path, document, status, message):
    with pytest.raises(Failed) as refused:
        ask(method, gateway.url + path, document)
    assert refused.value.status == status and message in str(refused.value.errors)


def test_versions_and_product_are_known_on_each_path(gateway):
    for prefix in ("", "/v1", "/v2", "/v3", "/v4"):
        assert ask("GET", f"{gateway.url}{prefix}/info")["productName"] == "rayflink"
        assert ask("GET", f"{gateway.url}{prefix}/api_versions") == {"versions": ["V1", "V2", "V3", "V4"]}


def test_a_session_is_configured_completed_and_closed(client):
    for statement in ("SET 'a.secret' = 'hidden'", "CREATE TABLE tea (cups INT) WITH ('connector' = 'blackhole')"):
        assert client.ask("POST", f"{client.path}/configure-session", {"statement": statement}) == {}
    shown = client.ask("GET", client.path)["properties"]
    assert (shown["table.local-time-zone"], shown["a.secret"]) == ("Europe/Berlin", "******")
    asked = {"statement": "SELECT * FROM te", "position": 16}
    assert client.ask("GET", f"{client.path}/complete-statement", asked) == {"candidates": ["tea"]}
    with pytest.raises(Failed, match="Unsupported statement for configuring session"):
        client.ask("POST", f"{client.path}/configure-session", {"statement": "SELECT 1"})
    assert client.ask("POST", f"{client.path}/heartbeat") == {}
    for path, message in (("scripts", "scripts are not deployed"), ("nothing", "Not found")):
        with pytest.raises(Failed, match=message):
            client.ask("POST", f"{client.path}/{path}", {"script": "SELECT 1"})
    with pytest.raises(Failed, match="there are no materialized tables"):
        client.ask("POST", f"/v3/sessions/{client.handle}/materialized-tables/tea/refresh", {})
    assert client.ask("DELETE", client.path) == {"status": "CLOSED"}
    with pytest.raises(Failed, match="does not exist"):
        client.ask("DELETE", client.path)


def test_secrets_are_in_no_answer(client):
    client.run("SET 'my.password' = 'hidden'")
    assert ["my.password", "******"] in client.rows("SET")
    for statement in ("CREATE TABLE k (a INT) WITH ('connector' = 'blackhole', 'a.password' = 'hidden')",
                      "SET 'my.password' = 'hidden' nonsense"):  # fmt: skip
        with pytest.raises(Failed) as refused:
            client.run(statement)
        assert "hidden" not in str(refused.value.errors)


def test_options_of_a_statement_hold_for_it_alone(client):
    query = "SELECT CAST(TIMESTAMP '2024-01-02 03:04:05' AS TIMESTAMP_LTZ(0))"
    answer = client.run(query, "PLAIN_TEXT", executionConfig={"execution.runtime-mode": "batch"})
    assert answer["rows"] == [["INSERT", "2024-01-02 03:04:05"]]
    assert "execution.runtime-mode" not in client.ask("GET", client.path)["properties"]
    with pytest.raises(Failed, match="executionTimeout is not supported"):
        client.submit(query, executionTimeout=5)


def test_a_query_without_end_waits_for_its_client_and_ends_when_it_is_cancelled(client):
    client.run(ENDLESS)
    operation = client.submit("SELECT a FROM endless")
    pages = client.pages(operation)
    first, second = next(pages), next(pages)
    assert 1 <= len(first["results"]["data"]) <= 5000 and len(second["results"]["data"]) <= 5000
    assert first["jobID"] == second["jobID"]
    assert client.ask("POST", f"{operation}/cancel") == {"status": "CANCELED"}
    assert client.ask("GET", f"{operation}/status") == {"status": "CANCELED"}
    with pytest.raises(Failed, match="in CANCELED status"):
        next(pages)
    with pytest.raises(Failed, match="from CANCELED to CANCELED"):
        client.ask("POST", f"{operation}/cancel")
    assert client.ask("DELETE", f"{operation}/close") == {"status": "CLOSED"}
    with pytest.raises(Failed, match="Can not find the submitted operation"):
        client.ask("GET", f"{operation}/status")
    assert client.rows("SELECT 1") == [[1]]


@pytest.mark.slow
def test_sixteen_sessions_at_once_see_their_own_tables_alone(gateway):
    def run(number):
        client = GatewayClient(gateway.url, version=f"v{1 + number % 4}")
        client.run(f"CREATE VIEW own AS SELECT {number} AS n")
        rows = client.rows("SELECT n FROM own")
        client.ask("DELETE", client.path)
        return rows

    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(run, range(16))) == [[[number]] for number in range(16)]


@pytest.mark.slow
def test_bounds_on_sessions_and_statements_are_kept_and_named(start):
    options = {"sql-gateway.session.max-num": "1", "sql-gateway.session.max-operations": "2"}
    client = GatewayClient(start(options).url)
    with pytest.raises(Failed, match="exceeds the max count: 1"):
        GatewayClient(client.url)
    client.run(ENDLESS)
    for _ in range(2):
        client.submit("SELECT a FROM endless")
    with pytest.raises(Failed, match="raise sql-gateway.session.max-operations"):
        client.submit("SELECT 1")
    client.ask("DELETE", client.path)
    second = GatewayClient(client.url)
    for _ in range(3):
        list(second.pages(second.submit("SHOW CATALOGS")))


def test_what_was_refused_and_expired_is_counted(gateway, client):
    before = ask("GET", f"{gateway.url}/status")["requestsRefused"].get("400", 0)
    with pytest.raises(Failed):
        ask("GET", f"{gateway.url}/v4/sessions/abc")
    figures = ask("GET", f"{gateway.url}/status")
    assert figures["requestsRefused"]["400"] == before + 1 and figures["sessions"] >= 1


def test_jobs_of_inserts_are_listed_and_a_failed_statement_leaves_the_session(client):
    client.run("CREATE TABLE sink (a INT) WITH ('connector' = 'blackhole')")
    job = client.run("INSERT INTO sink VALUES (1)")["job"]
    assert [row[0] for row in client.rows("SHOW JOBS")] == [job]
    with pytest.raises(Failed, match="QUIT is a statement of the shell"):
        client.run("QUIT")


@pytest.mark.slow
def test_a_client_without_the_token_is_refused(start):
    gateway = start({"sql-gateway.token": "correct"})
    for token in (None, "wrong", "correct2"):
        with pytest.raises(Failed) as refused:
            GatewayClient(gateway.url, token=token)
        assert refused.value.status == 401
    assert GatewayClient(gateway.url, token="correct").rows("SHOW CURRENT CATALOG") == [["default_catalog"]]
