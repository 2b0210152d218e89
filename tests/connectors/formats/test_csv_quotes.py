"""Where a block of CSV has its last whole record, by the quick look and by the search."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.connectors.formats.csv_dialect import CsvDialect


class Searching(CsvDialect):
    """Without the quick look."""

    def _closes_its_quotes(self, block: bytes) -> bool:
        return False


@pytest.mark.slow
@settings(max_examples=500)
@given(st.lists(st.sampled_from([b'"', b'""', b",", b"\n", b"\r\n", b"a"]), max_size=12).map(b"".join))
def test_a_quick_look_at_the_quotes_finds_the_same_records(block):
    assert CsvDialect().whole_records(block) == Searching().whole_records(block)


def test_pairs_of_quotes_are_seen_at_a_look():
    assert CsvDialect()._closes_its_quotes(b'"a","b""c"\n"",1\n')
    assert not CsvDialect()._closes_its_quotes(b'a"b,"cd\n')
