"""Count visits while the job crashes on purpose, so that every visit counts exactly once.

Shows: checkpoints in a folder, a job that resumes from the newest one after a failure, and rows that are returned
exactly once, when their checkpoint is complete. Without checkpoints the job would start again and repeat rows, which
is an error.

Output: how often each of two runs started; 20,000 visits to four pages, a crash at visit 12,000:

    with checkpoints: began 2 times
      /            5000
      /cart        5000
      /pay         5000
      /search      5000
      together     20000
    without: began 2 times, then ended with an error
      has begun anew without checkpoints

    python examples/exactly_once.py           in this process
    python examples/exactly_once.py --ray     the same program on Ray
"""

import argparse
import tempfile
import time
from pathlib import Path

from rayflink.common import JobExecutionError
from rayflink.datastream import KeyedProcessFunction, MapFunction, StreamExecutionEnvironment
from rayflink.datastream.state import ValueStateDescriptor

VISITS, CRASH_AT = 20_000, 12_000
PAGES = ("/", "/search", "/cart", "/pay")


class CrashOnce(MapFunction):
    """Turns numbers into visits, and breaks down at one of them, the first time it comes."""

    def __init__(self, folder):
        self.starts = Path(folder) / "starts"

    def open(self, ctx):
        with self.starts.open("a") as starts:
            starts.write("started\n")

    def map(self, number):
        if number % 1_000 == 0:
            time.sleep(0.05)  # so that there are checkpoints before the crash
        if number == CRASH_AT and self.starts.read_text().count("\n") == 1:
            raise ConnectionError("a crash on purpose")
        return PAGES[number % len(PAGES)]


class Count(KeyedProcessFunction):
    """How often the page was visited so far."""

    def open(self, ctx):
        self.count = ctx.get_state(ValueStateDescriptor("count"))

    def process_element(self, page, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield page, count


def counts(target, folder, interval):
    """The rows of the job, as they come, and how often it began."""
    options = {
        "execution.target": target,
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "100 ms",
        "execution.checkpointing.dir": f"{folder}/checkpoints",
    }
    if interval:
        options["execution.checkpointing.interval"] = interval
    env = StreamExecutionEnvironment.get_execution_environment(options)
    visits = env.from_sequence(1, VISITS).map(CrashOnce(folder)).name("visits")
    return visits.key_by(lambda page: page).process(Count()).execute_and_collect("visits")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--ray", action="store_true", help="run on Ray instead of in this process")
    target = "ray" if arguments.parse_args().ray else "local"

    with tempfile.TemporaryDirectory() as folder:
        rows = list(counts(target, folder, interval="100 ms"))
        starts = (Path(folder) / "starts").read_text().count("\n")
    assert len(rows) == len(set(rows)), "a count came twice"
    print(f"with checkpoints: began {starts} times")
    for page in sorted(PAGES):
        print(f"  {page:12} {max(count for visited, count in rows if visited == page)}")
    print(f"  {'together':12} {len(rows)}")

    with tempfile.TemporaryDirectory() as folder:
        try:
            list(counts(target, folder, interval=None))
        except JobExecutionError as error:
            starts = (Path(folder) / "starts").read_text().count("\n")
            print(f"without: began {starts} times, then ended with an error")
            print(f"  {error.reason.split(',')[0]}")


if __name__ == "__main__":
    main()
