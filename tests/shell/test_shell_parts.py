"""The parts of the SQL shell that need no terminal."""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from pathlib import Path

import pytest

from rayflink.common.types import RowKind
from rayflink.shell.commands import Command, command_of, is_complete, statements_in
from rayflink.shell.completion import candidates
from rayflink.shell.live_output import LiveTable
from rayflink.shell.result_output import ResultColumns
from rayflink.shell.shell_loop import Shell
from rayflink.shell.sql_session import SqlSession
from rayflink.table import SqlError
from rayflink.table.display.row_slots import RowSlots

LOCAL = {"execution.target": "local", "sql-client.display.print-time-cost": "false"}


class Terminal:
    """A shell whose output is kept."""

    def __init__(self, **options: str) -> None:
        self.session = SqlSession({**LOCAL, **options})
        self.out, self.errors = io.StringIO(), io.StringIO()
        self.shell = Shell(self.session, self.out, self.errors, False)

    def run(self, text: str, origin: str = "") -> str:
        self.out.truncate(0), self.out.seek(0)
        self.errors.truncate(0), self.errors.seek(0)
        self.shell.run_all(text, origin)
        return self.out.getvalue() + self.errors.getvalue()


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        ("", True), ("SELECT 1", False), ("SELECT 1;", True), ("SELECT 1; -- done", True), ("SELECT 'a;", False),
        ("SELECT 'a';  ", True), ("/* ; ", False), ("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1;", False),
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; END;", True), ("SELECT 1;\nSELECT", False),
        ("QUIT", True), ("SELECT ` ;", False), ("SELECT 1a;", True),
    ],
)  # fmt: skip
def test_a_statement_is_complete_at_its_semicolon(text: str, is_whole: bool):
    assert is_complete(text) is is_whole


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("quit;", Command("QUIT")), ("EXIT", Command("QUIT")), ("show  jobs;", Command("SHOW JOBS")),
        ("SOURCE '/a/b''c.sql';", Command("SOURCE", "/a/b'c.sql")),
        ("STOP JOB 'ab' WITH SAVEPOINT '/s' WITH DRAIN", Command("STOP JOB", "ab", "/s", True, True)),
        ("SAVEPOINT JOB 'ab'", Command("SAVEPOINT JOB", "ab")), ("SHOW TABLES;", None), ("SELECT 'quit';", None),
    ],
)  # fmt: skip
def test_statements_of_the_shell_differ_from_those_of_sql(text: str, command: Command | None):
    assert command_of(text) == command


def test_several_statements_are_divided():
    assert [part.strip() for part in statements_in("SELECT ';'; -- one\nSHOW TABLES;")] == [
        "SELECT ';'", "-- one\nSHOW TABLES",
    ]  # fmt: skip


def test_row_slots_hold_what_a_changelog_leaves():
    chosen = random.Random(7)
    slots, expected = RowSlots(10_000), Counter[tuple[str, ...]]()
    for _ in range(3000):
        there = list(expected.elements())
        if there and chosen.random() < 0.45:
            row = chosen.choice(there)
            expected[row] -= 1
            slots.change(chosen.choice([RowKind.UPDATE_BEFORE, RowKind.DELETE]), row, row)
        else:
            row = (str(chosen.randrange(20)),)
            expected[row] += 1
            slots.change(chosen.choice([RowKind.INSERT, RowKind.UPDATE_AFTER]), row, row)
    assert Counter(slots.rows()) == +expected and len(slots) == expected.total()


def test_row_slots_forget_the_oldest_rows_and_count_them():
    slots = RowSlots(2)
    for name in "abc":
        slots.change(RowKind.INSERT, (name,), name)
    slots.change(RowKind.DELETE, ("a",), "a")  # it is gone already
    assert (slots.rows(), slots.dropped) == (["b", "c"], 1)


def test_completion_knows_where_the_cursor_stands():
    session = SqlSession(LOCAL)
    session.run("CREATE TABLE orders (order_id BIGINT, item STRING) WITH ('connector' = 'datagen')")
    vocabulary = session.vocabulary

    def words(text: str, rest: str = "") -> list[tuple[str, str]]:
        return [(candidate.text, candidate.kind) for candidate in candidates(text, rest, vocabulary)]

    assert words("SELECT * FROM o") == [("orders", "table")]
    assert words("SELECT or", " FROM orders")[:2] == [("order_id", "column"), ("or", "keyword")]
    assert ("upper", "function") in words("SELECT upp") and ("sel"[:0] + "select", "keyword") in words("sel")
    assert ("table.dml-sync", "option") in words("SET 'table.dml")
    assert words("SELECT 'o") == [] and ("default_database", "database") in words("SHOW TABLE d FROM default_d")


