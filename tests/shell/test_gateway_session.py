"""The shell at a SQL gateway."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rayflink.common.configuration import Configuration
from rayflink.dbapi import Gateway
from rayflink.gateway.sql_gateway import SqlGateway
from rayflink.shell.completion import candidates
from rayflink.shell.gateway_session import GatewayRefusal, GatewaySession
from rayflink.shell.shell_loop import Shell

TOKEN = "sesame"
QUERY = "SELECT a, COUNT(*) AS n FROM (VALUES ('x'), ('y'), ('x')) AS t(a) GROUP BY a"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("savepoints")
    options = {
        "sql-gateway.endpoint.rest.port": "0", "execution.target": "local", "sql-gateway.token": TOKEN,
        "execution.checkpointing.savepoint-dir": str(folder),
    }  # fmt: skip
    gateway = SqlGateway(Configuration.from_dict(options), options)
    gateway.start()
    yield gateway.url
    gateway.stop()


class Terminal:
    """A shell at a gateway whose results are strings."""

    def __init__(self, url: str) -> None:
        self.session = GatewaySession(Gateway(url, TOKEN), {"sql-client.display.print-time-cost": "false"})
        self._out = io.StringIO()
        self._shell = Shell(self.session, self._out, self._out, False)

    def run(self, text: str) -> str:
        before = self._out.tell()
        self._shell.run_all(text, "")
        return self._out.getvalue()[before:]


@pytest.fixture
def terminal(url: str) -> Iterator[Terminal]:
    terminal = Terminal(url)
    yield terminal
    terminal.session.close()


def test_results_are_shown_in_each_mode_and_format(terminal):
    assert "| x | 2 |" in terminal.run(QUERY) and "2 rows in set" in terminal.run(QUERY)
    terminal.run("SET 'sql-client.execution.result-mode' = 'changelog'")
    assert "| -U |" in terminal.run(QUERY)
    terminal.run("SET 'sql-client.execution.result-format' = 'csv'")
    assert terminal.run(QUERY).splitlines()[0] == "op,a,n"
    terminal.run("SET 'execution.runtime-mode' = 'batch'; SET 'sql-client.execution.result-format' = 'json'")
    lines = [json.loads(line) for line in terminal.run(QUERY).splitlines()]
    assert sorted(lines, key=str) == [{"a": "x", "n": 2}, {"a": "y", "n": 1}]
    terminal.run("RESET")
    assert "default_catalog" in terminal.run("SHOW CATALOGS")
    assert terminal.run("EXPLAIN SELECT 1").startswith("== Abstract Syntax Tree ==\n")


def test_jobs_are_listed_and_stopped_with_a_savepoint(terminal):
    terminal.run("CREATE TABLE endless (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '10')")
    terminal.run("CREATE TABLE nowhere (n BIGINT) WITH ('connector' = 'blackhole')")
    assert terminal.run("SHOW JOBS") == "no jobs; INSERT INTO starts one\n"
    submitted = terminal.run("INSERT INTO nowhere SELECT n FROM endless")
    job_id = submitted.split()[1]
    assert submitted == f"Job {job_id} submitted\n" and job_id in terminal.run("SHOW JOBS")
    assert "takes no savepoint of a job that goes on" in terminal.run(f"SAVEPOINT JOB '{job_id}'")
    assert "takes no folder in STOP JOB" in terminal.run(f"STOP JOB '{job_id}' WITH SAVEPOINT 'there'")
    stopped = terminal.run(f"STOP JOB '{job_id}' WITH SAVEPOINT")
    assert stopped.startswith(f"Job {job_id} stopped with savepoint ")
    assert Path(stopped.split()[-1]).exists()


def test_errors_are_those_of_the_gateway(terminal):
    assert "[ERROR] line 1, column 8: there is no column 'missing'" in terminal.run("SELECT missing")
    assert "[ERROR] " in terminal.run("SELEC 1")


@pytest.mark.parametrize(("statement", "place"), [
    ("SELECT missing", ": line 3, column 8: "), ("SET 'a' == 'b'", ": line 3, column 9: "),
    ("EXECUTE PLAN '/no/such.json'", ", statement at line 3: "),
], ids=["query", "option", "without a place"])  # fmt: skip
def test_an_error_of_a_file_has_its_line_in_that(terminal, tmp_path, statement, place):
    file = tmp_path / "a.sql"
    file.write_text(f"SHOW VIEWS;\n\n{statement};")
    shown = terminal.run(f"SOURCE '{file}'")
    assert f"[ERROR] {file}{place}" in shown and shown.count("line 3") == 1


def test_names_of_the_gateway_are_completed(terminal):
    terminal.run("CREATE TABLE orders (order_id BIGINT) WITH ('connector' = 'datagen')")
    vocabulary = terminal.session.vocabulary
    assert [candidate.text for candidate in candidates("SELECT * FROM o", "", vocabulary)] == ["orders"]
    assert candidates("SELECT or", " FROM orders", vocabulary)[0].text == "order_id"
    assert vocabulary.columns("missing") == []
    assert "default_database" in vocabulary.places() and "upper" in vocabulary.functions()


def test_a_gateway_that_refuses_is_told(url):
    with pytest.raises(GatewayRefusal, match="refuses the request"):
        GatewaySession(Gateway(url, "wrong"), {})
