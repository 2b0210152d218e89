"""What tasks and functions count: counters, gauges, meters, histograms, in named groups.

Nothing here reads a clock: a count costs an addition, and rates come into being when a report passes the time in.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from .logs import get_logger

__all__ = ["Counter", "Distribution", "Gauge", "Histogram", "Meter", "Metric", "MetricGroup"]

log = get_logger(__name__)


class Counter:
    """A number that goes up and down."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def inc(self, n: int = 1) -> None:
        """Add `n`."""
        self.count += n

    def dec(self, n: int = 1) -> None:
        """Take off `n`."""
        self.count -= n

    def get_count(self) -> int:
        """The number now."""
        return self.count


class Gauge:
    """A value read when it is reported."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read

    def get_value(self) -> Any:
        """The value now; whatever the function raises goes through."""
        return self._read()


class Meter:
    """Events a second over the last `time_span_in_seconds`, as of the last `update`.

    Args:
        time_span_in_seconds: at least 1.
    Source: apache/flink MeterView.
    """

    def __init__(self, time_span_in_seconds: int = 60) -> None:
        if time_span_in_seconds < 1:
            raise ValueError(f"a meter needs a time span of at least 1 second, found {time_span_in_seconds}")
        self._span_ms = time_span_in_seconds * 1000
        self._count = 0
        self._samples: deque[tuple[int, int]] = deque(maxlen=time_span_in_seconds + 1)
        self._rate = 0.0

    def mark_event(self, value: int = 1) -> None:
        """Count `value` events."""
        self._count += value

    def get_count(self) -> int:
        """All events so far."""
        return self._count

    def get_rate(self) -> float:
        """Events a second as of the last update; 0 before the second."""
        return self._rate

    def update(self, now_ms: int) -> None:
        """Take a sample at `now_ms`; at most one a second is kept."""
        samples = self._samples
        while len(samples) > 1 and samples[1][0] <= now_ms - self._span_ms:
            samples.popleft()
        if samples and now_ms > samples[0][0]:
            since_ms, before = samples[0]
            self._rate = (self._count - before) * 1000 / (now_ms - since_ms)
        if not samples or now_ms - samples[-1][0] >= 1000:
            samples.append((now_ms, self._count))


class Histogram:
    """Statistics of the last `size` values: bounded and reproducible, as nothing is sampled by chance.

    Args:
        size: values remembered, at least 1.
    Source: apache/flink DescriptiveStatisticsHistogram.
    """

    def __init__(self, size: int = 128) -> None:
        if size < 1:
            raise ValueError(f"a histogram needs to remember at least 1 value, found {size}")
        self._values: deque[float] = deque(maxlen=size)
        self._count = 0

    def update(self, value: float) -> None:
        """Take in one value."""
        self._values.append(value)
        self._count += 1

    def get_count(self) -> int:
        """All values so far, remembered or not."""
        return self._count

    def quantile(self, fraction: float) -> float:
        """The value below which `fraction` in (0, 1] of the remembered ones lie, interpolated; NaN without values."""
        return _quantile(sorted(self._values), fraction)

    def statistics(self) -> dict[str, float]:
        """count, min, max, mean, stddev and p50 to p999; NaN for all but count where there are no values."""
        values = sorted(self._values)
        if not values:
            return {"count": self._count, **dict.fromkeys(("min", "max", "mean", "stddev", *_QUANTILES), math.nan)}
        mean = math.fsum(values) / len(values)
        variance = math.fsum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)
        shape = {"min": values[0], "max": values[-1], "mean": mean, "stddev": math.sqrt(variance)}
        return {"count": self._count, **shape, **{name: _quantile(values, at) for name, at in _QUANTILES.items()}}


class Distribution(Histogram):
    """PyFlink's name for a histogram."""


_QUANTILES = {"p50": 0.5, "p75": 0.75, "p95": 0.95, "p98": 0.98, "p99": 0.99, "p999": 0.999}


def _quantile(ordered: list[float], fraction: float) -> float:
    if not 0 < fraction <= 1:
        raise ValueError(f"a quantile must be in (0, 1], found {fraction}")
    if not ordered:
        return math.nan
    position = fraction * (len(ordered) + 1)
    below = math.floor(position)
    if below < 1:
        return ordered[0]
    if below >= len(ordered):
        return ordered[-1]
    return ordered[below - 1] + (position - below) * (ordered[below] - ordered[below - 1])