def test_results_are_written_in_each_mode_and_format():
    terminal = Terminal(**{"table.dml-sync": "true"})
    query = "SELECT a, COUNT(*) AS n FROM (VALUES ('x'), ('y'), ('x')) AS t(a) GROUP BY a"
    assert "3 rows in set" not in terminal.run(query) and "2 rows in set" in terminal.run(query)
    terminal.run("SET 'sql-client.execution.result-mode' = 'changelog'")
    assert "| -U |" in terminal.run(query)
    terminal.run("SET 'sql-client.execution.result-format' = 'csv'")
    assert terminal.run(query).splitlines()[0] == "op,a,n"
    terminal.run("SET 'sql-client.execution.result-mode' = 'table'; SET 'sql-client.execution.result-format' = 'json'")
    lines = [json.loads(line) for line in terminal.run(query).splitlines()]
    assert sorted(lines, key=str) == [{"a": "x", "n": 2}, {"a": "y", "n": 1}]
    terminal.run("SET 'sql-client.execution.max-table-result.rows' = '1'")
    assert terminal.run(query).splitlines()[1] == "2 older rows left out (sql-client.execution.max-table-result.rows)"
    assert [json.loads(line) for line in terminal.run("SHOW CATALOGS").splitlines()] == [
        {"catalog name": "default_catalog"}
    ]


def test_an_error_names_its_place_and_ends_the_text():
    terminal = Terminal()
    shown = terminal.run("SELECT nothing FROM (VALUES (1)) AS t(a); SHOW CATALOGS;", "jobs.sql")
    assert shown.startswith("[ERROR] jobs.sql: line 1, column 8: ") and "^^^^^^^" in shown
    assert "default_catalog" not in shown


def test_jobs_are_started_listed_and_stopped(tmp_path: Path):
    terminal = Terminal(**{"execution.checkpointing.dir": str(tmp_path)})
    terminal.run("CREATE TABLE endless (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '10')")
    terminal.run("CREATE TABLE nowhere (n BIGINT) WITH ('connector' = 'blackhole')")
    assert terminal.run("SHOW JOBS") == "no jobs; INSERT INTO starts one\n"
    submitted = terminal.run("INSERT INTO nowhere SELECT n FROM endless")
    [job] = terminal.session.jobs
    assert submitted == f"Job {job.job_id} submitted\n" and "INSERT INTO nowhere" in terminal.run("SHOW JOBS;")
    assert "is the beginning of 0 ids" in terminal.run("STOP JOB 'zz'")
    assert terminal.run(f"STOP JOB '{job.job_id[:8]}'") == f"Job {job.job_id} canceled\n"
    job.client.get_job_execution_result().done_within(30)
    assert job.state == "CANCELED" and "is CANCELED already" in terminal.run(f"STOP JOB '{job.job_id}'")


def test_a_file_is_sourced_and_its_error_named(tmp_path: Path):
    file = tmp_path / "a.sql"
    file.write_text("CREATE VIEW v AS SELECT 1 AS one;\nSHOW VIEWS; -- of all\nSELECT 1; SELECT\n  missing FROM v;")
    shown = Terminal().run(f"SOURCE '{file}'")
    assert "|         v |" in shown and f"[ERROR] {file}: line 4, column 3: there is no column 'missing'" in shown
    file.write_text("SHOW VIEWS;\n\nEXECUTE PLAN '/no/such.json';")
    assert f"[ERROR] {file}, statement at line 3: " in Terminal().run(f"SOURCE '{file}'")
    assert "cannot read" in Terminal().run("SOURCE '/no/such.sql'")


def test_a_live_table_shows_the_last_rows_that_fit():
    session = SqlSession(LOCAL)
    outcome = session.run("SELECT n FROM (VALUES (1), (2), (3), (4)) AS t(n)")
    table = LiveTable(ResultColumns(outcome.result, 30), 100, io.StringIO())
    assert len(table.follow(outcome.result.collect())) == 4
    lines = table.lines(60, 9)
    assert [line.strip("| ") for line in lines[3:5]] == ["3", "4"] and "4 rows, 2 above, 4 changes" in lines[-1]
    assert all(len(line) < 20 for line in table.lines(20, 9))


def test_a_new_runtime_mode_holds_for_the_statements_behind_it():
    session = SqlSession({"execution.target": "local"})
    for mode, is_batch in (("batch", True), ("streaming", False)):
        session.run(f"SET 'execution.runtime-mode' = '{mode}'")
        outcome = session.run("SELECT SUM(n) FROM (VALUES (1), (2)) AS t(n)")
        assert [row[0] for row in outcome.result.collect()][-1] == 3
        assert session.is_batch is is_batch
    with pytest.raises(SqlError, match="begins no statement"):
        session.run("SETT 'a' = 'b'")
