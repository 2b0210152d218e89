"""Group clicks into visits: a visit ends when a visitor has not clicked for ten minutes.

Shows: event time, which assigns out-of-order clicks to the right visit; session windows with an aggregate and a window
function; and a side output for clicks that arrive after their visit was reported. A watermark follows each click, two
minutes behind, so the late clicks do not depend on the speed of the program.

Output: the visits in the order in which they ended, then the late clicks:

    visits
      bob    09:04 - 09:05, 2 clicks: / /hats
      anna   09:00 - 09:13, 3 clicks: / /shoes /cart
      anna   09:31 - 09:31, 1 click: /shoes
      carol  09:30 - 09:41, 3 clicks: / /hats /cart
    too late
      bob    09:06 /cart

    python examples/sessionisation.py           in this process
    python examples/sessionisation.py --ray     the same program on Ray
"""

import argparse
from typing import NamedTuple

from rayflink.common import Duration, OutputTag, WatermarkStrategy
from rayflink.datastream import AggregateFunction, ProcessWindowFunction, StreamExecutionEnvironment
from rayflink.datastream.window import EventTimeSessionWindows

MINUTE_MS = 60_000
LATE = OutputTag("too late")


class Click(NamedTuple):
    """One line of the log."""

    visitor: str
    minute: int  # of the day
    page: str


CLICKS = [
    Click("anna", 540, "/"),
    Click("bob", 544, "/"),
    Click("anna", 549, "/shoes"),
    Click("bob", 545, "/hats"),  # out of order, but in time
    Click("anna", 553, "/cart"),
    Click("carol", 570, "/"),
    Click("bob", 546, "/cart"),  # its visit was reported when carol came
    Click("anna", 571, "/shoes"),
    Click("carol", 581, "/cart"),
    Click("carol", 577, "/hats"),  # joins the two visits that carol seemed to make
]


class Pages(AggregateFunction):
    """The pages of a visit with their times; one list for each visit is all that is kept."""

    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        return [*accumulator, (value.minute, value.page)]

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b

    def get_result(self, accumulator):
        return sorted(accumulator)


class Visit(ProcessWindowFunction):
    """(visitor, first minute, last minute, pages) of a visit that is over."""

    def process(self, key, context, elements):
        for pages in elements:
            yield key, pages[0][0], pages[-1][0], [page for _, page in pages]


def visits(env):
    """The program: visits, and ("late", click) for each click that came too late."""
    watermarks = (
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(2))
        .with_timestamp_assigner(lambda click, _: click.minute * MINUTE_MS)
        .with_emit_every(1, Duration.of_millis(0))
    )
    clicks = env.from_collection(CLICKS).name("clicks").assign_timestamps_and_watermarks(watermarks).set_parallelism(1)
    sessions = clicks.key_by(lambda click: click.visitor).window(
        EventTimeSessionWindows.with_gap(Duration.of_minutes(10))
    )
    ended = sessions.side_output_late_data(LATE).aggregate(Pages(), Visit()).name("visits")
    late = ended.get_side_output(LATE).map(lambda click: ("late", click))
    return ended.map(lambda visit: ("visit", visit)).union(late)


def clock(minute: int) -> str:
    """Hours and minutes of a minute of the day."""
    return f"{minute // 60:02}:{minute % 60:02}"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--ray", action="store_true", help="run on Ray instead of in this process")
    target = "ray" if arguments.parse_args().ray else "local"
    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": target, "parallelism.default": 2})

    found = {"visit": [], "late": []}
    for which, what in visits(env).execute_and_collect("sessionisation"):
        found[which].append(what)

    print("visits")
    for visitor, first, last, pages in sorted(found["visit"], key=lambda visit: visit[2]):
        clicks = f"{len(pages)} click{'s' if len(pages) > 1 else ''}"
        print(f"  {visitor:6} {clock(first)} - {clock(last)}, {clicks}: {' '.join(pages)}")
    print("too late")
    for click in found["late"]:
        print(f"  {click.visitor:6} {clock(click.minute)} {click.page}")


if __name__ == "__main__":
    main()