Metric = Counter | Gauge | Meter | Histogram
_M = TypeVar("_M", Counter, Gauge, Meter, Distribution, Histogram)


class MetricGroup:
    """A named place for metrics and further groups, with PyFlink's calls.

    A name taken by a metric of the same kind gives that metric again, so that a function may register in every
    ``open()``; a name taken by another kind is logged, and the new metric counts but is not reported. A gauge takes
    the place of one of the same name.
    """

    def __init__(self, name: str = "", parent: MetricGroup | None = None) -> None:
        self.name = name
        self._parent = parent
        self._metrics: dict[str, Metric] = {}
        self._groups: dict[str, MetricGroup] = {}
        self._variables: dict[str, str] = {}
        self._closed = False

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """The group of that name, made where it is missing; with `extra` the group ``name.extra`` and a variable."""
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = MetricGroup(name, self)
        if extra is None:
            return group
        value = group.add_group(extra)
        value._variables[name] = extra
        return value

    def counter(self, name: str) -> Counter:
        """Register a counter."""
        return self._register(name, Counter())

    def gauge(self, name: str, obj: Callable[[], Any]) -> None:
        """Register a function that gives the value."""
        if isinstance(self._metrics.get(name), Gauge):
            del self._metrics[name]
        self._register(name, Gauge(obj))

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """Register a meter."""
        return self._register(name, Meter(time_span_in_seconds))

    def distribution(self, name: str) -> Distribution:
        """Register a distribution: a histogram of the last 128 values."""
        return self._register(name, Distribution())

    def histogram(self, name: str, size: int = 128) -> Histogram:
        """Register a histogram of the last `size` values."""
        return self._register(name, Histogram(size))

    def _register(self, name: str, metric: _M) -> _M:
        if not name:
            raise ValueError("a metric needs a name that is not empty")
        if self._closed:
            return metric
        there = self._metrics.get(name)
        if type(there) is type(metric):
            return there
        if there is not None or name in self._groups:
            taken = "a group" if there is None else f"a {type(there).__name__}"
            log.warning("metric not reported: its name is taken by %s", taken, extra={"metric": self._identifier(name)})
            return metric
        self._metrics[name] = metric
        return metric

    def get_scope_components(self) -> list[str]:
        """Names of the groups from the root to this one."""
        above = [] if self._parent is None else self._parent.get_scope_components()
        return [*above, self.name] if self.name else above

    def get_all_variables(self) -> dict[str, str]:
        """Variables of this group and those above it, as ``add_group(key, value)`` made them."""
        above = {} if self._parent is None else self._parent.get_all_variables()
        return {**above, **self._variables}

    def _identifier(self, name: str) -> str:
        return ".".join([*self.get_scope_components(), name])

    def _items(self, prefix: str) -> Iterator[tuple[str, Metric]]:
        for name, metric in list(self._metrics.items()):
            yield prefix + name, metric
        for name, group in list(self._groups.items()):
            yield from group._items(f"{prefix}{name}.")

    def snapshot(self, now_ms: int | None = None) -> dict[str, Any]:
        """All metrics below this group as plain values, by dotted name from this group on.

        A meter gives ``<name>.count`` and ``<name>.rate``, updated when `now_ms` is passed; a histogram gives
        ``<name>.count``, ``<name>.min`` and so on. A gauge that raises is left out and logged.
        """
        report: dict[str, Any] = {}
        for name, metric in self._items(""):
            if isinstance(metric, Counter):
                report[name] = metric.count
            elif isinstance(metric, Meter):
                if now_ms is not None:
                    metric.update(now_ms)
                report[f"{name}.count"], report[f"{name}.rate"] = metric.get_count(), metric.get_rate()
            elif isinstance(metric, Histogram):
                report.update({f"{name}.{part}": number for part, number in metric.statistics().items()})
            else:
                self._report_gauge(report, name, metric)
        return report

    def _report_gauge(self, report: dict[str, Any], name: str, gauge: Gauge) -> None:
        try:
            report[name] = gauge.get_value()
        except Exception as error:  # a user's gauge may raise anything; the other metrics are still reported
            log.warning("gauge not reported: %r", error, extra={"metric": self._identifier(name)})

    def close(self) -> None:
        """Forget all metrics and groups below; what is registered later counts but is not reported."""
        self._closed = True
        for group in list(self._groups.values()):
            group.close()
        self._metrics.clear()
        self._groups.clear()
        if self._parent is not None and self._parent._groups.get(self.name) is self:
            del self._parent._groups[self.name]
