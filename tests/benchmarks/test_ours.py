"""What ours reports is counted and computed rightly; each job runs in this process, on few rows."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.runs.job_numbers import flat, shuffle_numbers
from benchmarks.streams.ours_arrow_shuffle import BATCH_ROWS, CASES, make_batches, shuffle
from benchmarks.streams.ours_latency import LatencySink, Line, bucket, quantile
from benchmarks.streams.ours_scaling import Case, table, word_count
from benchmarks.streams.ours_startup import measure_job
from benchmarks.streams.ours_windows import StampedSource, open_sessions, windowed
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream.environment import StreamExecutionEnvironment

LOCAL = {"execution.target": "local"}


@given(st.integers(0, 1 << 50))
def test_a_bucket_is_below_its_value_by_less_than_a_hundred_and_twenty_eighth(value: int) -> None:
    assert bucket(value) == value if value < 256 else 0 <= value - bucket(value) < value / 128


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_buckets_keep_the_order_of_values(one: int, other: int) -> None:
    assert (one <= other) <= (bucket(one) <= bucket(other))


@given(st.lists(st.integers(0, 50), min_size=1), st.sampled_from((0.5, 0.99, 0.999)))
def test_a_quantile_is_the_least_value_that_a_share_of_all_does_not_exceed(values: list[int], share: float) -> None:
    found = quantile({value: values.count(value) for value in values}, share)
    assert sum(value <= found for value in values) >= len(values) * share
    assert sum(value < found for value in values) < len(values) * share


def test_a_quantile_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no latency was recorded"):
        quantile({}, 0.5)


def test_nested_numbers_become_lines_of_a_table() -> None:
    assert flat({"a": {"x": 1.5, "y": 2}, "b": {"x": 3}}) == {"a.x": 1.5, "a.y": 2, "b.x": 3}


def test_rates_run_from_the_release_of_the_sources_to_the_last_finished_task() -> None:
    def subtask(running: int, finished: int, calls: int) -> dict[str, Any]:
        return {"timestamps": {"RUNNING": running, "FINISHED": finished}, "metrics": {"calls": calls}}

    counted = {"numRecordsIn": 8_000_000, "numBytesIn": 16_000_000, "busyTimeMs": 1500, "backPressuredTimeMs": 0}
    sources = [subtask(5_000, 8_000, 6), subtask(4_000, 7_000, 4)]
    source = {**counted, "busyTimeMs": 2500, "backPressuredTimeMs": 500, "subtasks": sources}
    sink = {**counted, "subtasks": [subtask(3_000, 7_500, 1), subtask(3_000, 8_000, 1)]}
    assert shuffle_numbers([source, sink], began=4.0) == {
        "rows": 8_000_000,
        "seconds": 4.0,
        "m_rows_per_second": 2.0,
        "mb_per_second": 4.0,
        "calls_per_second": 3.0,
        "seconds_busy_source": 2.5,
        "seconds_busy_sink": 1.5,
        "seconds_back_pressured_source": 0.5,
    }


def test_string_keys_are_eight_characters_and_of_many_values() -> None:
    batches = make_batches("string_int64", seed=1, rows=250, count=4)
    keys = [key for batch in batches for key in batch.data.column("key").to_pylist()]
    assert {len(key) for key in keys} == {8}
    assert len(set(keys)) > 990
    assert [str(kind) for kind in batches[0].data.schema.types] == ["string", "int64"]


def test_batches_of_numbers_have_four_columns_and_come_from_the_seed() -> None:
    one, same, other = (make_batches("int64x4", seed, rows=100, count=1)[0] for seed in (1, 1, 2))
    assert [str(kind) for kind in one.data.schema.types] == ["int64"] * 4
    assert one == same
    assert one != other


@pytest.mark.slow
@pytest.mark.parametrize("kind", CASES)
def test_every_row_of_the_arrow_shuffle_reaches_a_sink_by_columns(kind: str) -> None:
    source, sink = shuffle(kind, 3, 2, LOCAL)[1].vertices
    assert source["numRecordsOut"] == sink["numRecordsIn"] == 3 * BATCH_ROWS
    assert min(task["metrics"]["numRecordsIn"] for task in sink["subtasks"]) > BATCH_ROWS


def test_latency_excludes_the_warm_up_of_each_source_subtask_and_measures_the_rest() -> None:
    env = StreamExecutionEnvironment.get_execution_environment(LOCAL).set_parallelism(2)
    events = env.from_source(DataGeneratorSource(_stamped_a_second_ago, 100), None, "Events")
    events.key_by(itemgetter(0)).sink_to(LatencySink([(0, 50), (50, 100)], skipped=10))
    counts = env.execute().get_accumulator_result("latency_us")
    assert sum(counts.values()) == 80
    assert 990_000 < min(counts) <= max(counts) < 60_000_000


def _stamped_a_second_ago(index: int) -> tuple[int, int, int]:
    import time

    return index % 7, index, time.time_ns() - 1_000_000_000


def test_the_lines_of_the_word_count_hold_eight_of_up_to_5000_words() -> None:
    line = Line()
    lines = [line(index) for index in range(1025)]
    assert {len(line.split()) for line in lines} == {8}
    assert 1000 < len({word for line in lines for word in line.split()}) <= 5000
    assert lines[0] == lines[1024]


def test_the_scaling_word_count_counts_what_it_made() -> None:
    numbers = word_count(Case(2, 3), 800, LOCAL)
    assert (numbers["rows"], numbers["channels_a_source"]) == (800, 3)
    assert numbers["calls_per_second_a_source"] > 0


def test_the_scaling_table_has_a_line_a_case() -> None:
    numbers = dict.fromkeys(("calls_per_second_a_source", "calls_per_second_a_counter", "rows_a_call"), 7.0)
    lines = table({"2x8": {"m_rows_per_second": 1.25, **numbers}}).splitlines()
    assert [cell.strip() for cell in lines[2].split("|")[1:-1]] == ["2x8", "1.25", "7.00", "7.00", "7.00"]


def test_start_up_is_from_execute_to_the_first_record() -> None:
    times = measure_job(2, target="local")
    assert 0 <= times["to_first_record"] <= times["to_end"] < 60
    assert times["to_slots"] <= times["to_first_record"] + 0.001


@pytest.mark.parametrize(("kind", "seconds", "results"), [("tumbling", (1,), 0.1), ("sliding", (6, 2), 50 / 600)])
def test_every_record_of_the_windows_benchmark_reaches_its_window(
    kind: str, seconds: tuple[int, ...], results: float
) -> None:
    numbers = windowed(kind, StampedSource(600, 10, 100), {}, seconds)
    assert numbers["rows"] == 600
    assert numbers["results_a_record"] == pytest.approx(results)
    assert numbers["m_rows_per_cpu_second"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_as_many_sessions_fire_as_were_open(backend: str) -> None:
    numbers = open_sessions(500, backend)
    assert numbers["sessions"] == 500 and numbers["m_sessions_fired_per_cpu_second"] > 0
