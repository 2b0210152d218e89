"""DuckDB gives the same rows for joins, first rows of windows and elements that hypothesis puts together."""

from __future__ import annotations

import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.table.queries import generated_joins as joins
from tests.table.queries.generated_queries import PHASES, checked, pairs

few = settings(max_examples=25, phases=PHASES, deadline=None)


@pytest.mark.slow
@given(rows=pairs(), generated=joins.window_joins())
@few
def test_window_joins(rows, generated):
    checked(rows, generated[0], **generated[1])


@pytest.mark.slow
@given(rows=pairs(), generated=joins.window_semi_joins())
@few
def test_window_semi_and_anti_joins(rows, generated):
    checked(rows, generated[0], **generated[1])


@pytest.mark.slow
@given(rows=pairs(), generated=joins.interval_joins())
@few
def test_interval_joins(rows, generated):
    checked(rows, generated[0], **generated[1])


@pytest.mark.slow
@given(rows=pairs(), generated=joins.lookup_joins())
@few
def test_lookup_joins(rows, generated):
    checked(rows, generated[0], **generated[1])


@pytest.mark.slow
@given(rows=pairs(), generated=joins.first_rows())
@few
def test_first_rows_of_windows(rows, generated):
    checked(rows, generated[0], **generated[1])


@pytest.mark.slow
@given(rows=pairs(), generated=joins.deduplications())
@few
def test_deduplications(rows, generated):
    checked(rows, generated[0], **generated[1])


@pytest.mark.slow
@given(rows=pairs(), generated=joins.unnested())
@few
def test_elements_of_arrays(rows, generated):
    checked(rows, generated[0], **generated[1])


@pytest.mark.slow
@given(rows=pairs(), generated=joins.nested())
@few
def test_queries_of_joins_and_joins_of_queries(rows, generated):
    checked(rows, generated[0], **generated[1])


@pytest.mark.slow
@given(rows=pairs(), generated=joins.batch_joins(), threshold=st.sampled_from(["-1", "1048576"]))
@few
def test_joins_of_whole_tables(rows, generated, threshold):
    with tempfile.TemporaryDirectory() as folder:
        engines = rows.both(folder, is_batch=True, **{"table.optimizer.join.broadcast-threshold": threshold})
        engines.agree(generated[0], **generated[1])


@pytest.mark.slow
@given(rows=pairs(), generated=joins.sorted_rows())
@few
def test_sorted_rows(rows, generated):
    checked(rows, generated[0], True, is_batch=True, **generated[1])
