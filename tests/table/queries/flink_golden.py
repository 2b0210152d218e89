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
from tests.table.queries.golden_queries import FOLDER, GoldenQuery

RECORD = ROOT / "tests" / "golden" / "sql_of_flink.jsonl"
NAMES = (
    "join_of_three_and_groups", "join_left_of_three", "join_full_of_groups", "join_of_four",
    "join_key_and_inequality", "join_same_group_twice", "join_anti_of_groups", "join_on_expression",
    "with_two_levels", "with_union_of_groups", "with_share_of_total", "exists_two_levels", "not_exists_two_levels",
    "in_two_levels", "value_two_levels", "value_of_earlier_rows", "value_of_key", "exists_group_having",
    "in_of_groups", "not_in_of_groups", "having_above_average", "rollup_hop", "grouping_sets_then_top",
    "window_join_of_groups", "cumulate_then_top", "window_then_group", "session_then_group", "last_row_then_join",
    "last_row_then_group", "first_row_then_join", "top_of_joined_rows", "top_of_sums", "top_of_union_of_groups",
    "top_then_join", "top_then_average", "over_then_filter", "over_then_greatest", "over_difference_of_rows",
    "temporal_join_of_view", "temporal_join_then_group", "json_key_of_groups", "json_key_of_rows", "union_of_groups",
    "intersect_of_groups", "except_all_of_changes", "histogram_of_groups", "pivot_by_case",
    "interval_join_then_group", "batch_correlated_two_levels", "batch_rank_of_groups",
)  # fmt: skip
"""The golden queries that Flink is asked for."""
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d)(:\d\d)?(\.\d+)?")
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
    queries = [GoldenQuery(FOLDER / name) for name in NAMES]
    batch = [query for query in queries if query.options.get("mode") == "batch"]
    answers = _asked([query for query in queries if query not in batch]) | _asked(batch, "-Dbatch=true")
    lines = [{"query": name, "flink": answers[name]} for name in NAMES]
    RECORD.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


if __name__ == "__main__":
    main()
