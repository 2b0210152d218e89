"""tumbling_windows.svg, sliding_windows.svg, session_windows.svg: one stream in three kinds of windows.

Everything drawn is what a job in this process gave: the windows with their sums, the records that were late, and the
watermark that each record met.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from drawing import Frame, label, picture

from rayflink.common import Duration, OutputTag, WatermarkStrategy
from rayflink.datastream import ProcessFunction, ProcessWindowFunction, StreamExecutionEnvironment
from rayflink.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)


class Payment(NamedTuple):
    """A record: who, at which second, how much."""

    user: str
    second: int
    amount: int


PAYMENTS = [
    Payment("ann", 2, 1), Payment("bob", 3, 2), Payment("ann", 6, 3), Payment("bob", 5, 1), Payment("ann", 12, 2),
    Payment("ann", 9, 4), Payment("bob", 15, 1), Payment("ann", 8, 5), Payment("bob", 13, 3), Payment("ann", 21, 1),
    Payment("bob", 25, 2), Payment("bob", 7, 4), Payment("ann", 24, 6),
]  # fmt: skip
"""In the order in which they come; the last one raises no watermark, for no record would tell of it."""
BEHIND_S = 3
LAST_S = 32
ARRIVED, LATE = OutputTag("arrived"), OutputTag("late")
KINDS: tuple[tuple[str, str, WindowAssigner[Any, Any]], ...] = (
    ("tumbling", "Tumbling windows of 10 s", TumblingEventTimeWindows.of(Duration.of_seconds(10))),
    (
        "sliding",
        "Sliding windows of 10 s that begin every 4 s",
        SlidingEventTimeWindows.of(Duration.of_seconds(10), Duration.of_seconds(4)),
    ),
    ("session", "Sessions with a gap of 5 s", EventTimeSessionWindows.with_gap(Duration.of_seconds(5))),
)
"""(name, title, assigner) of each picture."""


class Arrivals(ProcessFunction):
    """Tells of each record which watermark it met."""

    def process_element(self, value: Payment, ctx: Any) -> Iterable[Any]:
        yield ARRIVED, (value, ctx.timer_service().current_watermark())
        yield value


class Fired(ProcessWindowFunction):
    """A window that fires, with its sum."""

    def process(self, key: str, context: Any, elements: Iterable[Payment]) -> Iterable[Any]:
        window = context.window()
        for payment in elements:
            yield key, window.start / 1000, window.end / 1000, payment.amount, context.current_watermark()


@dataclass(frozen=True)
class Run:
    """What a job told.

    Args:
        windows: (user, start, end, sum, watermark in ms) in the order in which they fired.
        late: the records that were in no window.
        arrived: each record and the watermark in ms that it met, in order of arrival.
    """

    windows: list[tuple[str, float, float, int, int]]
    late: list[Payment]
    arrived: list[tuple[Payment, int]]

    def fired_behind(self, watermark_ms: int) -> int:
        """How many records had come when the watermark was this; the end of the stream counts as one more."""
        met = [watermark for _, watermark in self.arrived]
        return next((n for n, watermark in enumerate(met) if watermark >= watermark_ms), len(met) + 1)


def run(assigner: WindowAssigner[Any, Any]) -> Run:
    """Let a job work the payments."""
    env = StreamExecutionEnvironment({"execution.target": "local"})
    strategy = (
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(BEHIND_S))
        .with_timestamp_assigner(lambda payment, _: payment.second * 1000)
        .with_emit_every(1, Duration.of_millis(0))
    )
    payments = env.from_collection(PAYMENTS).assign_timestamps_and_watermarks(strategy).process(Arrivals())
    windows = payments.key_by(lambda payment: payment.user).window(assigner).side_output_late_data(LATE)
    sums = windows.reduce(lambda a, b: a._replace(amount=a.amount + b.amount), Fired())
    told = [
        sums.map(lambda fired: ("windows", fired)),
        sums.get_side_output(LATE).map(lambda payment: ("late", payment)),
        payments.get_side_output(ARRIVED).map(lambda arrived: ("arrived", arrived)),
    ]
    found: dict[str, list[Any]] = {"windows": [], "late": [], "arrived": []}
    for kind, what in told[0].union(*told[1:]).execute_and_collect("windows"):
        found[kind].append(what)
    return Run(**found)


def windows_picture(title: str, assigner: WindowAssigner[Any, Any]) -> str:
    """Draw a run: above the windows of each user by event time, below the records as they came."""
    told = run(assigner)
    lines = _lines(told)
    above = Frame(96, 56, 660, 26 * len(lines), (0, LAST_S), (len(lines), 0))
    for at, (user, spans) in enumerate(lines):
        if user:
            above.text(user, -0.4, at + 0.65, "", "end")
            _dots(above, told, user, at + 0.5)
        for start, end, amount in spans:
            above.box("window", (max(0, start), min(LAST_S, end)), (at + 0.92, at + 0.12))
            above.text(str(amount), (max(0, start) + min(LAST_S, end)) / 2, at + 0.68, "", "middle")
    top = 56 + above.height + 28
    below = Frame(96, top, 660, 17 * (len(PAYMENTS) + 2), (0, LAST_S), (len(PAYMENTS) + 2, 0))
    _records(below, told)
    bottom = top + below.height
    for second in range(0, LAST_S + 1, 5):
        below.text(f"{second} s", second, len(PAYMENTS) + 3, anchor="middle")
    notes = [
        label("order of", 20, top + 14), label("arrival", 20, top + 28),
        label("end", 88, below.at(0, len(PAYMENTS) + 1)[1] + 4, anchor="end"),
        f'<circle class="record" cx="70" cy="{bottom + 44:.1f}" r="5"/>', label("a record", 82, bottom + 48),
        f'<circle class="late" cx="170" cy="{bottom + 44:.1f}" r="5"/>', label("late: in no window", 182, bottom + 48),
        f'<path class="watermark" d="M340,{bottom + 44:.1f} L362,{bottom + 44:.1f}"/>',
        label("the watermark", 370, bottom + 48),
        f'<path class="fired" d="M500,{bottom + 36:.1f} L500,{bottom + 52:.1f}"/>',
        label("a window fires, with its sum", 510, bottom + 48),
    ]  # fmt: skip
    return picture(f"{title}, by user", 790, int(bottom + 64), [*above.drawn, *below.drawn, *notes])


def _lines(told: Run) -> list[tuple[str, list[tuple[float, float, int]]]]:
    """Lines of the upper part: one for the records of each user, and below it as many as its windows need."""
    lines: list[tuple[str, list[tuple[float, float, int]]]] = []
    for user in sorted({payment.user for payment in PAYMENTS}):
        rows: list[list[tuple[float, float, int]]] = []
        for start, end, amount in sorted(window[1:4] for window in told.windows if window[0] == user):
            free = next((row for row in rows if row[-1][1] <= start), None)
            if free is None:
                rows.append(free := [])
            free.append((start, end, amount))
        lines += [(user, []), *(("", row) for row in rows)]
    return lines


def _dots(frame: Frame, told: Run, user: str, height: float) -> None:
    for payment, _ in told.arrived:
        if payment.user == user:
            frame.dot("late" if payment in told.late else "record", payment.second, height)
            frame.text(str(payment.amount), payment.second + 0.35, height + 0.18)


def _records(frame: Frame, told: Run) -> None:
    """The lower part: records by event time and order of arrival, the watermark, and where windows fire."""
    for _, _, end, _, watermark_ms in told.windows:
        if end <= LAST_S:
            at = told.fired_behind(watermark_ms)
            frame.line("grid", [(end, 0), (end, at)])
            frame.line("fired", [(end, at - 0.45), (end, at + 0.45)])
    met = [max(0.0, (watermark + 1) / 1000) for _, watermark in told.arrived[1:]]
    steps = [(0.0, 0.0), (0.0, 1.0)]
    for number, second in enumerate(met, start=1):
        steps += [(second, number), (second, number + 1)]
    final = steps[-1][0]
    last = len(PAYMENTS) + 1
    frame.line("watermark", [*steps, (final, last), (LAST_S, last)])
    for number, (payment, _) in enumerate(told.arrived, start=1):
        frame.dot("late" if payment in told.late else "record", payment.second, number)
        frame.text(payment.user, payment.second + 0.4, number + 0.25)
    frame.line("axis", [(0, 0), (0, last + 1), (LAST_S, last + 1)])


def window_pictures() -> dict[str, str]:
    """The pictures by name."""
    return {f"{name}_windows": windows_picture(title, assigner) for name, title, assigner in KINDS}
