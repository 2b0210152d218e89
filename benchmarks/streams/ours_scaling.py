"""Throughput of a word count by parallelism, and by channels a task."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from benchmarks.runs import report
from benchmarks.runs.job_numbers import calls, flat, ready_ms, shuffle_numbers
from benchmarks.runs.ray_bounded import bounded_ray
from benchmarks.runs.starting_gun import HeldBack, starting_gun
from benchmarks.streams.ours_latency import Line
from benchmarks.streams.ours_w1 import split

WORDS = 4_000_000
_WORDS_A_LINE = 8


@dataclass(frozen=True)
class Case:
    """A word count of `sources` reading and splitting subtasks and `counters` counting ones, all joined with all."""

    sources: int
    counters: int

    @property
    def name(self) -> str:
        """As in a table: "2x8"."""
        return f"{self.sources}x{self.counters}"


PARALLELISM = (Case(1, 1), Case(2, 2), Case(4, 4))
CHANNELS = (Case(2, 2), Case(2, 8), Case(2, 32))
"""A source subtask has a channel a counter; there are more counters than sources, to need fewer processes."""


def word_count(case: Case, words: int, options: Mapping[str, Any]) -> dict[str, float]:
    """Count `words` words (a multiple of 8) of made-up lines; its numbers, `ready_ms` among them.

    Raises:
        RuntimeError: another number of words reached the count.
    """
    from rayflink.connectors.discard import DiscardingSink
    from rayflink.connectors.generator import DataGeneratorSource
    from rayflink.datastream.environment import StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment(options)
    env.set_parallelism(case.counters)
    with starting_gun() as gun:
        made = HeldBack(DataGeneratorSource(Line(), words // _WORDS_A_LINE), gun.path)
        lines = env.from_source(made, None, "Lines").set_parallelism(case.sources)
        pairs = lines.flat_map(split).set_parallelism(case.sources)
        pairs.key_by(itemgetter(0)).sum(1).sink_to(DiscardingSink())
        result = gun.run(env, f"Word count {case.name}")
    source, count = result.vertices
    if count["numRecordsIn"] != words:
        raise RuntimeError(f"{case.name}: {count['numRecordsIn']} words were counted, {words} were made")
    numbers = shuffle_numbers(result.vertices, gun.fired)
    return {
        **numbers,
        "channels_a_source": case.counters,
        "calls_per_second_a_source": calls(source) / numbers["seconds"] / case.sources,
        "calls_per_second_a_counter": calls(count) / numbers["seconds"] / case.counters,
        "rows_a_call": words / max(calls(source), 1),
        "ready_ms": ready_ms(result.vertices),
    }


def table(cases: Mapping[str, Mapping[str, float]]) -> str:
    """Markdown: a line a case."""
    titles = ("sources x counters", "M rows/s", "calls/s a source", "calls/s a counter", "rows a call")
    names = ("m_rows_per_second", "calls_per_second_a_source", "calls_per_second_a_counter", "rows_a_call")
    rows = [(name, *(f"{numbers[column]:,.2f}" for column in names)) for name, numbers in cases.items()]
    return report.table(titles, rows)


def run(data_path: str | None, words: int = WORDS, **options: Any) -> dict[str, Any]:
    """Each case on a Ray with a CPU a slot, `words` words each; prints the table as well."""
    began = time.time()
    given = {"execution.target": "ray", **options}
    cases: dict[str, dict[str, float]] = {}
    ready = 0.0
    for case in dict.fromkeys((*PARALLELISM, *CHANNELS)):
        with bounded_ray(max(case.sources, case.counters)):
            numbers = word_count(case, words // _WORDS_A_LINE * _WORDS_A_LINE, given)
        ready = ready or numbers["ready_ms"] / 1000
        del numbers["ready_ms"]
        cases[case.name] = numbers
    print(table(cases))
    return {
        "rows": sum(numbers["rows"] for numbers in cases.values()),
        "seconds_total": time.time() - began,
        "seconds_startup": ready - began,
        "cases": cases,
        **flat(cases),
    }
