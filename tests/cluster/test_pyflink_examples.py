"""PyFlink's own examples print on Ray what PyFlink printed for them."""

from __future__ import annotations

import pytest

from tests.pyflink_examples import Rows, recorded, run_example

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]


@pytest.mark.parametrize("name", ["word_count", "windowing/session_with_gap_window", "process_json_data"])
def test_an_example_of_pyflink_prints_the_rows_it_prints_there(name, tmp_path):
    assert Rows.of(run_example(name, tmp_path, target="ray")) == recorded(name)
