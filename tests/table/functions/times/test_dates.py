"""Times in columns, zones, and now."""

from __future__ import annotations

import datetime
import zoneinfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.table.functions.times.time_patterns import parts_of
from rayflink.table.plan.typed import Session
from rayflink.table.types import DataTypes
from tests.table.functions.calling import BIGINT, INT, STRING, RowError, column, constant, one, result, resulting

DATE, TIMESTAMP, INSTANT = DataTypes.DATE(), DataTypes.TIMESTAMP(3), DataTypes.TIMESTAMP_LTZ(3)
UTC = datetime.timezone.utc
TIMES = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2037, 1, 1)).map(
    lambda one: one.replace(microsecond=one.microsecond // 1000 * 1000)
)


@pytest.mark.slow
@given(st.lists(TIMES | st.none(), min_size=1, max_size=6))
@settings(max_examples=40, deadline=None)
def test_parts_are_those_of_python(times):
    def parts(name, part):
        expected = [None if time is None else part(time) for time in times]
        assert result("EXTRACT", column(TIMESTAMP, *times), options=(name,)) == expected, name

    parts("YEAR", lambda time: time.year)
    parts("QUARTER", lambda time: (time.month + 2) // 3)
    parts("MONTH", lambda time: time.month)
    parts("WEEK", lambda time: time.isocalendar().week)
    parts("ISOYEAR", lambda time: time.isocalendar().year)
    parts("DAY", lambda time: time.day)
    parts("DOW", lambda time: time.isoweekday() % 7 + 1)
    parts("ISODOW", lambda time: time.isoweekday())
    parts("DOY", lambda time: time.timetuple().tm_yday)
    parts("HOUR", lambda time: time.hour)
    parts("MINUTE", lambda time: time.minute)
    parts("SECOND", lambda time: time.second)
    parts("MILLISECOND", lambda time: time.microsecond // 1000)


@pytest.mark.slow
@given(st.lists(TIMES | st.none(), min_size=1, max_size=6))
@settings(max_examples=40, deadline=None)
def test_a_text_by_a_pattern_is_read_back(times):
    for pattern, python in (
        ("yyyy-MM-dd HH:mm:ss.SSS", None),
        ("d/M/yyyy H:m:s", "%d/%m/%Y"),
        ("yyyyMMddHHmmss", "%Y%m%d%H%M%S"),
    ):
        strings = result("DATE_FORMAT", column(TIMESTAMP, *times), pattern)
        whole = [time if time is None or python is None else time.replace(microsecond=0) for time in times]
        assert result("TO_TIMESTAMP", column(STRING, *strings), pattern) == whole
        if pattern == "yyyyMMddHHmmss":
            assert strings == [None if time is None else time.strftime("%Y%m%d%H%M%S") for time in times]


@pytest.mark.slow
@given(
    st.lists(TIMES, min_size=1, max_size=6),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kolkata", "+03:00"]),
)
@settings(max_examples=40, deadline=None)
def test_an_instant_is_shown_in_the_sessions_zone(times, zone):
    session = Session(zone)
    place = datetime.timezone(datetime.timedelta(hours=3)) if zone == "+03:00" else zoneinfo.ZoneInfo(zone)
    instants = [time.replace(tzinfo=UTC) for time in times]
    local = [instant.astimezone(place) for instant in instants]
    given_ = column(INSTANT, *instants)
    assert result("CAST", given_, to=TIMESTAMP, session=session) == [one.replace(tzinfo=None, fold=0) for one in local]
    assert result("HOUR", given_, session=session) == [one.hour for one in local]
    assert result("CAST", given_, to=DATE, session=session) == [one.date() for one in local]


def test_times_that_are_skipped_or_come_twice():
    session = Session("Europe/Berlin")
    times = column(TIMESTAMP, datetime.datetime(2020, 3, 29, 2, 30), datetime.datetime(2020, 10, 25, 2, 30), None)
    found = result("CAST", times, to=INSTANT, session=session)
    assert found == [
        datetime.datetime(2020, 3, 29, 1, 30, tzinfo=UTC),
        datetime.datetime(2020, 10, 25, 0, 30, tzinfo=UTC),
        None,
    ]


def test_months_later():
    months = column(DataTypes.INTERVAL_YEAR_MONTH(), 1, -11, 12, None)
    days = column(DATE, *[datetime.date(2024, 1, 31)] * 3, datetime.date(2024, 1, 1))
    assert result("+", days, months) == [
        datetime.date(2024, 2, 29),
        datetime.date(2023, 2, 28),
        datetime.date(2025, 1, 31),
        None,
    ]
    assert result("+", months, days) == result("+", days, months)
    times = column(TIMESTAMP, datetime.datetime(1969, 12, 31, 23, 59), None)
    assert result("-", times, column(DataTypes.INTERVAL_YEAR_MONTH(), 10, 1)) == [
        datetime.datetime(1969, 2, 28, 23, 59),
        None,
    ]
    assert result("*", column(DataTypes.INTERVAL_YEAR_MONTH(), 5, None), column(INT, 2, 2)) == [10, None]


def test_now():
    assert one("CURRENT_TIMESTAMP") == one("NOW") == datetime.datetime(2020, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
    assert one("CURRENT_ROW_TIMESTAMP") == one("PROCTIME") == one("NOW")
    assert one("LOCALTIMESTAMP") == datetime.datetime(2020, 1, 2, 11, 4, 5, 678000)
    assert one("CURRENT_TIME") == one("LOCALTIME") == datetime.time(11, 4, 5)
    assert one("CURRENT_DATE") == datetime.date(2020, 1, 2)
    assert one("UNIX_TIMESTAMP") == 1_577_934_245
    late = Session("Asia/Shanghai", lambda: 1_577_980_800_000)
    assert one("CURRENT_DATE", session=late) == datetime.date(2020, 1, 3)
    assert resulting("CURRENT_TIMESTAMP") == INSTANT.not_null()


def test_patterns_and_zones_that_are_columns():
    strings = column(STRING, "2020-03-04", "04.03.2020", "x", None)
    patterns = column(STRING, "yyyy-MM-dd", "dd.MM.yyyy", "yyyy", "yyyy")
    expected = datetime.datetime(2020, 3, 4)
    assert result("TO_TIMESTAMP", strings, patterns) == [expected, expected, None, None]
    zones = column(STRING, "UTC", "Asia/Tokyo", None)
    assert result("CONVERT_TZ", column(STRING, *["2020-01-01 00:00:00"] * 3), "UTC", zones) == [
        "2020-01-01 00:00:00",
        "2020-01-01 09:00:00",
        None,
    ]


def test_patterns_that_are_none():
    for pattern, problem in (("yyyy-bb", "letter b"), ("yyyy'", "not closed"), ("yyyy[-MM]", "optional sections")):
        with pytest.raises(RowError, match=problem):
            parts_of(pattern)
    with pytest.raises(RowError, match="no date and no time"):
        one("TO_TIMESTAMP", "x", "-")
    with pytest.raises(RowError, match="a time without a zone has no X"):
        one("DATE_FORMAT", column(TIMESTAMP, datetime.datetime(2020, 1, 1)), "X")


def test_spans_that_overlap():
    day = datetime.timedelta(days=1)
    start = column(DATE, datetime.date(2020, 1, 1), datetime.date(2020, 1, 1), None)
    span = column(DataTypes.INTERVAL_DAY_TIME(), day, day, day)
    other = column(DATE, datetime.date(2020, 1, 2), datetime.date(2020, 1, 3), datetime.date(2020, 1, 3))
    assert result("OVERLAPS", start, span, other, other) == [True, False, None]
    hour = column(DataTypes.INTERVAL_DAY_TIME(), datetime.timedelta(hours=1))
    clock = column(DataTypes.TIME(0), datetime.time(2, 55))
    assert result("OVERLAPS", clock, hour, column(DataTypes.TIME(0), datetime.time(3, 30)), hour) == [True]


def test_parts_have_names_of_their_own():
    days = column(DATE, datetime.date(2020, 3, 4), None)
    parts = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAYOFYEAR", "DAYOFMONTH", "DAYOFWEEK", "HOUR", "MINUTE", "SECOND")
    for name, expected in zip(parts, (2020, 1, 3, 10, 64, 4, 4, 0, 0, 0), strict=True):
        assert result(name, days) == [expected, None], name


def test_nanoseconds():
    times = column(DataTypes.TIMESTAMP(9), 1_583_298_367_891_234_567)
    assert result("EXTRACT", times, options=("NANOSECOND",)) == [891_234_567]
    assert result("CAST", column(DataTypes.TIMESTAMP(7), 1_583_298_367_891_234_500), to=STRING) == [
        "2020-03-04 05:06:07.8912345"
    ]


def test_seconds_since_1970():
    assert result("FROM_UNIXTIME", column(BIGINT, 44, None)) == ["1970-01-01 08:00:44", None]
    assert result("UNIX_TIMESTAMP", column(STRING, "1970-01-01 08:00:44", None)) == [44, None]
    with pytest.raises(RowError, match="precision 12"):
        one("TO_TIMESTAMP_LTZ", column(BIGINT, 1), 12)


def test_times_beyond_their_type_are_errors_of_rows():
    late = column(TIMESTAMP, datetime.datetime(9999, 1, 1))
    with pytest.raises(RowError, match=r"out of the range of TIMESTAMP\(9\); nanoseconds go from 1677 to 2262"):
        result("CAST", late, to=DataTypes.TIMESTAMP(9))
    long = constant(DataTypes.INTERVAL_DAY_TIME(), 10**10 * 86_400_000)
    with pytest.raises(RowError, match="an interval is too long to be added to a DATE; give a shorter one"):
        result("+", column(DATE, datetime.date(2020, 1, 1)), long)
    with pytest.raises(RowError, match=r"too long to be added to a TIMESTAMP\(9\)"):
        result("+", column(DataTypes.TIMESTAMP(9), datetime.datetime(2020, 1, 1)), long)
