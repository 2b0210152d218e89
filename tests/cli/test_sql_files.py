"""`rayflink run file.sql`: what it prints, and its exit codes."""

from __future__ import annotations

import pytest

from rayflink.cli.main import main


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text, name="report.sql"):
        data = text if isinstance(text, bytes) else text.encode("utf-8")
        (tmp_path / name).write_bytes(data)
        return name

    return write


def test_a_file_of_sql_runs_with_the_options_of_the_command_line(script, capsys):
    name = script("\ufeffSELECT 'ä;' AS a; SHOW VIEWS", "Report.SQL")
    assert main(["run", "--local", "-D", "execution.runtime-mode=BATCH", name]) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.strip("| ") for line in out[:5]][1::2] == ["a", "ä;"] and out[5] == "1 row in set"


def test_an_error_names_the_file_the_line_and_the_column(script, capsys):
    name = script("CREATE TABLE t (n INT) WITH ('connector' = 'datagen');\nSELECT n,\n  m FROM t")
    assert main(["run", "--local", name]) == 1
    err = capsys.readouterr().err
    assert err.startswith("rayflink: report.sql, line 3, column 3: there is no column 'm'")
    assert "Traceback" not in err and err.splitlines()[-2:] == ["    m FROM t", "    ^"]


@pytest.mark.parametrize("text, wanted", [(b"\xff", "it is not UTF-8"), (None, "there is no program")])
def test_a_file_that_cannot_be_read_is_no_crash(script, capsys, text, wanted):
    name = "nothing.sql" if text is None else script(text)
    assert main(["run", "--local", name]) == 2
    assert wanted in capsys.readouterr().err


def test_a_script_takes_no_arguments(script, capsys):
    assert main(["run", "--local", script("SELECT 1"), "a", "b"]) == 2
    assert "takes no arguments, found a b" in capsys.readouterr().err


def test_explain_shows_the_jobs_of_a_script(script, capsys):
    text = "CREATE TABLE p (n INT) WITH ('connector' = 'print'); INSERT INTO p SELECT 1; SELECT 2 AS two"
    assert main(["explain", script(text)]) == 0
    out = capsys.readouterr().out
    assert "Job 'insert-into_default_catalog.default_database.p'" in out and "Job 'collect'" in out
