"""table.exec.emit.*: group windows that show results early and late give changes of rows."""

from __future__ import annotations

import pytest

from rayflink.common.errors import ConfigError
from rayflink.common.types import RowKind
from rayflink.table import SqlError, TableEnvironment
from tests.table.queries.golden_queries import FOLDER, GoldenQuery

EARLY = {"early-fire.enabled": "true"}
LATE = {"late-fire.enabled": "true"}
GROUPED = "SELECT product, COUNT(*) AS n FROM orders GROUP BY product, TUMBLE(ts, INTERVAL '10' SECOND)"


def environment(given: dict[str, str]) -> TableEnvironment:
    return GoldenQuery(FOLDER / "project").environment(
        **{f"table.exec.emit.{key}": value for key, value in given.items()}, **{"parallelism.default": "1"}
    )


@pytest.mark.parametrize(
    ("given", "query", "problem"),
    [
        (EARLY, GROUPED, "early-fire.enabled is set without a delay; set table.exec.emit.early-fire.delay"),
        (LATE, GROUPED, "late-fire.enabled is set without a delay; set table.exec.emit.late-fire.delay"),
        ({**LATE, "late-fire.delay": "0 s"}, GROUPED, "no rows are taken that are late; set table.exec.emit.allow"),
        ({**LATE, "late-fire.delay": "2 s", "allow-lateness": "1 s"}, GROUPED, "is 2000 ms, and rows may be 1000 ms"),
        (EARLY, "SELECT COUNT(*) FROM orders GROUP BY SESSION(ts, INTERVAL '1' SECOND)", "SESSION shows results once"),
        (EARLY, "SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' SECOND)) "
         "GROUP BY window_start, window_end", "a windowing table function shows results once"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together_are_refused(given, query, problem):
    with pytest.raises(SqlError, match=problem.replace(".", r"\.").replace("(", r"\(")):
        environment(given).sql_query(query)


def test_a_delay_is_not_negative():
    t_env = environment(EARLY)
    with pytest.raises(ConfigError):
        t_env.get_config().set_string("table.exec.emit.early-fire.delay", "-1 s")
        t_env.sql_query(GROUPED)


def test_without_late_fire_no_lateness_is_allowed():
    plan = environment({**EARLY, "early-fire.delay": "3 s", "allow-lateness": "1 h"}).explain_sql(GROUPED)
    assert "emit=[early delay 3000 millisecond]" in plan


def test_state_that_is_kept_for_a_time_is_the_lateness():
    t_env = environment({**EARLY, **LATE, "early-fire.delay": "0 s", "late-fire.delay": "1 s"})
    t_env.get_config().set_string("table.exec.state.ttl", "1 h")
    assert "emit=[early no delay, late delay 1000 millisecond]" in t_env.explain_sql(GROUPED)


def test_rows_say_what_they_do(capsys):
    t_env = environment({**EARLY, "early-fire.delay": "0 s"})
    rows = list(t_env.execute_sql(GROUPED + " HAVING product = 'cake'").collect())
    kinds = [row.get_row_kind() for row in rows]
    assert kinds[:3] == [RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER]
    t_env.execute_sql("CREATE TABLE shown (product STRING, n BIGINT) WITH ('connector' = 'print')")
    t_env.execute_sql(f"INSERT INTO shown {GROUPED}").wait()
    assert {"-U[cake, 1]", "+U[cake, 2]"} <= set(capsys.readouterr().out.splitlines())


def test_a_table_of_columns_holds_what_is_left_of_rows():
    t_env = environment({**EARLY, "early-fire.delay": "0 s"})
    found = t_env.sql_query(GROUPED).to_arrow().to_pylist()
    once = environment({}).sql_query(GROUPED).to_arrow().to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, once))


def test_a_sink_of_new_rows_alone_refuses_them(tmp_path):
    t_env = environment({**EARLY, "early-fire.delay": "0 s"})
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv'"
    t_env.execute_sql(f"CREATE TABLE files (product STRING, n BIGINT) WITH ({options})")
    with pytest.raises(SqlError, match="doesn't support consuming update changes"):
        t_env.execute_sql(f"INSERT INTO files {GROUPED}")


def test_batch_shows_each_result_once():
    t_env = GoldenQuery(FOLDER / "batch_window").environment(**{"table.exec.emit.early-fire.enabled": "true"})
    assert "emit" not in t_env.explain_sql(GROUPED)
