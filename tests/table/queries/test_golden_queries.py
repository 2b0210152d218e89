"""Queries give the plans and rows that are kept beside them."""

from __future__ import annotations

import os
import zlib

import pytest

from tests.table.queries.golden_queries import GoldenQuery, golden_queries


def half_of(query: GoldenQuery) -> int:
    """Return 0 or 1 by the query's name, so that a new query does not move others to the other half."""
    return zlib.crc32(query.folder.name.encode()) % 2


@pytest.mark.parametrize("query", [
    pytest.param(query, marks=[pytest.mark.slow] * half_of(query))
    for query in golden_queries()
], ids=lambda query: query.folder.name)  # fmt: skip
def test_a_query_gives_its_plan_and_rows(query: GoldenQuery) -> None:
    found = query.expected_text(query.environment())
    if os.environ.get("RAYFLINK_WRITE_GOLDEN"):
        (query.folder / "expected.txt").write_text(found, encoding="utf-8")
    assert found == query.expected


@pytest.mark.slow
@pytest.mark.parametrize(("query", "parallelism"), [
    pytest.param(query, parallelism, marks=() if half_of(query) == parallelism // 3 else pytest.mark.soak,
                 id=f"{parallelism}-{query.folder.name}")
    for parallelism in (1, 3) for query in golden_queries()
])  # fmt: skip
def test_its_rows_do_not_depend_on_the_number_of_subtasks(query: GoldenQuery, parallelism: int) -> None:
    rows = query.rows(query.environment(**{"parallelism.default": str(parallelism)}))
    assert rows == query.expected.partition("== Rows ==\n")[2].splitlines()
