"""Compares the rows of MATCH_RECOGNIZE with those of Flink SQL, for the golden queries and for random ones.

    python -m tests.table.matching.flink_oracle --queries 400 --seed 1
    python -m tests.table.matching.flink_oracle --queries 80 --seed 7 --record    writes the file that the tests read

It needs a JDK; Flink's jars are downloaded from PyPI the first time. The queries run in one JVM.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

from benchmarks.inputs import nexmark
from benchmarks.runs.environments import Unavailable
from rayflink.connectors.nexmark import Nexmark
from rayflink.table import EnvironmentSettings, TableEnvironment
from rayflink.table.parsing.statement_parser import script_parts
from tests.cep.flink_oracle import java_program
from tests.source_files import ROOT
from tests.table.matching.flink_differences import Answer, our_answer, verdict_on
from tests.table.matching.random_matches import COLUMNS, RandomMatches, random_rows
from tests.table.queries.golden_queries import FOLDER, GoldenQuery, golden_queries

RECORD = ROOT / "tests" / "golden" / "match_recognize.jsonl"
_TABLES = 12
_EVENTS = 400
"""Events of Nexmark in the tables of golden queries."""
_SOURCE = Path(__file__).with_name("SqlOracle.java")
_LIMIT_S = 7200


def flink_answers(command: Sequence[str], queries: Sequence[str], tables: Sequence[str]) -> list[Answer]:
    """Return what Flink SQL gives for each query.

    Args:
        command: see `oracle`.
        tables: statements that create what the queries read.
    """
    with tempfile.TemporaryDirectory() as folder:
        created, asked, answered = (Path(folder) / name for name in ("tables", "queries", "answers"))
        created.write_text(json.dumps(list(tables)))
        asked.write_text("".join(f"{json.dumps(query)}\n" for query in queries))
        subprocess.run([*command, *map(str, (created, asked, answered))], check=True, timeout=_LIMIT_S)
        return [json.loads(line) for line in answered.read_text().splitlines()]


def row_patterns() -> list[GoldenQuery]:
    """Return the golden queries with MATCH_RECOGNIZE on streams; Flink has it in batch mode by time alone."""
    queries = [query for query in golden_queries() if "MATCH_RECOGNIZE" in query.text]
    return [query for query in queries if query.options.get("mode") != "batch"]


def golden_tables(folder: Path) -> list[str]:
    """Return the tables of golden queries as Flink can read them: Nexmark's bids are written to a folder."""
    script = (FOLDER / "tables.sql").read_text(encoding="utf-8").replace("{folder}", str(FOLDER))
    tables = [part.text.strip() for part in script_parts(script)]
    events = nexmark.event_files(folder, _EVENTS, rules=Nexmark(events_per_second=1000))
    bids = nexmark.TABLES.replace("{path}", str(events)).split(";\n")[-1]
    return [*(table for table in tables if "'connector' = 'filesystem'" in table), bids]


def random_tables(seed: int) -> dict[str, str]:
    """Return tables of random rows, as CSV."""
    return {f"random_{number}": random_rows(Random(f"rows {seed} {number}")) for number in range(_TABLES)}


def random_queries(count: int, seed: int) -> list[str]:
    """Return queries over these tables that the seed decides."""
    randoms = [Random(f"query {seed} {number}") for number in range(count)]
    return [RandomMatches(random).query(f"random_{number % _TABLES}") for number, random in enumerate(randoms)]


def csv_tables(rows: Mapping[str, str], folder: Path) -> list[str]:
    """Write rows to files, and return statements that create the tables of them."""
    statements = []
    for name, text in rows.items():
        path = folder / f"{name}.csv"
        path.write_text(text, encoding="utf-8")
        options = f"'connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv', 'csv.null-literal' = ''"
        statements.append(f"CREATE TABLE {name} ({COLUMNS}) WITH ({options})")
    return statements


def environment(tables: Sequence[str]) -> TableEnvironment:
    """Return an environment of rayflink with tables."""
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {"execution.target": "local", "parallelism.default": "1", "table.local-time-zone": "UTC"}.items():
        t_env.get_config().set_string(key, value)
    for table in tables:
        t_env.execute_sql(table)
    return t_env


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=400, help="random ones, beside the golden ones")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=5, help="differences to print")
    parser.add_argument("--record", action="store_true", help="write the file that the tests read, of random queries")
    options = parser.parse_args(arguments)
    try:
        command = java_program(_SOURCE, "OFF")
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return 0
    rows, queries, golden = random_tables(options.seed), random_queries(options.queries, options.seed), row_patterns()
    with tempfile.TemporaryDirectory() as folder:
        tables = [*golden_tables(Path(folder)), *csv_tables(rows, Path(folder))]
        statements = [query.text for query in golden]
        answers = flink_answers(command, [*statements, *queries], tables)
        t_env = environment(tables)
        ours = [*(our_answer(query.environment(), query.text) for query in golden),
                *(our_answer(t_env, query) for query in queries)]  # fmt: skip
    verdicts: Counter[str] = Counter()
    for query, answer, our in zip([*statements, *queries], answers, ours, strict=True):
        verdict = verdict_on(answer, our)
        verdicts[verdict] += 1
        if verdict.startswith("DIFFERENT") and sum(verdicts[known] for known in _different(verdicts)) <= options.show:
            print(f"{verdict}\n{query}\n  flink {_shown(answer)}\n  ours  {_shown(our)}")
    for verdict, count in sorted(verdicts.items()):
        print(f"{count:7}  {verdict}")
    if options.record:
        pairs = zip(queries, answers[len(golden) :], strict=True)
        lines = [rows, *({"query": query, "flink": answer} for query, answer in pairs)]
        RECORD.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    return 1 if _different(verdicts) else 0


def _different(verdicts: Counter[str]) -> list[str]:
    return [verdict for verdict in verdicts if verdict.startswith("DIFFERENT")]


def _shown(answer: Answer) -> object:
    return sorted(answer["rows"], key=repr) if "rows" in answer else answer


if __name__ == "__main__":
    sys.exit(main())
