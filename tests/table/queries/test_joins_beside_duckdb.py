"""DuckDB gives the same rows for joins, first rows of windows and elements that hypothesis puts together."""

from __future__ import annotations

import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.table.queries import made_joins as made
from tests.table.queries.made_queries import PHASES, checked, pairs

few = settings(max_examples=25, phases=PHASES, deadline=None)


@pytest.mark.slow
@given(rows=pairs(), made=made.window_joins())
@few
def test_window_joins(rows, made):
    checked(rows, made[0], **made[1])


@pytest.mark.slow
@given(rows=pairs(), made=made.window_semi_joins())
@few
def test_window_semi_and_anti_joins(rows, made):
    checked(rows, made[0], **made[1])


@pytest.mark.slow
@given(rows=pairs(), made=made.interval_joins())
@few
def test_interval_joins(rows, made):
    checked(rows, made[0], **made[1])


@pytest.mark.slow
@given(rows=pairs(), made=made.first_rows())
@few
def test_first_rows_of_windows(rows, made):
    checked(rows, made[0], **made[1])


@pytest.mark.slow
@given(rows=pairs(), made=made.deduplications())
@few
def test_deduplications(rows, made):
    checked(rows, made[0], **made[1])


@pytest.mark.slow
@given(rows=pairs(), made=made.unnested())
@few
def test_elements_of_arrays(rows, made):
    checked(rows, made[0], **made[1])


@pytest.mark.slow
@given(rows=pairs(), made=made.nested())
@few
def test_queries_of_joins_and_joins_of_queries(rows, made):
    checked(rows, made[0], **made[1])


@pytest.mark.slow
@given(rows=pairs(), made=made.batch_joins(), threshold=st.sampled_from(["-1", "1048576"]))
@few
def test_joins_of_whole_tables(rows, made, threshold):
    with tempfile.TemporaryDirectory() as folder:
        both = rows.both(folder, is_batch=True, **{"table.optimizer.join.broadcast-threshold": threshold})
        both.agree(made[0], **made[1])


@pytest.mark.slow
@given(rows=pairs(), made=made.sorted_rows())
@few
def test_sorted_rows(rows, made):
    checked(rows, made[0], True, is_batch=True, **made[1])
