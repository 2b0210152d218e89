"""Functions OVER rows of a stream give the rows of Flink SQL 2.3, which `flink_over` recorded."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.table.matching.flink_differences import our_answer, verdict_on
from tests.table.queries.flink_over import RECORD, queries
from tests.table.queries.golden_queries import FOLDER, GoldenQuery


@pytest.mark.slow
def test_recorded_rows_of_flink_are_given():
    t_env = GoldenQuery(FOLDER / "over_distinct").environment(**{"parallelism.default": "1"})
    recorded = [json.loads(line) for line in RECORD.read_text(encoding="utf-8").splitlines()]
    assert [line["query"] for line in recorded] == queries()
    verdicts: Counter[str] = Counter()
    for line in recorded:
        verdict = verdict_on(line["flink"], our_answer(t_env, line["query"]))
        assert verdict.startswith("equal"), f"{verdict}: {line['query']}"
        verdicts[verdict] += 1
    assert verdicts == {"equal: some rows": 13, "equal: both refuse the query": 6}
