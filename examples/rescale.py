"""Count visits by page, stop the job with a savepoint at parallelism 2, and resume it at parallelism 5.

Shows: `stop_with_savepoint`, operators with uids, the option `execution.state-recovery.path`, keyed state that is
redistributed to more subtasks, and a file sink that writes each row exactly once. On a cluster,
`rayflink rescale JOB OPERATOR=N` rescales in place.

Output: the number of pages of each subtask before and after, and the counts of both runs together:

    at parallelism 2
      subtask 0    12 pages
      subtask 1    8 pages
    at parallelism 5
      subtask 0    7 pages
      subtask 1    1 pages
      subtask 2    7 pages
      subtask 3    4 pages
      subtask 4    1 pages
    together 20 pages, each counted from 1 to 1000, and no count twice

    python examples/rescale.py           in this process
    python examples/rescale.py --ray     the same program on Ray
"""

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path

from rayflink.common import Encoder
from rayflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from rayflink.datastream.connectors import DataGeneratorSource, FileSink
from rayflink.datastream.state import ValueStateDescriptor

PAGES, VISITS, PER_SECOND = 20, 20_000, 10_000


class Count(KeyedProcessFunction):
    """How often the page was visited so far, and which of how many subtasks counted."""

    def open(self, ctx):
        self.place = f"{ctx.get_number_of_parallel_subtasks()} {ctx.get_index_of_this_subtask()}"
        self.count = ctx.get_state(ValueStateDescriptor("count"))

    def process_element(self, page, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"{self.place} {page} {count}"


def started(target, parallelism, folder, savepoint=None):
    """The client of the job, which begins or goes on from a savepoint."""
    options = {"execution.target": target, "parallelism.default": str(parallelism)}
    if savepoint:
        options["execution.state-recovery.path"] = savepoint
    env = StreamExecutionEnvironment.get_execution_environment(options)
    numbers = DataGeneratorSource(lambda number: number % PAGES, VISITS, PER_SECOND)
    visits = env.from_source(numbers, None, "visits").uid("visits")
    counts = visits.key_by(lambda page: page).process(Count())
    rows = FileSink.for_row_format(f"{folder}/rows", Encoder.simple_string_encoder()).build()
    counts.name("count").uid("count").sink_to(rows).uid("rows")
    return env.execute_async("visits by page")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--ray", action="store_true", help="run on Ray instead of in this process")
    target = "ray" if arguments.parse_args().ray else "local"

    with tempfile.TemporaryDirectory() as folder:
        client = started(target, 2, folder)
        until = time.monotonic() + 1
        while time.monotonic() < until or client.get_job_status().result().value in ("INITIALIZING", "CREATED"):
            time.sleep(0.01)
            client.get_job_status()
        savepoint = client.stop_with_savepoint(False, f"{folder}/savepoints").result()
        started(target, 5, folder, savepoint).get_job_execution_result().result()
        files = [path for path in Path(folder, "rows").rglob("*") if path.is_file() and not path.name.startswith(".")]
        rows = [tuple(map(int, line.split())) for path in files for line in path.read_text().splitlines()]

    for parallelism in (2, 5):
        places = {(subtask, page) for width, subtask, page, _ in rows if width == parallelism}
        print(f"at parallelism {parallelism}")
        for subtask, pages in sorted(Counter(subtask for subtask, _ in places).items()):
            print(f"  subtask {subtask}    {pages} pages")
    counts = Counter(page for _, _, page, _ in rows)
    assert {(page, count) for _, _, page, count in rows} == {(p, n + 1) for p in counts for n in range(counts[p])}
    print(f"together {len(counts)} pages, each counted from 1 to {min(counts.values())}, and no count twice")


if __name__ == "__main__":
    main()
