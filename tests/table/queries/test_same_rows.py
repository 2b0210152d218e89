"""A query has the same rows however it is run, and whichever of the planner's rules are left out."""

from __future__ import annotations

import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.table import PlannerConfig, SqlError
from rayflink.table.optimizer.phases import NEEDED
from tests.table.queries import generated_joins as generated
from tests.table.queries.duckdb_oracle import Window
from tests.table.queries.generated_queries import PHASES, SESSIONS, WINDOWS, Tables, pairs, rowwise, windowed
from tests.table.queries.golden_queries import GoldenQuery, golden_queries

WAYS = [
    {"parallelism.default": "1"},
    {"parallelism.default": "3"},
    {"table.optimizer.agg-phase-strategy": "ONE_PHASE"},
    {"rayflink.batch.max-rows": "1"},
    {"table.optimizer.reuse-sub-plan-enabled": "false"},
    {"table.optimizer.distinct-agg.split.enabled": "true", "table.optimizer.distinct-agg.split.bucket-num": "2"},
    {"parallelism.default": "3", "rayflink.batch.max-rows": "3", "table.optimizer.reuse-source-enabled": "false"},
]
RULES = sorted({name for names in PlannerConfig().rule_names().values() for name in names} - NEEDED)


def streaming() -> st.SearchStrategy[generated.GeneratedQuery]:
    """Queries of all kinds."""
    aggregated = st.sampled_from([WINDOWS, SESSIONS]).flatmap(windowed).map(_with_window)
    joins = generated.window_joins() | generated.window_semi_joins() | generated.interval_joins() | generated.nested()
    return rowwise().map(lambda query: (query, {})) | aggregated | joins | generated.first_rows() | generated.unnested()


def _with_window(one: tuple[str, Window]) -> generated.GeneratedQuery:
    return one[0], {"w": one[1]}


@pytest.mark.slow
@given(rows=pairs(), query=streaming())
@settings(max_examples=15, phases=PHASES, deadline=None)
def test_however_it_is_run(rows: Tables, query: generated.GeneratedQuery) -> None:
    for way in WAYS:
        with tempfile.TemporaryDirectory() as folder:
            rows.both(folder, **way).agree(query[0], **query[1])


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_golden_queries_without_a_rule(name: str) -> None:
    assert sum(_compared(query, name) for query in golden_queries())


def _compared(query: GoldenQuery, name: str) -> bool:
    """Whether the query is planned otherwise without the rule, and can be run."""
    t_env = query.environment()
    plan = t_env.sql_query(query.text)._plan
    usual = t_env._queries.optimize([plan])
    t_env.get_config().set_planner_config(PlannerConfig().remove_rule(name))
    try:
        if t_env._queries.optimize([plan]) == usual:
            return False
        found = query.rows(t_env)
    except SqlError:  # a join of commas that is one of windows with push_filter_through_join
        return False
    assert found == query.expected.partition("== Rows ==\n")[2].splitlines(), f"{query.folder.name} without {name}"
    return True


@pytest.mark.slow
@given(rows=pairs(), query=streaming(), name=st.sampled_from(RULES))
@settings(max_examples=25, phases=PHASES, deadline=None)
def test_queries_that_are_made_up_without_a_rule(rows: Tables, query: generated.GeneratedQuery, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows.both(folder, rules=PlannerConfig().remove_rule(name)).agree(query[0], **query[1])
