"""The rows of golden queries are those of Flink SQL 2.3, which `flink_golden` recorded."""

from __future__ import annotations

import duckdb
import pytest

from tests.table.queries.flink_golden import recorded, rows_left
from tests.table.queries.golden_queries import FOLDER, GoldenQuery

_WRONG = "Flink decorrelates queries of two levels wrongly; the rows here are DuckDB's"
_NULLS = "a temporal join of Flink finds the row of the key NULL by NULL, which equals nothing"
_ORDER = "the order of the distinct values of a list, and of a multiset, is not defined"
DIFFERENCES = {
    "not_exists_two_levels": _WRONG, "in_two_levels": _WRONG, "batch_correlated_two_levels": _WRONG,
    "temporal_join_of_view": _NULLS, "temporal_join_then_group": _NULLS,
    "array_agg": _ORDER, "listagg_window": _ORDER, "stream_group_lists": _ORDER,
    "session_where": "Flink filters rows before it makes sessions of them, although WHERE stands behind SESSION",
    "values_types": "Java prints a time without its seconds where they are 0",
}  # fmt: skip
"""Names of queries -> why the rows differ."""
_FILES = "its files are not at Flink's side"
_LOOKUP = "Flink has no connector for the table that is looked up"
_WINDOWS = "Flink computes the aggregates of one window in a query, and no row functions over others"
REFUSALS = {
    "first_by_arrival": "NEXT is a reserved word", "over_batch": "NEXT is a reserved word",
    "json_aggregates": "JSON_OBJECTAGG takes no FILTER", "json_all": _FILES, "json_batch_top": _FILES,
    "json_nested": _FILES, "json_window": _FILES, "partition_keys_alone": _FILES, "partition_metadata": _FILES,
    "partition_null": _FILES, "partition_pruned": _FILES, "partition_pruned_batch": _FILES,
    "partition_window": _FILES, "lookup_join_batch": _LOOKUP, "lookup_join_inner": _LOOKUP,
    "lookup_join_left": _LOOKUP, "lookup_join_of_groups": _LOOKUP, "lookup_join_then_window": _LOOKUP,
    "lookup_join_twice": _LOOKUP, "lookup_join_using": _LOOKUP,
    "match_all_rows": "Flink has no ALL ROWS PER MATCH", "match_batch": "Flink matches rows by time alone",
    "match_choice": "Flink does not know the variables of SUBSET in MEASURES", "over_distinct": _WINDOWS,
    "over_rows_bounded": _WINDOWS, "over_several_windows": _WINDOWS,
    "top_n_qualify": "Flink's planner fails with an IndexOutOfBoundsException",
}  # fmt: skip
"""Names of queries -> why Flink does not run them."""
COLUMNS = {
    "orders": {"id": "BIGINT", "customer": "VARCHAR", "product": "VARCHAR", "price": "DECIMAL(10, 2)", "amount": "INT",
               "ts": "TIMESTAMP"},
    "clicks": {"id": "BIGINT", "who": "VARCHAR", "ms": "BIGINT"},
}  # fmt: skip


def expected_rows(name: str) -> list[str]:
    return rows_left(GoldenQuery(FOLDER / name).expected.partition("== Rows ==\n")[2].splitlines())


def test_golden_rows_are_those_that_flink_gives():
    answers = recorded()
    assert len(answers) > 300
    refused = {name for name, answer in answers.items() if "rows" not in answer}
    different = {name for name in answers.keys() - refused if answers[name]["rows"] != expected_rows(name)}
    assert (different, refused) == (set(DIFFERENCES), set(REFUSALS))


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
