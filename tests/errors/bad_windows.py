"""Bad inputs of windows: their assigners, triggers and evictors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rayflink.datastream.window import (
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from tests.errors.bad_input import RUNNING, WRITTEN, bad, stamped


@bad("a window assigner that is none", WRITTEN, "a window assigner is wanted, found 5", "TumblingEventTimeWindows.of(")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).key_by(lambda v: v).window(5)


@bad("windows without a length", WRITTEN, "TumblingEventTimeWindows needs a size", "above 0", "found size 0 ms")
def _(env: Any, folder: Path) -> None:
    TumblingEventTimeWindows.of(0)


@bad("windows of a negative slide", WRITTEN, "SlidingEventTimeWindows needs a size and a slide above 0", "slide -5 ms")
def _(env: Any, folder: Path) -> None:
    SlidingEventTimeWindows.of(10, -5)


@bad("windows whose offset is as long as they are", WRITTEN, "an offset nearer to 0 than the slide", "offset -10 ms")
def _(env: Any, folder: Path) -> None:
    TumblingEventTimeWindows.of(10, -10)


@bad("windows whose size is a text", WRITTEN, "a length of time must be a Duration", "found '5 min'")
def _(env: Any, folder: Path) -> None:
    TumblingEventTimeWindows.of("5 min")  # type: ignore[arg-type]


@bad("sessions without a gap", WRITTEN, "EventTimeSessionWindows needs a gap above 0, found 0 ms")
def _(env: Any, folder: Path) -> None:
    EventTimeSessionWindows.with_gap(0)


@bad("a gap of a session that is no time", RUNNING, "gave '9' for this record, wanted milliseconds as int", "record: (")
def _(env: Any, folder: Path) -> None:
    gaps = DynamicEventTimeSessionWindows.with_dynamic_gap(lambda record: "9")  # type: ignore[arg-type]
    stamped(env, 1).key_by(0).window(gaps).sum(1).print()


@bad("count windows of no record", WRITTEN, "needs a size and a slide of at least 1 record, found size 0")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).key_by(lambda v: v).count_window(0)


@bad("a negative allowed lateness", WRITTEN, "The allowed lateness cannot be negative: -1 ms")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).key_by(lambda v: v).window(TumblingEventTimeWindows.of(5)).allowed_lateness(-1)


@bad("late records to a name instead of a tag", WRITTEN, "an OutputTag is wanted, found 'late'", "OutputTag('late')")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).key_by(lambda v: v).window(TumblingEventTimeWindows.of(5)).side_output_late_data("late")


class _Given(WindowAssigner):
    """Gives what it is made with, whatever it is asked."""

    def __init__(self, windows: Any, trigger: Any = None) -> None:
        self._windows, self._trigger = windows, trigger

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> Any:
        return self._windows

    def get_default_trigger(self, env: Any = None) -> Any:
        return self._trigger or EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


def assigned(env: Any, windows: Any) -> None:
    stamped(env, 1).key_by(0).window(_Given(windows)).sum(1).print()


@bad("an assigner that gives no list", RUNNING, "assign_windows gave None; give a list of windows, [] for", "record: (")
def _(env: Any, folder: Path) -> None:
    assigned(env, None)


@bad("an assigner that gives one window", RUNNING, "gave TimeWindow(start=0, end=5); give a list", "record: (")
def _(env: Any, folder: Path) -> None:
    assigned(env, TimeWindow(0, 5))


@bad(
    "an assigner that gives strings",
    RUNNING,
    "gave '0-5' among its windows, wanted TimeWindow(start, end)",
    "record: (",
)
def _(env: Any, folder: Path) -> None:
    assigned(env, ["0-5"])


@bad("a window that ends before it starts", RUNNING, "a window ends behind its start", "record: ('a', 1)")
def _(env: Any, folder: Path) -> None:
    assigned(env, [TimeWindow(5, 0)])


@bad("a window from a time that is no int", RUNNING, "start and end are whole milliseconds, as int", "record: ('a', 1)")
def _(env: Any, folder: Path) -> None:
    assigned(env, [TimeWindow(0.5, 5)])  # type: ignore[arg-type]


@bad("an assigner whose default trigger is none", WRITTEN, "get_default_trigger of", "gave 'count', wanted a Trigger")
def _(env: Any, folder: Path) -> None:
    env.from_collection([("a", 1)]).key_by(0).window(_Given([], "count")).sum(1)


@bad("a trigger that is none", WRITTEN, "a Trigger is wanted, found 3")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).key_by(lambda v: v).window(TumblingEventTimeWindows.of(5)).trigger(3)


class _Answers(EventTimeTrigger):
    """Answers a record, or else a timer, with what it is made with."""

    def __init__(self, answer: Any, to_records: bool) -> None:
        self._answer, self._to_records = answer, to_records

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> Any:
        given = super().on_element(element, timestamp, window, ctx)
        return self._answer if self._to_records else given

    def on_event_time(self, time: int, window: Any, ctx: Any) -> Any:
        return self._answer


@bad("a trigger that forgets to answer", RUNNING, "on_element of the trigger gave None, wanted a TriggerResult",
     "return TriggerResult.CONTINUE", "record: ('a', 1)")  # fmt: skip
def _(env: Any, folder: Path) -> None:
    windows = stamped(env, 1).key_by(0).window(TumblingEventTimeWindows.of(5))
    windows.trigger(_Answers(None, True)).sum(1).print()


@bad("a trigger that answers a timer with a text", RUNNING, "on_event_time of the trigger gave 'FIRE', wanted")
def _(env: Any, folder: Path) -> None:
    windows = stamped(env, 1).key_by(0).window(TumblingEventTimeWindows.of(5))
    windows.trigger(_Answers("FIRE", False)).sum(1).print()


@bad("an evictor that is none", WRITTEN, "an Evictor is wanted, found 3; write for example CountEvictor.of(100)")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).key_by(lambda v: v).window(TumblingEventTimeWindows.of(5)).evictor(3)


@bad("a slide too short by far for the size", WRITTEN, "puts each record into 31536000000 windows, at most 10000000")
def _(env: Any, folder: Path) -> None:
    SlidingEventTimeWindows.of(365 * 24 * 3600 * 1000, 1)


class _Nameless:
    def max_timestamp(self) -> int:
        return 5


@bad("windows of a class without equality", RUNNING, "which equals nothing but itself; write __eq__ and", "record: (")
def _(env: Any, folder: Path) -> None:
    assigned(env, [_Nameless()])
