"""A query has the same rows however it is run, and whichever of the planner's rules are left out."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.table import SqlError, rules
from rayflink.table.logical import Relation
from tests.table import made_joins as made
from tests.table.duckdb_oracle import Window
from tests.table.golden_queries import GoldenQuery, golden_queries
from tests.table.made_queries import PHASES, SESSIONS, WINDOWS, Tables, pairs, rowwise, windowed

WAYS = [
    {"parallelism.default": "1"},
    {"parallelism.default": "3"},
    {"table.optimizer.agg-phase-strategy": "ONE_PHASE"},
    {"rayflink.batch.max-rows": "1"},
    {"table.optimizer.reuse-sub-plan-enabled": "false"},
    {"parallelism.default": "3", "rayflink.batch.max-rows": "3", "table.optimizer.reuse-source-enabled": "false"},
]
RULES: dict[str, Callable[..., Relation]] = {
    rule.__name__: rule
    for rule in (*rules.LOWERING, *rules.SIMPLIFYING, *rules.PUSHING, rules.fold_constants, rules.forget_watermarks)
}


def streaming() -> st.SearchStrategy[made.Made]:
    """Queries of all kinds."""
    aggregated = st.sampled_from([WINDOWS, SESSIONS]).flatmap(windowed).map(_with_window)
    joins = made.window_joins() | made.window_semi_joins() | made.interval_joins() | made.nested()
    return rowwise().map(lambda query: (query, {})) | aggregated | joins | made.first_rows() | made.unnested()


def _with_window(one: tuple[str, Window]) -> made.Made:
    return one[0], {"w": one[1]}


@pytest.mark.slow
@given(rows=pairs(), query=streaming())
@settings(max_examples=15, phases=PHASES, deadline=None)
def test_however_it_is_run(rows: Tables, query: made.Made) -> None:
    for way in WAYS:
        with tempfile.TemporaryDirectory() as folder:
            rows.both(folder, **way).agree(query[0], **query[1])


@contextmanager
def without(name: str) -> Iterator[None]:
    """Plan without a rule."""
    left_out = RULES[name]
    lists = {
        one: tuple(rule for rule in getattr(rules, one) if rule is not left_out)
        for one in ("LOWERING", "SIMPLIFYING", "PUSHING")
    }
    alone = {one: _as_it_is for one in ("fold_constants", "forget_watermarks", "prune_empty") if one == name}
    with mock.patch.multiple(rules, **lists, **alone):
        yield


def _as_it_is(plan: Relation, **_: object) -> Relation:
    return plan


NEEDED = {
    "join_of_whole_tables",
    "window_join",
    "interval_join",
    "rank_into_window_rank",
    "filter_into_rank",
    "project_into_unnest",
}
"""Without these, queries of which they make what can be run are errors."""


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_golden_queries_without_a_rule(name: str) -> None:
    compared = 0
    for query in golden_queries():
        compared += _compared(query, name)
    assert compared or name in NEEDED


def _compared(query: GoldenQuery, name: str) -> bool:
    """Whether the query is planned otherwise without the rule, and can be run."""
    t_env = query.environment()
    whole = t_env.sql_query(query.text)._plan
    usual = t_env._runner.optimized([whole])
    try:
        with without(name):
            if t_env._runner.optimized([whole]) == usual:
                return False
            found = query.rows(query.environment())
    except SqlError:
        return False
    assert found == query.expected.partition("== Rows ==\n")[2].splitlines(), f"{query.folder.name} without {name}"
    return True


@pytest.mark.slow
@given(rows=pairs(), query=streaming(), name=st.sampled_from(sorted(RULES)))
@settings(max_examples=25, phases=PHASES, deadline=None)
def test_queries_that_are_made_up_without_a_rule(rows: Tables, query: made.Made, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        both = rows.both(folder)
        try:
            with without(name):
                both.agree(query[0], **query[1])
        except SqlError:
            assert name in NEEDED
