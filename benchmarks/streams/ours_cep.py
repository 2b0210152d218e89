"""Patterns of three steps over the events of `cep_events`, one job after the other in this process, parallelism 1."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import count
from operator import itemgetter
from typing import Any

from benchmarks.inputs.cep_events import QUERY, TABLE, WITHIN_S, event_columns
from benchmarks.inputs.one_split import OneSplitSource
from rayflink.cep import CEP, Pattern
from rayflink.common import Duration, WatermarkStrategy
from rayflink.common.connector_base.source import Polled
from rayflink.common.records.batches import RowBatch

Event = tuple[int, int, int, int]
BATCH_EVENTS = 4096
OPTIONS = {"execution.target": "local", "state.backend.type": "hashmap"}
_matches = count()


class EventSource(OneSplitSource):
    """Events made in memory, in one split.

    Args:
        events: how many.
        share: percent of their blocks that are relevant.
    """

    def __init__(self, events: int, share: int) -> None:
        self.events, self.share = events, share

    def cursor(self, given: int) -> _EventCursor:
        return _EventCursor(self, given)


class _EventCursor:
    def __init__(self, source: EventSource, start: int) -> None:
        self._source, self._next = source, start

    def read(self, max_records: int) -> Polled | None:
        start, source = self._next, self._source
        if start >= source.events:
            return None
        self._next = min(start + min(BATCH_EVENTS, max_records), source.events)
        columns = [column.tolist() for column in event_columns(start, self._next, source.share)]
        return RowBatch(list(zip(*columns, strict=True)))

    def position(self) -> int:
        return self._next

    def close(self) -> None:
        pass


def is_first(event: Event) -> bool:
    return event[1] == 1


def is_second(event: Event) -> bool:
    return event[1] == 2


def is_third(event: Event) -> bool:
    return event[1] == 3


def paid(match: dict[str, list[Event]]) -> int:
    """The user's function."""
    next(_matches)
    return match["a"][0][2] + match["c"][0][2]


def steps(is_strict: bool) -> Pattern[Event]:
    """Return the pattern, without `within`."""
    first = Pattern[Event].begin("a").where(is_first)
    second = (first.next("b") if is_strict else first.followed_by("b")).where(is_second)
    return (second.next("c") if is_strict else second.followed_by("c")).where(is_third)


def run_pattern(events: int, share: int, is_strict: bool, options: dict[str, str]) -> None:
    """Match events of the API."""
    from rayflink.connectors.discard import DiscardingSink
    from rayflink.datastream import StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment({**OPTIONS, **options})
    env.set_parallelism(1)
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event, _: event[3])
    stream = env.from_source(EventSource(events, share), times, "events").key_by(itemgetter(0))
    pattern = steps(is_strict).within(Duration.of_seconds(WITHIN_S))
    CEP.pattern(stream, pattern).select(paid).sink_to(DiscardingSink())
    env.execute("patterns")


def run_query(path: str, options: dict[str, str]) -> None:
    """Match rows of a CSV file by MATCH_RECOGNIZE."""
    from rayflink.connectors.discard import DiscardingSink
    from rayflink.datastream import StreamExecutionEnvironment
    from rayflink.table import StreamTableEnvironment

    env = StreamExecutionEnvironment.get_execution_environment({**OPTIONS, **options})
    env.set_parallelism(1)
    t_env = StreamTableEnvironment.create(env)
    t_env.get_config().set_string("table.local-time-zone", "UTC")
    t_env.execute_sql(TABLE.replace("{path}", path))
    t_env.to_data_stream(t_env.sql_query(QUERY)).map(_count).sink_to(DiscardingSink())
    env.execute("MATCH_RECOGNIZE")


def _count(row: Any) -> int:
    next(_matches)
    return 1


def run(data_path: str | None, jobs: Sequence[Sequence[Any]], **options: str) -> dict[str, Any]:
    """Run each job, and report those that are no warm-up.

    Args:
        jobs: of each the case, the number of events, the percentage of relevant ones, the CSV file or "", and "warm"
            or "measured".
        options: of the jobs.
    """
    began = time.time()
    reported = []
    for case, events, share, path, kind in jobs:
        before = next(_matches)
        start, cpu = time.perf_counter(), time.process_time()
        if case.startswith("sql"):
            run_query(path, options)
        else:
            run_pattern(int(events), int(share), case.startswith("strict"), options)
        job = {"query": case, "events": int(events), "seconds": time.perf_counter() - start}
        job |= {"cpu_seconds": time.process_time() - cpu, "matches": next(_matches) - before - 1}
        if kind != "warm":
            reported.append(job)
    return {"seconds_total": time.time() - began, "jobs": reported}
