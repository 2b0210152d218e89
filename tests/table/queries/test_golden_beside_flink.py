"""The rows of golden queries are those of Flink SQL 2.3, which `flink_golden` recorded."""

from __future__ import annotations

import duckdb
import pytest

from tests.table.queries.flink_golden import NAMES, recorded
from tests.table.queries.golden_queries import FOLDER, GoldenQuery

_WRONG = "Flink decorrelates queries of two levels wrongly; the rows here are DuckDB's"
_NULLS = "a temporal join of Flink finds the row of the key NULL by NULL, which equals nothing"
DIFFERENCES = {
    "not_exists_two_levels": _WRONG, "in_two_levels": _WRONG, "batch_correlated_two_levels": _WRONG,
    "temporal_join_of_view": _NULLS, "temporal_join_then_group": _NULLS,
}  # fmt: skip
"""Names of queries -> why the rows differ."""
COLUMNS = {
    "orders": {"id": "BIGINT", "customer": "VARCHAR", "product": "VARCHAR", "price": "DECIMAL(10, 2)", "amount": "INT",
               "ts": "TIMESTAMP"},
    "clicks": {"id": "BIGINT", "who": "VARCHAR", "ms": "BIGINT"},
}  # fmt: skip


def expected_rows(name: str) -> list[str]:
    return sorted(GoldenQuery(FOLDER / name).expected.partition("== Rows ==\n")[2].splitlines())


def test_golden_rows_are_those_that_flink_gives():
    answers = recorded()
    assert list(answers) == list(NAMES)
    different = {name for name, answer in answers.items() if answer.get("rows") != expected_rows(name)}
    assert different == set(DIFFERENCES)


@pytest.mark.parametrize("name", [name for name, reason in DIFFERENCES.items() if reason == _WRONG])
def test_where_flink_is_wrong_the_rows_are_those_of_duckdb(name):
    with duckdb.connect() as theirs:
        for table, columns in COLUMNS.items():
            kinds = ", ".join(f"'{column}': '{kind}'" for column, kind in columns.items())
            source = f"read_csv('{FOLDER / table}.csv', header=false, columns={{{kinds}}})"
            theirs.execute(f"CREATE VIEW {table} AS SELECT * FROM {source}")
        rows = theirs.execute(GoldenQuery(FOLDER / name).text).fetchall()
    strings = [["null" if value is None else str(value) for value in row] for row in rows]
    assert sorted(f"+I[{', '.join(row)}]" for row in strings) == expected_rows(name)
