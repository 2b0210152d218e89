"""The table of outside faults says what the tests of the connectors see."""

from __future__ import annotations

import pytest

from tests.errors.bad_inputs import PAGE
from tests.errors.outside_faults import ALL, OutsideFault, page_with_faults


@pytest.mark.parametrize("row", ALL, ids=lambda row: f"{row.system}, {row.what}")
def test_the_test_of_each_fault_wants_the_words_of_the_table(row: OutsideFault):
    source = row.source()
    for part in row.says:
        assert part in source, f"{row.test} does not look for {part!r}"


def test_the_page_lists_the_faults_as_they_are():
    page = PAGE.read_text(encoding="utf-8")
    assert page_with_faults(page) == page, "run `python -m tests.errors.bad_inputs`"
    assert all(row.what in page for row in ALL)
