"""Plans as pictures, and advice on plans."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from rayflink.table import EnvironmentSettings, ExplainDetail, SqlError, TableEnvironment

COUNTS = "SELECT n, COUNT(*) AS total FROM numbers WHERE s <> '<&>' GROUP BY n"


@pytest.fixture
def t_env() -> TableEnvironment:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.execute_sql("CREATE TABLE numbers (n INT, s STRING) WITH ('connector' = 'datagen')")
    for name in ("a", "b"):
        t_env.execute_sql(f"CREATE TABLE {name} (n INT, total DOUBLE) WITH ('connector' = 'print')")
    return t_env


def words(svg: str) -> list[str]:
    """The text of a picture, in its order."""
    return [element.text or "" for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_a_picture_has_a_box_for_each_step_and_says_how_rows_are_distributed(t_env: TableEnvironment) -> None:
    drawing = t_env.draw_plan(f"INSERT INTO a {COUNTS}")
    shown = words(drawing.svg)
    assert shown[:2] == ["hash[n]", "[I,UB,UA]"]
    titles = ("TableSourceScan", "Calc", "GroupAggregate", "Calc", "Sink")
    assert [word for word in shown if word in titles] == list(titles)
    assert "where=[s <> '<&>']" in shown and "table=[default_catalog.default_database.numbers]" in shown
    assert drawing._repr_svg_() == drawing.svg
    assert "prefers-color-scheme:dark" in drawing.svg


def test_what_statements_have_in_common_is_drawn_once(t_env: TableEnvironment, tmp_path: Path) -> None:
    both = t_env.create_statement_set()
    both.add_insert_sql(f"INSERT INTO a {COUNTS}").add_insert_sql(f"INSERT INTO b {COUNTS}")
    shown = words(both.draw_plan().svg)
    assert (shown.count("GroupAggregate"), shown.count("Sink")) == (1, 2)
    drawing = both.compile_plan().draw_plan()
    assert words(drawing.svg) == shown
    drawing.write_to_file(tmp_path / "plan.svg")
    assert (tmp_path / "plan.svg").read_text(encoding="utf-8") == drawing.svg


def test_only_what_can_be_explained_is_drawn(t_env: TableEnvironment) -> None:
    table = t_env.sql_query(COUNTS)
    assert str(table.draw_plan()) == table.explain().partition("Execution Plan ==\n")[2].rstrip("\n")
    assert table.insert_into("a").draw_plan().svg == t_env.draw_plan(f"INSERT INTO a {COUNTS}").svg
    with pytest.raises(SqlError, match="cannot be explained"):
        t_env.draw_plan("SHOW TABLES")


def test_groups_of_a_stream_are_advised_to_take_two_phases(t_env: TableEnvironment) -> None:
    nested = f"SELECT total, COUNT(*) FROM ({COUNTS}) GROUP BY total"
    text = t_env.explain_sql(nested, ExplainDetail.PLAN_ADVICE)
    assert text.count("GroupAggregate(advice=[1], groupBy=") == 2
    assert "advice[1]: [ADVICE] You might want to enable local-global two-phase optimization" in text
    assert "advice[2]" not in text
    for key, value in (("enabled", "true"), ("allow-latency", "1 s"), ("size", "100")):
        t_env.get_config().set(f"table.exec.mini-batch.{key}", value)
    assert "No available advice..." in t_env.explain_sql(nested, ExplainDetail.PLAN_ADVICE)


def test_values_that_differ_each_time_in_rows_that_change_are_warned_of(t_env: TableEnvironment) -> None:
    insert = f"INSERT INTO a SELECT n, total + RAND() FROM ({COUNTS})"
    text = t_env.explain_sql(insert, ExplainDetail.PLAN_ADVICE)
    assert "advice[2]: [WARNING] column 'EXPR$1' is computed by RAND" in text
    assert "[WARNING]" not in t_env.explain_sql(f"INSERT INTO a {COUNTS}", ExplainDetail.PLAN_ADVICE)
