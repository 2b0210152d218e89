"""Numbers at the ends of their types: a result, or one error, and never more memory than there is."""

from __future__ import annotations

import datetime as dt

import pytest

from rayflink.table.types import DataTypes
from tests.table.functions.calling import BIGINT, STRING, RowError, column, one, result

FAR = 2**63 - 1
NOON = column(DataTypes.TIMESTAMP(3), dt.datetime(2020, 1, 1, 12))


def test_parts_as_long_as_they_may_be():
    assert one("SUBSTRING", "abc", 2, FAR) == "bc"
    assert one("SUBSTRING", "abc", FAR) == ""
    assert one("LEFT", "abc", 2**31 - 1) == one("RIGHT", "abc", 2**31 - 1) == "abc"


@pytest.mark.parametrize("name, more", [("REPEAT", ()), ("LPAD", ("x",)), ("RPAD", ("xy",))])
def test_strings_that_memory_does_not_hold_are_refused(name, more):
    for length in (2**31 - 1, *([FAR] if name == "REPEAT" else [])):
        with pytest.raises(
            RowError, match="the strings of a batch would have .* bytes, at most 1073741824 are possible"
        ):
            result(name, column(STRING, "abc", None), length, *more)


def test_padding_takes_memory_for_the_strings_it_makes_only():
    """A text for each length up to 100,000 would be 5 GB."""
    assert one("LPAD", "abc", 100_000, "xy") == "xy" * 49_998 + "xabc"


@pytest.mark.parametrize("unit", ["SECOND", "YEAR"])
def test_steps_longer_than_intervals_are_refused(unit):
    with pytest.raises(RowError, match=f"TIMESTAMPADD adds more {unit}s than an interval can have"):
        result("TIMESTAMPADD", column(BIGINT, FAR), NOON, options=(unit,))


def test_times_beyond_nanoseconds_are_none():
    strings = column(STRING, "2300-01-01 00:00:00", "1600-01-01", "2262-04-11 23:47:16.5", None)
    found = result("TRY_CAST", strings, to=DataTypes.TIMESTAMP(9))
    assert [None if time is None else time.year for time in found] == [None, None, 2262, None]


def test_strings_of_times_have_four_digits_for_the_year():
    with pytest.raises(RowError, match="beyond the years 1 to 9999"):
        result("FROM_UNIXTIME", column(BIGINT, FAR))
    assert result("FROM_UNIXTIME", column(BIGINT, 253_402_300_799 - 8 * 3600)) == ["9999-12-31 23:59:59"]
