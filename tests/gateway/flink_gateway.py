"""Flink's own gateway and clients, and what its gateway answers to statements.

    python -m tests.gateway.flink_gateway --record    runs Flink's gateway, and writes its answers to the golden file

It needs a JDK and Maven; Flink's jars are downloaded from PyPI and Maven Central the first time.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

from benchmarks.runs.environments import Environment, Unavailable, cache_directory
from benchmarks.servers.bound_process import start_bound
from tests.gateway.gateway_client import Failed, GatewayClient, ask

GOLDEN = Path(__file__).parents[1] / "golden" / "gateway" / "flink_answers.jsonl"
_FLINK = "2.3.0"
_PYPI = Environment("flink", (f"apache-flink-libraries=={_FLINK}",), dependencies=False)
_MAVEN = (
    ("org.apache.flink", "flink-sql-gateway", _FLINK),
    ("org.apache.flink", "flink-sql-gateway-api", _FLINK),
    ("org.apache.flink", "flink-sql-jdbc-driver-bundle", _FLINK),
    ("org.slf4j", "slf4j-api", "1.7.36"),
)
_STARTS_WITHIN_S = 60
_JOB = re.compile(r"[0-9a-f]{32}")
STATEMENTS = (
    """SELECT CAST(1 AS TINYINT) AS ti, CAST(2 AS SMALLINT) AS si, 3 AS i, CAST(4 AS BIGINT) AS bi,
    CAST(1.5 AS FLOAT) AS f, CAST(2.25 AS DOUBLE) AS d, CAST('12.340' AS DECIMAL(10, 3)) AS de, TRUE AS b, 'abc' AS c,
    CAST('abc' AS STRING) AS s, CAST('abc' AS VARCHAR(5)) AS vc, x'0aff' AS bi2, CAST(x'0aff' AS BYTES) AS b3""",
    """SELECT DATE '2024-01-02' AS da, TIME '10:11:12' AS t, TIME '10:11:12.5' AS t1,
    TIMESTAMP '2024-01-02 03:04:05' AS ts, TIMESTAMP '2024-01-02 03:04:05.120' AS ts3,
    CAST(TIMESTAMP '2024-01-02 03:04:00.123456' AS TIMESTAMP(6)) AS ts6,
    CAST(TIMESTAMP '2024-01-02 03:04:05.123' AS TIMESTAMP_LTZ(3)) AS l""",
    """SELECT CAST(1e10 AS DOUBLE) AS a, CAST(1e-5 AS DOUBLE) AS b, CAST(100 AS DOUBLE) AS c, CAST(1e7 AS FLOAT) AS d,
    CAST(123456.789 AS FLOAT) AS e, CAST('1E+3' AS DECIMAL(10, 0)) AS g, CAST('0.00000001' AS DECIMAL(20, 10)) AS h,
    CAST('NaN' AS DOUBLE) AS n""",
    """SELECT ARRAY[1, 3] AS a, MAP['k', 1, 'l', 2] AS m, ROW(1, 'x') AS r, CAST(NULL AS INT) AS n,
    CAST(ROW(1, TIMESTAMP '2024-01-02 03:04:05') AS ROW<q INT, w TIMESTAMP(3)>) AS r2,
    ARRAY[CAST(1.10 AS DECIMAL(5, 2))] AS ad, ARRAY[x'01'] AS ab, ARRAY[TRUE] AS bo,
    ARRAY[CAST('2024-01-02 03:04:05' AS TIMESTAMP_LTZ(3))] AS al, MAP['d', ARRAY[DATE '2024-01-02']] AS m2""",
    "SELECT INTERVAL '1' DAY AS a, INTERVAL '2' MONTH AS b",
    "SELECT a, COUNT(*) AS c FROM (VALUES (1), (1), (2)) AS t(a) GROUP BY a",
    "CREATE TABLE g (a INT NOT NULL, b STRING) WITH ('connector' = 'datagen', 'number-of-rows' = '3')",
    "CREATE TABLE bh (a INT, b STRING) WITH ('connector' = 'blackhole')",
    "CREATE TABLE bh (a INT) WITH ('connector' = 'blackhole')",
    "SHOW TABLES",
    "DESCRIBE g",
    "SHOW CATALOGS",
    "SHOW CURRENT CATALOG",
    "SHOW DATABASES",
    "SHOW CURRENT DATABASE",
    "SHOW VIEWS",
    "SET 'x.y' = 'z'",
    "RESET 'x.y'",
    "USE CATALOG default_catalog",
    "USE default_database",
    "CREATE VIEW v AS SELECT a FROM g",
    "DROP VIEW v",
    "CREATE DATABASE d1",
    "ALTER TABLE g RENAME TO g2",
    "INSERT INTO bh SELECT * FROM g2",
    "EXECUTE STATEMENT SET BEGIN INSERT INTO bh SELECT * FROM g2; INSERT INTO bh SELECT * FROM g2; END",
    "SET 'table.dml-sync' = 'true'",
    "INSERT INTO bh SELECT * FROM g2",
    "BEGIN STATEMENT SET",
    "INSERT INTO bh SELECT * FROM g2",
    "SELECT 1",
    "END",
    "SELECT a FROM g2 WHERE a IS NULL",
    "SELECT 1;",
    "SELECT 1; SELECT 2",
    "SELECT nosuch FROM g2",
    "EXECUTE STATEMENT SET BEGIN INSERT INTO bh SELECT * FROM g2",
    "SELEC 1",
)
FORMS = ("JSON", "PLAIN_TEXT")


def answers(url: str) -> list[dict[str, Any]]:
    """Return what a gateway answers to the statements, run in one session; ids of jobs are left out."""
    client, found = GatewayClient(url, {"execution.runtime-mode": "streaming", "parallelism.default": "1"}), []
    for statement in STATEMENTS:
        for form in FORMS if statement.startswith("SELECT") else FORMS[:1]:
            asked = {"statement": " ".join(statement.split()), "form": form}
            try:
                answer = client.run(statement, form)
            except Failed as error:
                is_incomplete = 'Encountered "<EOF>"' in str(error.errors)
                found.append({**asked, "status": error.status, "is_incomplete": is_incomplete})
                continue
            rows = [["a job" if _JOB.fullmatch(str(value)) else value for value in row] for row in answer["rows"]]
            found.append({**asked, **answer, "rows": rows, "job": answer["job"] is not None})
    return found


def maven_jars() -> dict[str, Path]:
    """Return the jars of Maven Central by artifact, which the first call on a machine downloads.

    Raises:
        Unavailable: they are not there, and cannot be downloaded.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "rayflink"
    folder = cache / f"flink-sql-gateway-{_FLINK}"
    if not folder.exists():
        if shutil.which("mvn") is None:
            raise Unavailable("no mvn on PATH: install maven")
        cache.mkdir(parents=True, exist_ok=True)
        with open(cache / "gateway.lock", "w") as lock, tempfile.TemporaryDirectory(dir=cache) as work:
            flock(lock, LOCK_EX)
            for jar in _MAVEN:
                copy = ["dependency:copy", f"-Dartifact={':'.join(jar)}", f"-DoutputDirectory={work}/lib"]
                command = ["mvn", "-q", "-B", *copy]
                maven = subprocess.run(command, cwd=work, capture_output=True, timeout=300, check=False)
                if maven.returncode:
                    raise Unavailable(f"maven cannot download {jar[1]}")
            if not folder.exists():
                os.rename(Path(work, "lib"), folder)
    return {artifact: folder / f"{artifact}-{version}.jar" for _, artifact, version in _MAVEN}


