"""Windows in the days and hours of a zone, with hours that are missing or come twice."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rayflink.table.plan.logical import WindowKind
from rayflink.table.runtime.aggregates.window_spec import WindowAggregation, WindowSpec
from rayflink.table.runtime.windows import zone_shift as zones
from rayflink.table.runtime.windows.window_operators import (
    global_window_aggregate,
    local_window_aggregate,
    one_phase_window_aggregate,
    session_window_aggregate,
)
from rayflink.table.types import DataTypes
from rayflink.testing import OperatorHarness, verify, wm

from .window_cases import aggregate, rows

LOS_ANGELES = "America/Los_Angeles"
HOUR = 3_600_000
BEGINS = int(datetime(2021, 3, 14, 10, tzinfo=timezone.utc).timestamp()) * 1000
"""02:00 becomes 03:00."""
ENDS = int(datetime(2021, 11, 7, 9, tzinfo=timezone.utc).timestamp()) * 1000
"""02:00 becomes 01:00."""
ROW = DataTypes.ROW([("word", DataTypes.STRING()), ("ts", DataTypes.TIMESTAMP_LTZ(3))])

instants = st.one_of(
    st.integers(BEGINS - 4 * HOUR, BEGINS + 4 * HOUR),
    st.integers(ENDS - 4 * HOUR, ENDS + 4 * HOUR),
    st.integers(0, 2**41),
)
some_zones = st.sampled_from([LOS_ANGELES, "UTC", "Asia/Shanghai", "Asia/Kolkata", "Australia/Lord_Howe"])


def local(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> int:
    return int(datetime(year, month, day, hour, minute, tzinfo=timezone.utc).timestamp()) * 1000


@given(instants, some_zones)
def test_local_times_are_those_of_the_clock_on_the_wall(instant, zone):
    moment = datetime.fromtimestamp(0, timezone.utc) + timedelta(milliseconds=instant)
    shown = moment.astimezone(ZoneInfo(zone)).replace(tzinfo=timezone.utc)
    wanted = (shown - datetime.fromtimestamp(0, timezone.utc)) // timedelta(milliseconds=1)
    assert zones.local_time(instant, zone) == wanted
    column = pa.array([instant]).cast(pa.timestamp("ms"))
    assert zones.local_times(column, zone).cast(pa.int64()).to_pylist() == [wanted]


def test_summer_time_does_not_end_in_2037():
    winter, summer = local(2039, 1, 14, 18), local(2039, 7, 14, 18)
    column = pa.array([winter, None, 0, summer]).cast(pa.timestamp("ms"))
    wanted = [datetime(2039, 1, 14, 10), None, datetime(1969, 12, 31, 16), datetime(2039, 7, 14, 11)]
    assert zones.local_times(column, LOS_ANGELES).to_pylist() == wanted
    found = zones.instants_of(np.array([winter - 8 * HOUR, summer - 7 * HOUR]), LOS_ANGELES)
    assert found.tolist() == [winter, summer]


@given(st.lists(instants, min_size=1), some_zones)
def test_many_instants_are_those_of_each(some, zone):
    found = zones.instants_of(np.array(some), zone)
    assert found.tolist() == [zones.instant_of(one, zone) for one in some]


@given(instants, some_zones)
def test_the_last_time_that_is_over_is_the_last(progress, zone):
    last = zones.last_over(progress, zone)
    assert zones.timer_of(last, zone) <= progress < zones.timer_of(last + 1, zone)


def test_timers_in_hours_that_are_missing_or_come_twice():
    # The numbers are those of the comment in Flink's TimeWindowUtil.toEpochMillsForTimer.
    of = {
        local(2021, 3, 14, 0): 1615708800000, local(2021, 3, 14, 1): 1615712400000,
        local(2021, 3, 14, 2, 30): 1615716000000, local(2021, 3, 14, 3): 1615716000000,
        local(2021, 11, 7, 0): 1636268400000, local(2021, 11, 7, 1): 1636275600000,
        local(2021, 11, 7, 2): 1636279200000,
    }  # fmt: skip
    assert {time: zones.timer_of(time, LOS_ANGELES) for time in of} == of


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, timezone.utc)


def aggregation(spec: WindowSpec) -> WindowAggregation:
    return WindowAggregation(ROW, (0,), (aggregate("COUNT"),), spec)


def in_zone(kind: WindowKind, size_ms: int, **how: int) -> WindowSpec:
    return WindowSpec(kind, size_ms, time_column=1, zone=LOS_ANGELES, time_type=DataTypes.TIMESTAMP_LTZ(3), **how)


def test_days_have_the_hours_of_the_zone():
    days = aggregation(in_zone(WindowKind.TUMBLE, 24 * HOUR))
    start = ENDS - 9 * HOUR + 7 * HOUR  # midnight of the 25 hours' day
    given = [start - 1, start, start + 24 * HOUR, start + 25 * HOUR - 1, start + 25 * HOUR]
    for factory in (
        lambda: one_phase_window_aggregate(days),
        lambda: [local_window_aggregate(days), global_window_aggregate(days)],
    ):
        with OperatorHarness(factory) as harness:
            harness.give(rows(*(("a", moment(at)) for at in given), of=ROW))
            harness.advance_watermark(start + 25 * HOUR - 2)
            assert [value["a0"] for value in harness.output_values()] == [1]
            harness.advance_watermark(start + 25 * HOUR - 1)
            _, value = harness.output_values()
            assert tuple(value)[1:4] == (3, datetime(2021, 11, 7), datetime(2021, 11, 8))
            assert value["window_time"] == moment(start + 25 * HOUR - 1)


def test_hours_that_come_twice_are_one_window():
    hours = aggregation(in_zone(WindowKind.TUMBLE, HOUR))
    given = [rows(("a", moment(ENDS - HOUR)), ("a", moment(ENDS + HOUR - 1)), ("a", moment(ENDS + HOUR)), of=ROW)]
    given += [wm(ENDS - 1), rows(("a", moment(ENDS - 5)), of=ROW), wm(ENDS + HOUR - 1), wm(ENDS + 2 * HOUR)]
    verify(lambda: one_phase_window_aggregate(hours), given)
    with OperatorHarness(lambda: one_phase_window_aggregate(hours)) as harness:
        for element in given:
            harness.give(element)
        assert [tuple(value)[1:3] for value in harness.output_values()] == [
            (3, datetime(2021, 11, 7, 1)), (1, datetime(2021, 11, 7, 2)),
        ]  # fmt: skip


def test_sessions_go_by_local_time_too():
    sessions = aggregation(in_zone(WindowKind.SESSION, 0, gap_ms=HOUR))
    with OperatorHarness(lambda: session_window_aggregate(sessions)) as harness:
        harness.give(rows(("a", moment(BEGINS - 1)), ("a", moment(BEGINS + 1)), of=ROW))
        harness.advance_watermark(BEGINS + 2 * HOUR)
        assert [tuple(value)[1:4] for value in harness.output_values()] == [
            (1, datetime(2021, 3, 14, 1, 59, 59, 999000), datetime(2021, 3, 14, 2, 59, 59, 999000)),
            (1, datetime(2021, 3, 14, 3, 0, 0, 1000), datetime(2021, 3, 14, 4, 0, 0, 1000)),
        ]
