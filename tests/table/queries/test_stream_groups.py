"""GROUP BY over streams: the changes are those of Flink SQL, row by row.

Source: apache/flink 2.3.0, its SQL client over the same table with parallelism 1.
"""

from __future__ import annotations

import pytest

from rayflink.common.types import RowKind
from rayflink.table import StreamTableEnvironment, TableEnvironment
from rayflink.table.conversion.row_format import SHORT_KINDS
from rayflink.table.expressions import col
from rayflink.table.plan.changelog import ChangelogMode
from tests.table.queries.golden_queries import FOLDER, GoldenQuery

OF_GROUPS = """SELECT n, COUNT(*), MAX(product)
  FROM (SELECT product, COUNT(*) AS n FROM orders GROUP BY product) GROUP BY n"""
CHANGES_OF_GROUPS = """+I 1 1 tea, -U 1 1 tea, +U 1 2 tea, -U 1 2 tea, +U 1 1 tea, +I 2 1 cake, -D 1 1 tea, -U 2 1 cake,
  +U 2 2 tea, +I 1 1 milk, -U 2 2 tea, +U 2 1 cake, +I 3 1 tea, -D 1 1 milk, -U 2 1 cake, +U 2 2 milk, -U 2 2 milk,
  +U 2 1 milk, -U 3 1 tea, +U 3 2 tea, -U 3 2 tea, +U 3 1 cake, +I 4 1 tea, -D 4 1 tea, +I 5 1 tea, +I 1 1 None,
  -D 3 1 cake, +I 4 1 cake"""
OF_LAST = """SELECT product, COUNT(*), SUM(amount) FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY ts DESC) AS n FROM orders
  ) WHERE n = 1 GROUP BY product"""
CHANGES_OF_LAST = """
  +I tea 1 3, +I cake 1 1, -D tea 1 3, -U cake 1 1, +U cake 2 3, +I tea 1 1, +I milk 1 4, -U cake 2 3, +U cake 1
  2, -U tea 1 1, +U tea 2 1, -D cake 1 2, -U milk 1 4, +U milk 2 9, -U tea 2 1, +U tea 1 1, +I cake 1 2, -U tea
  1 1, +U tea 2 8, -U milk 2 9, +U milk 1 4, -U tea 2 8, +U tea 3 9, -D cake 1 2, +I None 1 1, -D milk 1 4, +I
  cake 1 3"""
EXPIRING = "SELECT product, MAX(amount) FROM orders GROUP BY product"
CHANGES_OF_EXPIRING = """+I tea 3, +I cake 1, -U cake 1, +U cake 2, -U tea 3, +U tea 3, +I milk 4, -U tea 3, +U tea 3,
  -U milk 4, +U milk 5, -U cake 2, +U cake 2, -U tea 3, +U tea 7, -U tea 7, +U tea 7, +I None 1, -U cake 2, +U cake 3"""


def environment(**options: str) -> TableEnvironment:
    return GoldenQuery(FOLDER / "distinct_rows").environment(**{"parallelism.default": "1"}, **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "ttl", "wanted"),
    [
        (OF_GROUPS, "0 s", CHANGES_OF_GROUPS), (EXPIRING, "1 h", CHANGES_OF_EXPIRING), (OF_LAST, "0 s", CHANGES_OF_LAST)
    ],
)
def test_each_change_is_shown_as_flink_shows_it(query, ttl, wanted):
    rows = environment(**{"table.exec.state.ttl": ttl}).execute_sql(query).collect()
    found = [" ".join([SHORT_KINDS[row.get_row_kind()], *map(str, row)]) for row in rows]
    assert found == " ".join(wanted.split()).split(", ")


@pytest.mark.slow
def test_a_stream_of_upserts_has_no_row_before():
    s_env = StreamTableEnvironment.create()
    s_env.get_config().set_string("execution.target", "local")
    s_env.get_config().set_string("parallelism.default", "1")
    words = s_env.from_elements([("a", 1), ("b", 2), ("a", 3)], ["word", "n"])
    counted = words.group_by(col("word")).select(col("word"), col("n").sum.alias("total"))
    upserts = s_env.to_changelog_stream(counted, changelog_mode=ChangelogMode.upsert())
    found = [(row.get_row_kind(), *row) for row in upserts.execute_and_collect()]
    assert found == [(RowKind.INSERT, "a", 1), (RowKind.INSERT, "b", 2), (RowKind.UPDATE_AFTER, "a", 4)]