def java() -> str:
    """Return the path of Java.

    Raises:
        Unavailable: there is none.
    """
    found = shutil.which("java")
    if found is None or shutil.which("javac") is None:
        raise Unavailable("no java and javac on PATH: install a JDK 17 (openjdk-17-jdk-headless)")
    return found


def client_command() -> list[str]:
    """Return the command of Flink's SQL client without its arguments.

    Raises:
        Unavailable: Java or the jars are missing.
    """
    return [*_with_flink("512m"), "org.apache.flink.table.client.SqlClient"]


def _with_flink(heap: str) -> list[str]:
    pyflink, jars = _PYPI.site_packages(cache_directory()) / "pyflink", maven_jars()
    own = [pyflink / "opt" / f"flink-sql-client-{_FLINK}.jar", jars["flink-sql-gateway"], jars["flink-sql-gateway-api"]]
    return [java(), f"-Xmx{heap}", "-Dlog4j2.level=ERROR", "-cp", ":".join([f"{pyflink}/lib/*", *map(str, own)])]


def driver_command(folder: Path) -> list[str]:
    """Return the command that runs the program of Flink's JDBC driver, compiled into a folder.

    Raises:
        Unavailable: Java or the jars are missing.
    """
    source, jars, found = Path(__file__).with_name("JdbcProgram.java"), maven_jars(), java()
    subprocess.run(["javac", "-nowarn", "-d", str(folder), str(source)], check=True, timeout=120)
    path = [str(folder), str(jars["flink-sql-jdbc-driver-bundle"]), str(jars["slf4j-api"])]
    return [found, "-Xmx256m", "-cp", ":".join(path), source.stem]


@contextmanager
def running_gateway() -> Iterator[str]:
    """Run Flink's gateway, and yield its address.

    Raises:
        Unavailable: Java or the jars are missing.
    """
    with socket.socket() as free, socket.socket() as other:
        free.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        port, rest_port = free.getsockname()[1], other.getsockname()[1]
    with tempfile.TemporaryDirectory() as conf:
        options = {
            "execution.target": "local", "table.local-time-zone": "Europe/Berlin", "rest.port": rest_port,
            "sql-gateway.endpoint.rest.address": "127.0.0.1", "sql-gateway.endpoint.rest.port": port,
        }  # fmt: skip
        Path(conf, "config.yaml").write_text("".join(f"{key}: {value}\n" for key, value in options.items()))
        command = [*_with_flink("1g"), "org.apache.flink.table.gateway.SqlGateway"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = start_bound(command, env={**os.environ, "FLINK_CONF_DIR": conf}, **quiet)
        try:
            _wait_for(f"http://127.0.0.1:{port}/info")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def record() -> None:
    """Run Flink's gateway and write its answers."""
    with running_gateway() as url:
        found = answers(url)
    GOLDEN.parent.mkdir(parents=True, exist_ok=True)
    GOLDEN.write_text("".join(json.dumps(answer) + "\n" for answer in found))


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + _STARTS_WITHIN_S
    while time.monotonic() < deadline:
        try:
            ask("GET", url)
            return
        except OSError:
            time.sleep(0.2)
    raise Unavailable(f"Flink's gateway has not started within {_STARTS_WITHIN_S} s")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", required=True)
    parser.parse_args(arguments)
    record()
    return 0


if __name__ == "__main__":
    sys.exit(main())
