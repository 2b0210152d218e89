"""Programs the graph tests share."""

from __future__ import annotations

from rayflink.graph.partitioners import KeyGroup
from rayflink.graph.transformations import OneInput, Partition, Sink, Source, Transformation

WINDOW = "Window(TumblingProcessingTimeWindows(5000), ProcessingTimeTrigger, SumAggregator, PassThroughWindowFunction)"


def operator() -> object:
    """Stands for an operator factory; graphs never call it."""
    return object()


def first(record: tuple[object, ...]) -> object:
    """Key selector."""
    return record[0]


def source(name: str = "Socket Stream", **attributes: object) -> Source:
    return Source(operator, name=name, call_site="job.py:1 in main", **attributes)  # type: ignore[arg-type]


def step(after: Transformation, name: str = "Map", **attributes: object) -> OneInput:
    return OneInput(after, operator, name=name, call_site="job.py:2 in main", **attributes)  # type: ignore[arg-type]


def sink(after: Transformation, name: str = "Print to Std. Out", **attributes: object) -> Sink:
    return Sink(after, operator, name=name, call_site="job.py:9 in main", **attributes)  # type: ignore[arg-type]


def key_by(after: Transformation) -> Partition:
    return Partition(after, KeyGroup(first))


def socket_window_count(window_parallelism: int = 1) -> Sink:
    """Source, flat map and map; a keyed window; a sink at parallelism 1."""
    words = step(step(source(), "Flat Map"), "Map")
    return sink(step(key_by(words), WINDOW, parallelism=window_parallelism), parallelism=1)
