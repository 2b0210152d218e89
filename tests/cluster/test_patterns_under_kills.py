"""One pattern, and patterns that a stream of rules changes, match the same events where a slot is killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from rayflink.cep import CEP, Pattern, PatternRule
from rayflink.common import Duration, Encoder, WatermarkStrategy
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.file_system import FileSink
from rayflink.table.expressions import col
from tests.cluster import watching
from tests.cluster.test_sql_under_kills import OPTIONS, goes_on

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def low_high(limit: int) -> Pattern[Any]:
    """The pattern that looks for a value below 20 and the next one above a limit."""
    low: Pattern[Any] = Pattern.begin("low").where(col("f1") < 20)
    return low.followed_by("high").where(col("f1") > limit).within(Duration.of_minutes(3))


def rise(limit: int) -> PatternRule:
    """The version of the rule that has this pattern."""
    return PatternRule("rise", limit, low_high(limit))


def rises(folder: Path, target: str, rate: int) -> Any:
    """The job: one pattern, and a rule for each thousand of events."""
    places = {"execution.checkpointing.dir": f"file://{folder}/checkpoints", "parallelism.default": "2"}
    env = StreamExecutionEnvironment.get_execution_environment({**OPTIONS, **places, "execution.target": target})
    source = DataGeneratorSource(
        lambda number: (number % 13, number * 7919 % 101, number), count=4000, records_per_second=rate
    )
    times = WatermarkStrategy.for_monotonous_timestamps()
    by_number = times.with_timestamp_assigner(lambda event, _: event[2] * 1000)
    by_limit = times.with_timestamp_assigner(lambda rule, _: (rule.version - 60) * 100_000)
    events = env.from_source(source, by_number, "Events").set_parallelism(1)
    rules = env.from_collection([rise(70), rise(80), rise(90)]).assign_timestamps_and_watermarks(by_limit)
    keyed = events.key_by(lambda event: event[0])
    matches = CEP.patterns(keyed, [rise(60)], rules)
    lines = matches.select(lambda match: f"{match.version} {match['low'][0][2]} {match['high'][0][2]}")
    alone = CEP.pattern(keyed, low_high(60)).select(lambda match: f"alone {match['low'][0][2]} {match['high'][0][2]}")
    lines.union(alone).sink_to(FileSink.for_row_format(str(folder / target), Encoder.simple_string_encoder()).build())
    return env.execute_async("rises")


def lines_of(folder: Path) -> list[str]:
    return sorted(line for path in folder.rglob("[!.]*") if path.is_file() for line in path.read_text().splitlines())


def test_patterns_match_the_same_events_where_a_slot_is_killed(cluster: str, tmp_path: Path) -> None:
    client = rises(tmp_path, "ray", 1000)
    os.kill(goes_on(client, 2)[1], signal.SIGKILL)
    assert watching.eventually(lambda: client.status()["metrics"]["numRestarts"], within_s=30)
    client.get_job_execution_result().result()
    rises(tmp_path, "local", 1_000_000).get_job_execution_result().result()
    expected = lines_of(tmp_path / "local")
    assert {line.partition(" ")[0] for line in expected} == {"60", "70", "80", "90", "alone"}
    assert lines_of(tmp_path / "ray") == expected
