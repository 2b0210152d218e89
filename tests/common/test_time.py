"""Durations, instants and times."""

import pickle
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.time import Duration, Instant, Time, to_millis


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (Duration.of_millis(10), "PT0.01S"),
        (Duration.of_days(1), "PT24H"),
        (Duration.of_seconds(3661), "PT1H1M1S"),
        (Duration.of_nanos(0), "PT0S"),
        (Duration.of_seconds(-90), "PT-1M-30S"),
    ],
)
def test_durations_print_as_java_prints_them(duration, text):
    assert str(duration) == text


@given(st.timedeltas(min_value=timedelta(-10_000), max_value=timedelta(10_000)))
def test_a_timedelta_goes_through_a_duration_unchanged(delta):
    assert Duration.of_timedelta(delta).to_timedelta() == delta


def test_any_length_of_time_becomes_milliseconds():
    lengths = [Duration.of_seconds(2), timedelta(seconds=2), Time.seconds(2), 2000]
    assert [to_millis(length) for length in lengths] == [2000] * 4
    for wrong in ("2 s", 2.0, True, None):
        with pytest.raises(TypeError, match="must be a Duration, Time"):
            to_millis(wrong)


@given(st.integers(-(10**14), 10**14))
def test_epoch_milliseconds_come_back_from_an_instant(epoch_ms):
    assert Instant.of_epoch_milli(epoch_ms).to_epoch_milli() == epoch_ms


def test_an_instant_prints_as_in_pyflink_and_converts_to_utc():
    assert repr(Instant.of_epoch_milli(1500)) == "Instant<1, 500000000>"
    assert Instant(1, 500_000_000).to_datetime() == datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=timezone.utc)


def test_values_order_hash_and_pickle():
    for small, large in ((Duration(1), Duration(2)), (Instant(1, 9), Instant(2, 0))):
        assert small < large and len({small, pickle.loads(pickle.dumps(small))}) == 1
    assert {Time.hours(1)} == {Time.minutes(60)} and str(Time.days(1)) == "86400000 ms"
