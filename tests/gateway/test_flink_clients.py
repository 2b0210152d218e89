"""Flink's own SQL client and JDBC driver run statements here; they need a JDK, and skip without one."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.runs.environments import Unavailable
from benchmarks.servers.bound_process import start_bound
from tests.gateway.flink_gateway import client_command, driver_command

LIMIT_S = 120
SCRIPT = """
SET 'sql-client.execution.result-mode' = 'tableau';
CREATE TABLE numbers (a INT, b STRING) WITH ('connector' = 'datagen', 'number-of-rows' = '3',
    'fields.a.kind' = 'sequence', 'fields.a.start' = '1', 'fields.a.end' = '3');
CREATE TABLE bh (a INT, b STRING) WITH ('connector' = 'blackhole');
SHOW TABLES;
DESCRIBE bh;
INSERT INTO bh SELECT * FROM numbers;
SET 'table.dml-sync' = 'true';
INSERT INTO bh SELECT * FROM numbers;
BEGIN STATEMENT SET;
INSERT INTO bh SELECT * FROM numbers;
INSERT INTO bh SELECT * FROM numbers WHERE a > 1;
END;
EXECUTE STATEMENT SET BEGIN INSERT INTO bh SELECT * FROM numbers; INSERT INTO bh SELECT * FROM numbers; END;
SELECT a, COUNT(*) AS c FROM (VALUES (1), (1), (2)) AS t(a) GROUP BY a;
SET 'execution.runtime-mode' = 'batch';
SELECT a, a * 1.5 AS x, CAST(NULL AS STRING) AS n FROM numbers;
SELECT nosuch FROM numbers;
"""
PRINTED = """\
+------------+
| table name |
+------------+
|         bh |
|    numbers |
+------------+
2 rows in set
+------+--------+------+-----+--------+-----------+
| name |   type | null | key | extras | watermark |
+------+--------+------+-----+--------+-----------+
|    a |    INT | TRUE |     |        |           |
|    b | STRING | TRUE |     |        |           |
+------+--------+------+-----+--------+-----------+
2 rows in set
[INFO] SQL update statement has been successfully submitted to the cluster:
Job ID: 1
[INFO] Complete execution of the SQL update statement.
[INFO] Complete execution of the SQL update statement.
[INFO] Complete execution of the SQL update statement.
+----+-------------+----------------------+
| op |           a |                    c |
+----+-------------+----------------------+
| +I |           1 |                    1 |
| -U |           1 |                    1 |
| +U |           1 |                    2 |
| +I |           2 |                    1 |
+----+-------------+----------------------+
+---+-----+--------+
| a |   x |      n |
+---+-----+--------+
| 1 | 1.5 | <NULL> |
| 2 | 3.0 | <NULL> |
| 3 | 4.5 | <NULL> |
+---+-----+--------+
[ERROR] Could not execute SQL statement. Reason:
SqlError: line 1, column 8: there is no column 'nosuch'; the columns are a, b
  SELECT nosuch FROM numbers
         ^^^^^^
"""
ROWS = """\
at default_catalog.default_database
TABLE_CAT STRING NOT NULL,
  default_catalog,
TABLE_SCHEM STRING NOT NULL, TABLE_CATALOG STRING,
  default_database, default_catalog,
job true
a INT NOT NULL, b STRING, d DECIMAL(10, 2) NOT NULL, c BOOLEAN NOT NULL,
  1, x, 1.00, false,
  2, null, 2.00, true,
da DATE NOT NULL, ts TIMESTAMP(3) NOT NULL, l TIMESTAMP_LTZ(3) NOT NULL, f DOUBLE NOT NULL, g BIGINT NOT NULL, m ...
  2024-01-02, 2024-01-02 03:04:05.12, 2024-01-02 03:04:05.0, 1.5, 7, {k=1},
error true
zone Asia/Tokyo
"""
pytestmark = [pytest.mark.slow, pytest.mark.soak]


def command_of_client() -> list[str]:
    try:
        return client_command()
    except Unavailable as reason:
        pytest.skip(str(reason))


def command_of_driver(folder: Path) -> list[str]:
    try:
        return driver_command(folder)
    except Unavailable as reason:
        pytest.skip(str(reason))


def sql_client(address: str, script: str, folder: Path, token: str) -> str:
    """Run a script by Flink's SQL client, whose configuration names another cluster, and return what it printed."""
    (folder / "config.yaml").write_text("execution.target: remote\nrest.address: elsewhere\n")
    (folder / "script.sql").write_text(script)
    environment = {**os.environ, "FLINK_CONF_DIR": str(folder), "HOME": str(folder),
                   "FLINK_REST_CLIENT_HEADERS": f"Authorization:Bearer {token}"}  # fmt: skip
    command = [*command_of_client(), "gateway", "-e", address, "-hist", str(folder / "history"), "-f",
               str(folder / "script.sql")]  # fmt: skip
    client = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    return re.sub(r"\x1b\[[\d;]*m", "", client.stdout + client.stderr)


def test_flinks_sql_client_runs_a_script(start, tmp_path):
    gateway = start({"sql-gateway.token": "correct"})
    printed = sql_client(gateway.url.removeprefix("http://"), SCRIPT, tmp_path, "correct")
    shown = re.sub(r"Job ID: [0-9a-f]{32}", "Job ID: 1", printed)
    shown = re.sub(r"Flink SQL> [^\n]*?(?=\+-|\[INFO\]|\[ERROR\]|$)", "", shown, flags=re.MULTILINE)
    lines = iter([line.rstrip() for line in shown.splitlines()])
    assert [line for line in PRINTED.splitlines() if line not in lines] == [], printed
    refused = sql_client(gateway.url.removeprefix("http://"), "SHOW TABLES;", tmp_path, "wrong")
    assert "the token is missing or wrong" in refused


def test_flinks_jdbc_driver_runs_statements_and_reads_rows(gateway, tmp_path):
    command = [*command_of_driver(tmp_path), gateway.url.removeprefix("http://"), "all"]
    driver = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    lines = [line.rstrip() for line in driver.stdout.splitlines()]
    cut = [line[: line.index(" m MAP") + 2] + " ..." if " m MAP" in line else line for line in lines]
    assert cut == ROWS.splitlines(), driver.stderr


def test_a_client_of_a_gateway_that_is_killed_ends_with_an_error(tmp_path):
    driver_program = command_of_driver(tmp_path)
    command = [sys.executable, "-m", "rayflink", "sql-gateway", "run", "--local", "-Dsql-gateway.endpoint.rest.port=0"]
    gateway = start_bound(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        address = gateway.stdout.readline().decode().split("http://")[1].strip()
        driver = start_bound([*driver_program, address, "endless"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert driver.stdout.readline() == b"first row\n", driver.stderr.read()
        gateway.send_signal(signal.SIGKILL)
        _, errors = driver.communicate(timeout=LIMIT_S)
        assert driver.returncode != 0 and b"Exception" in errors
    finally:
        gateway.kill()
        gateway.wait()
        gateway.stdout.close()
