"""PyFlink's own examples print on Ray what PyFlink printed for them."""

from __future__ import annotations

import pytest

from tests.pyflink.pyflink_examples import Rows, recorded, run_example

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]


NAMES = ["windowing/session_with_gap_window"]
NAMES += [pytest.param(name, marks=pytest.mark.soak) for name in ("word_count", "process_json_data")]


@pytest.mark.parametrize("name", NAMES)
def test_an_example_of_pyflink_prints_the_rows_it_prints_there(name, tmp_path):
    assert Rows.of(run_example(name, tmp_path, target="ray")) == recorded(name)
