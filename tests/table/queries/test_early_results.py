"""Early results of windows end in the results that come without them."""

from __future__ import annotations

from typing import Any

import pytest

from rayflink.table import EnvironmentSettings, TableEnvironment

SECONDS = """CREATE TABLE seconds (n INT, ts AS TO_TIMESTAMP_LTZ(n * 1000, 3), WATERMARK FOR ts AS ts) WITH (
    'connector' = 'datagen', 'number-of-rows' = '60', 'fields.n.kind' = 'sequence', 'fields.n.start' = '1',
    'fields.n.end' = '60')"""
EARLY = {"table.exec.emit.early-fire.enabled": "true", "table.exec.emit.early-fire.delay": "0 s"}


def final_rows(window: str, options: dict[str, str]) -> dict[Any, Any]:
    """Return start and end of each window -> its last values."""
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {"execution.target": "local", "table.local-time-zone": "UTC", **options}.items():
        t_env.get_config().set(key, value)
    t_env.execute_sql(SECONDS)
    query = f"""SELECT HOP_START(ts, {window}), HOP_END(ts, {window}), COUNT(*), MIN(n) FROM seconds
        GROUP BY HOP(ts, {window})"""
    rows = {}
    for row in t_env.execute_sql(query).collect():
        start, end, *values = row
        if row.get_row_kind().name in ("INSERT", "UPDATE_AFTER"):
            rows[start, end] = values
    return rows


@pytest.mark.parametrize("slide", [10, 20, 25])
def test_early_results_of_overlapping_windows_end_in_those_of_the_windows(slide):
    window = f"INTERVAL '{slide}' SECOND, INTERVAL '30' SECOND"
    results = final_rows(window, {})
    assert len(results) > 3 and final_rows(window, EARLY) == results
