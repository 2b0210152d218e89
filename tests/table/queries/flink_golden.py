"""Golden queries as Flink SQL answers them: the rows that are left after all changes.

    python -m tests.table.queries.flink_golden    writes the file that the tests read

It needs a JDK; Flink's jars are downloaded from PyPI the first time.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from rayflink.table.parsing.statement_parser import script_parts
from tests.cep.flink_oracle import java_program
from tests.source_files import ROOT
from tests.table.matching.flink_differences import Answer
from tests.table.matching.flink_oracle import flink_answers, golden_tables
from tests.table.queries.golden_queries import FOLDER, GoldenQuery, golden_queries

RECORD = ROOT / "tests" / "golden" / "sql_of_flink.jsonl"
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d)(:\d\d)?(\.\d+)?")
_MOST_CHARACTERS = 120
"""Characters of an error that are recorded."""
_SOURCE = Path(__file__).parent.parent / "matching" / "SqlOracle.java"


def rows_left(changes: Iterable[str]) -> list[str]:
    """Return the rows that are left after changes, sorted, each as if it had just come."""
    left: Counter[str] = Counter()
    for change in changes:
        left[change[2:]] += 1 if change[:2] in ("+I", "+U") else -1
    return sorted(f"+I{_TIME.sub(_with_milliseconds, row)}" for row in left.elements())


def _with_milliseconds(time: re.Match[str]) -> str:
    """Return a time as rayflink prints it; Java leaves out seconds that are 0, and zeros behind the point."""
    return f"{time[1]}{time[2] or ':00'}.{(time[3] or '.')[1:]:0<3}"


def recorded() -> Mapping[str, Answer]:
    """Return Flink's answers by the names of queries: `rows`, or `error`."""
    lines = map(json.loads, RECORD.read_text(encoding="utf-8").splitlines())
    return {line["query"]: line["flink"] for line in lines}


def _asked(queries: list[GoldenQuery], *options: str) -> dict[str, Answer]:
    java, *rest = java_program(_SOURCE, "OFF")
    script = (FOLDER / "tables.sql").read_text(encoding="utf-8")
    views = [part.text.strip() for part in script_parts(script) if part.text.strip().startswith("CREATE VIEW")]
    with tempfile.TemporaryDirectory() as folder:
        tables = [*golden_tables(Path(folder)), *(view for view in views if "nexmark_events" not in view)]
        command = [java, "-Dchanges=true", *options, *rest]
        answers = flink_answers(command, [query.text for query in queries], tables)
    return {
        query.folder.name: {"rows": rows_left(row for [row] in answer["rows"])} if "rows" in answer else answer
        for query, answer in zip(queries, answers, strict=True)
    }


def main() -> None:
    answers: dict[str, Answer] = {}
    for (zone, mode), queries in _alike(golden_queries()).items():
        answers |= _asked(queries, f"-Dzone={zone}", f"-Dbatch={str(mode == 'batch').lower()}")
    lines = [{"query": name, "flink": _shortened(answers[name])} for name in sorted(answers)]
    RECORD.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


def _alike(queries: Iterable[GoldenQuery]) -> Mapping[tuple[str, str], list[GoldenQuery]]:
    """Return queries by the time zone and the mode in which they are run."""
    groups: dict[tuple[str, str], list[GoldenQuery]] = {}
    for query in queries:
        place = query.options.get("table.local-time-zone", "UTC"), query.options.get("mode", "streaming")
        groups.setdefault(place, []).append(query)
    return groups


def _shortened(answer: Answer) -> Answer:
    return answer if "rows" in answer else {"error": str(answer["error"])[:_MOST_CHARACTERS]}


if __name__ == "__main__":
    main()
