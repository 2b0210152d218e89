"""watermarks.svg: records, the watermark and windows of ten seconds, as a job in this process told of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from drawing import Frame, label, picture

from rayflink.common import Duration, OutputTag, Watermark, WatermarkGenerator, WatermarkStrategy
from rayflink.datastream import ProcessAllWindowFunction, StreamExecutionEnvironment
from rayflink.datastream.window import TumblingEventTimeWindows

SECONDS = [1, 4, 3, 8, 12, 9, 6, 14, 16, 11, 21, 7, 18, 23, 26, 19, 28, 31, 27, 36, 34]
"""Event time of the records, in the order in which they come."""
BEHIND_S, SIZE_S = 5, 10
LATE = OutputTag("late")

_sent: list[int] = []
"""The watermark behind each record, in ms; of this process, in which the job runs."""


class BehindEachRecord(WatermarkGenerator):
    """Watermarks `BEHIND_S` behind the greatest timestamp, sent with each record."""

    def __init__(self) -> None:
        self.greatest_ms = 0

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        self.greatest_ms = max(self.greatest_ms, event_timestamp)
        _sent.append(self.greatest_ms - BEHIND_S * 1000)
        output.emit_watermark(Watermark(_sent[-1]))

    def on_periodic_emit(self, output: Any) -> None:
        """Every watermark has been sent already."""


class Fired(ProcessAllWindowFunction):
    """(start, end, the watermark that fired it, the seconds of its records)."""

    def process(self, context: Any, elements: Iterable[int]) -> Iterable[Any]:
        window = context.window()
        yield window.start // 1000, window.end // 1000, context.current_watermark(), sorted(elements)


def run() -> tuple[list[Any], list[int], list[int]]:
    """The windows as they fired, the records that were late, and the watermark behind each record in ms."""
    _sent.clear()
    env = StreamExecutionEnvironment({"execution.target": "local"})
    strategy = WatermarkStrategy.for_generator(BehindEachRecord).with_timestamp_assigner(lambda s, _: s * 1000)
    windows = (
        env.from_collection(SECONDS)
        .assign_timestamps_and_watermarks(strategy)
        .window_all(TumblingEventTimeWindows.of(Duration.of_seconds(SIZE_S)))
        .side_output_late_data(LATE)
        .process(Fired())
    )
    found = list(windows.union(windows.get_side_output(LATE)).execute_and_collect("watermarks"))
    return [one for one in found if isinstance(one, tuple)], [one for one in found if isinstance(one, int)], list(_sent)


def watermarks_picture() -> str:
    """Draw the run."""
    fired, late, sent = run()
    last = len(SECONDS) + 1
    frame = Frame(64, 48, 700, 320, (0, last + 1), (0, 44))
    for start, end, watermark, seconds in fired:
        at = next((n for n, ms in enumerate(sent, start=1) if ms == watermark), last)
        frame.box("open", (0, at), (start, end))
        frame.line("grid", [(0, end), (last + 1, end)])
        frame.line("fired", [(at, start), (at, end)])
        frame.text(f"{start} to {end} s", 0.2, end - 2)
        if at < last:
            frame.text(f"{len(seconds)} records", at + 0.2, start + 1.2)
        else:
            frame.text(f"{len(seconds)} records", at - 0.2, end - 2, anchor="end")
    steps = [(0.0, 0.0)]
    for number, ms in enumerate(sent, start=1):
        steps += [(number, steps[-1][1]), (number, max(0, ms / 1000))]
    frame.line("watermark", [*steps, (last, steps[-1][1]), (last, 44)])
    for number, second in enumerate(SECONDS, start=1):
        frame.dot("late" if second in late else "record", number, second)
    for second in (0, 10, 20, 30, 40):
        frame.text(f"{second} s", -0.2, second - 0.8, anchor="end")
    frame.axes()
    notes = [
        label("event time", 16, 44),
        '<path class="fired" d="M654,404 L654,420"/>', label("a window fires", 664, 416),
        label("order of arrival, the end of the stream last", 764, 390, anchor="end"),
        '<circle class="record" cx="70" cy="412" r="5"/>', label("a record", 82, 416),
        '<circle class="late" cx="190" cy="412" r="5"/>', label("too late: its window has fired", 202, 416),
        '<path class="watermark" d="M490,412 L512,412"/>', label("the watermark", 520, 416),
    ]  # fmt: skip
    title = f"Windows of {SIZE_S} s and a watermark {BEHIND_S} s behind the newest record"
    return picture(title, 790, 430, [*frame.drawn, *notes])
