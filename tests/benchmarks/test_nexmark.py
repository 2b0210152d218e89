"""Nexmark's queries give the rows that DuckDB gives, and those that are noted; the files are the same everywhere."""

from __future__ import annotations

import hashlib
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.inputs.nexmark import QUERIES, VIEWS, event_files, kept_rows, statements
from benchmarks.tables.ours_nexmark import job_of, session_of
from rayflink.connectors.nexmark import Nexmark

EVENTS = 30_000
RULES = Nexmark(events_per_second=1_000)
NOTED = {
    "q0": (27600, "e45c0cb80c8159c8"),
    "q1": (27600, "85daa5cb376a6888"),
    "q2": (115, "eae2389f2d693570"),
    "q5": (19, "a3e021076b442ed2"),
    "q6": (262, "eacce8b3d5dd5908"),
    "q7": (3, "4c1edcdba555eac7"),
    "q8": (167, "269871420c3da5c6"),
    "q10": (27600, "77fc88f58c148ead"),
    "q11": (568, "31b4df77a503931d"),
    "q13": (27600, "4c0af8bb0ee63ecc"),
    "q14": (7874, "9a8cc46b81547bbc"),
    "q21": (26184, "e6e1d55a21297860"),
    "q22": (27600, "30848557da6be891"),
    "cep_q0": (1260, "b0b98aa347ea3ae3"),
    "cep_q1": (4146, "077b1354b6cffa14"),
    "cep_q2": (5986, "bc7bedbc23aa60d1"),
    "cep_q3": (5419, "21615c5bffed5e8b"),
}
"""Of Flink 2.3 on the same files: how many rows, and their digest."""
ORACLE = {
    "q1": "SELECT auction, bidder, 0.908 * price, datetime, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q11": """WITH marked AS (
      SELECT bidder, datetime, coalesce(datetime - lag(datetime) OVER own > INTERVAL 10 SECOND, true)::INT AS opens
      FROM bid WINDOW own AS (PARTITION BY bidder ORDER BY datetime)
    ), numbered AS (SELECT *, sum(opens) OVER (PARTITION BY bidder ORDER BY datetime) AS session FROM marked)
    SELECT bidder, count(*), min(datetime), max(datetime) + INTERVAL 10 SECOND FROM numbered
    GROUP BY bidder, session""",
    "q14": """SELECT auction, bidder, 0.908 * price,
      CASE WHEN hour(datetime) BETWEEN 8 AND 18 THEN 'dayTime' WHEN hour(datetime) <= 6 OR hour(datetime) >= 20
      THEN 'nightTime' ELSE 'otherTime' END, datetime, extra, len(extra) - len(replace(extra, 'c', ''))
      FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    "q21": """WITH found AS (SELECT *, CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook'
      THEN '2' WHEN 'baidu' THEN '3' ELSE nullif(regexp_extract(url, '[&]channel_id=([^&]*)', 1), '') END AS id
      FROM bid)
      SELECT auction, bidder, price, channel, id FROM found WHERE id IS NOT NULL""",
    "q22": """SELECT auction, bidder, price, channel, split_part(url, '/', 4), split_part(url, '/', 5),
      split_part(url, '/', 6) FROM bid""",
}
"""Of the same meaning in DuckDB's words."""


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return event_files(tmp_path_factory.mktemp("nexmark"), EVENTS, rules=RULES)


def run(query: str, events: Path, kept_in: Path, file_format: str = "csv") -> list[tuple[str, ...]]:
    before, insert = session_of(query, kept_in, kept_in, file_format)
    job_of([statement.replace("{path}", str(events)) for statement in before], insert, 2, "local")
    return kept_rows(kept_in / query)


def digest(rows: list[tuple[str, ...]]) -> str:
    return hashlib.sha256("\n".join("\t".join(row) for row in rows).encode()).hexdigest()[:16]


def by_duckdb(query: str, events: Path) -> list[tuple[Any, ...]]:
    duckdb = pytest.importorskip("duckdb")
    columns = {
        "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel TEXT, url TEXT, datetime TIMESTAMP, extra TEXT"
    }
    base = duckdb.connect()
    for table, declared in columns.items():
        base.execute(f"CREATE TABLE {table} ({declared})")
        base.execute(f"COPY {table} FROM '{events / table / 'part-0.csv'}' (HEADER false)")
    rows: list[tuple[Any, ...]] = base.execute(query).fetchall()
    return rows


def shown(value: object) -> str:
    if isinstance(value, datetime):
        text = value.isoformat(" ")
        return text.rstrip("0").rstrip(".") if "." in text else text
    text = str(value)
    return text.rstrip("0").rstrip(".") if "." in text and text.replace(".", "").isdigit() else text


@pytest.mark.slow
@pytest.mark.parametrize("query", ORACLE)
def test_a_query_gives_the_rows_of_duckdb(query: str, events: Path, tmp_path: Path) -> None:
    wanted = sorted(tuple(map(shown, row)) for row in by_duckdb(ORACLE[query], events))
    assert wanted and run(query, events, tmp_path) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("query", NOTED)
def test_a_query_gives_the_rows_that_flink_gave(query: str, events: Path, tmp_path: Path) -> None:
    rows = run(query, events, tmp_path)
    assert (len(rows), digest(rows)) == NOTED[query]


@pytest.mark.slow
@pytest.mark.parametrize("file_format", ["parquet", "json"])
def test_files_of_each_format_give_the_rows_of_flink(file_format: str, tmp_path: Path) -> None:
    events = event_files(tmp_path, EVENTS, 2, RULES, file_format)
    for query in ("q6", "q10", "q13"):
        rows = run(query, events, tmp_path / "kept", file_format)
        assert (len(rows), digest(rows)) == NOTED[query], query
    partitions = {path.parent for path in (tmp_path / "kept" / "q10").rglob("part-*")}
    assert partitions and all((partition / "_SUCCESS").exists() for partition in partitions)


def test_a_query_writes_into_a_table_of_its_own() -> None:
    assert all(statements(query)[-1].startswith(f"INSERT INTO nexmark_{query} SELECT") for query in QUERIES)
    assert statements("q12")[1] == VIEWS["q12"]


@pytest.mark.slow
def test_files_hold_all_events_in_the_order_of_their_turns(tmp_path: Path) -> None:
    whole, dealt = event_files(tmp_path, 10_000), event_files(tmp_path, 10_000, parts=2)
    for table in ("person", "auction", "bid"):
        lines = (whole / table / "part-0.csv").read_text().splitlines()
        parts = [(dealt / table / f"part-{part}.csv").read_text().splitlines() for part in range(2)]
        assert sorted(parts[0] + parts[1]) == sorted(lines) and abs(len(parts[0]) - len(parts[1])) <= 1
        assert [line for line in lines if line in set(parts[1])] == parts[1]
    assert event_files(tmp_path, 10_000) == whole


def test_rows_of_two_engines_are_compared_in_one_form(tmp_path: Path) -> None:
    (tmp_path / "one").write_text('2,1.500,"2015-07-15 00:00:00",1E+3\n')
    (tmp_path / "_SUCCESS").write_text("not a row\n")
    other = tmp_path / "other"
    other.mkdir()
    (other / "part").write_text("2,1.5,2015-07-15 00:00:00.000,1000.0\n1,0.25,2015-07-15 00:00:01.250,a.0\n")
    assert kept_rows(tmp_path) == [
        ("1", "0.25", "2015-07-15 00:00:01.25", "a.0"),
        ("2", "1.5", "2015-07-15 00:00:00", "1000"),
        ("2", "1.5", "2015-07-15 00:00:00", "1000"),
    ]
