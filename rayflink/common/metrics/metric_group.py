"""Metrics that tasks and functions count: counters, gauges, meters, histograms, in named groups.

Nothing here reads a clock: a count costs an addition, and rates come into being when a report passes the time in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from ..text_output.logs import get_logger
from .histogram import Histogram
from .metric import Metric

__all__ = ["Counter", "Distribution", "Gauge", "Histogram", "Meter", "MeterView", "Metric", "MetricGroup"]

log = get_logger(__name__)


class Counter(Metric):
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
        """Return the number now."""
        return self.count


class Gauge(Metric):
    """A value read when it is reported."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read

    def get_value(self) -> Any:
        """Return the value now; whatever the function raises goes through."""
        return self._read()


class Meter(Metric):
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
        """Return the number of all events so far."""
        return self._count

    def get_rate(self) -> float:
        """Return events a second as of the last update; 0 before the second."""
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


class MeterView(Meter):
    """The rate of a counter that others count in; reported as one number, under its name.

    Args:
        counter: grows.
        time_span_in_seconds: at least 1.
    Source: apache/flink MeterView.
    """

    def __init__(self, counter: Counter, time_span_in_seconds: int = 60) -> None:
        super().__init__(time_span_in_seconds)
        self._counter = counter

    def update(self, now_ms: int) -> None:
        """Take a sample of the counter at `now_ms`."""
        self._count = self._counter.count
        super().update(now_ms)


class Distribution(Histogram):
    """PyFlink's name for a histogram."""


_M = TypeVar("_M", Counter, Gauge, Meter, MeterView, Distribution, Histogram)


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
        self._scope: tuple[str, str] | None = None
        self._logical: tuple[str, ...] = (name,) if name else ()
        self._failing: set[str] = set()
        self._closed = False

    def identify(self, scope: str, delimiter: str, logical: tuple[str, ...], variables: Mapping[str, str]) -> None:
        """Say what stands for the groups down to this one: in identifiers `scope`, in Prometheus `logical`."""
        self._scope, self._logical, self._variables = (scope, delimiter), logical, dict(variables)

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """Return the group of that name, made where it is missing; `extra`: the group ``name.extra`` and a variable."""
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = MetricGroup(name, self)
        if extra is None:
            return group
        value = group.add_group(extra)
        value._variables[name] = extra
        value._logical = ()
        return value

    def counter(self, name: str, counter: Counter | None = None) -> Counter:
        """Register a counter.

        Args:
            counter: one that exists already; None: a new one.
        """
        return self._register(name, counter or Counter())

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

    def meter_view(self, name: str, counter: Counter, time_span_in_seconds: int = 60) -> MeterView:
        """Register the rate of a counter."""
        return self._register(name, MeterView(counter, time_span_in_seconds))

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
            metric_id = self.get_metric_identifier(name)
            log.warning("metric not reported: its name is taken by %s", taken, extra={"metric": metric_id})
            return metric
        self._metrics[name] = metric
        return metric

    def get_scope_components(self) -> list[str]:
        """Return the names of the groups from the root to this one."""
        above = [] if self._parent is None else self._parent.get_scope_components()
        return [*above, self.name] if self.name else above

    def get_all_variables(self) -> dict[str, str]:
        """Return the variables of this group and those above it, as ``add_group(key, value)`` made them."""
        above = {} if self._parent is None else self._parent.get_all_variables()
        return {**above, **self._variables}

    def get_metric_identifier(self, name: str) -> str:
        """Return the scope of this group as `metrics.scope.*` has it, and the name."""
        scope, delimiter = self._scoped()
        return f"{scope}{delimiter}{name}" if scope else name

    def _scoped(self) -> tuple[str, str]:
        if self._scope is not None:
            return self._scope
        above, delimiter = ("", ".") if self._parent is None else self._parent._scoped()
        return (f"{above}{delimiter}{self.name}" if above and self.name else above or self.name), delimiter

    def get_logical_scope(self) -> tuple[str, ...]:
        """Return the names of the groups down to this one, without values of variables; for names in Prometheus."""
        above = () if self._scope is not None or self._parent is None else self._parent.get_logical_scope()
        return (*above, *self._logical)

    def variable_groups(self, prefix: str = "") -> dict[str, tuple[str, str]]:
        """Return the groups below this one that are values of a variable: dotted name -> (variable, value)."""
        variables: dict[str, tuple[str, str]] = {}
        for name, group in list(self._groups.items()):
            if prefix or group._scope is None:
                if self.name in group._variables and not group._logical:
                    variables[f"{prefix}{name}"] = self.name, name
                variables.update(group.variable_groups(f"{prefix}{name}."))
        return variables

    def walk(self) -> Iterator[tuple[MetricGroup, str, Metric]]:
        """Yield each metric of this group and those below, with its group and its name there."""
        for name, metric in list(self._metrics.items()):
            yield self, name, metric
        for group in list(self._groups.values()):
            yield from group.walk()

    def _items(self, prefix: str) -> Iterator[tuple[str, Metric]]:
        for name, metric in list(self._metrics.items()):
            yield prefix + name, metric
        for name, group in list(self._groups.items()):
            if prefix or group._scope is None:
                yield from group._items(f"{prefix}{name}.")

    def snapshot(self, now_ms: int | None = None) -> dict[str, Any]:
        """Return all metrics below this group as plain values, by dotted name from this group on.

        A meter gives ``<name>.count`` and ``<name>.rate``, updated when `now_ms` is passed; a histogram gives
        ``<name>.count``, ``<name>.min`` and so on. What cannot be read is left out and logged once. Groups just below
        with a scope of their own, as a task's operators have, are left out as well.
        """
        report: dict[str, Any] = {}
        for name, metric in self._items(""):
            if isinstance(metric, Counter):
                report[name] = metric.count
            elif isinstance(metric, MeterView):
                if now_ms is not None:
                    metric.update(now_ms)
                report[name] = metric.get_rate()
            elif isinstance(metric, Meter):
                if now_ms is not None:
                    metric.update(now_ms)
                report[f"{name}.count"], report[f"{name}.rate"] = metric.get_count(), metric.get_rate()
            elif isinstance(metric, Histogram):
                statistics = self._read(name, metric.statistics) or {}
                report.update({f"{name}.{part}": number for part, number in statistics.items()})
            elif isinstance(metric, Gauge):
                value = self._read(name, metric.get_value)
                if name not in self._failing:
                    report[name] = value
        return report

    def _read(self, name: str, read: Callable[[], Any]) -> Any:
        try:
            value = read()
        except Exception as error:  # a user's gauge may raise anything; the other metrics are still reported
            if name not in self._failing:  # said once, not with every report
                self._failing.add(name)
                log.warning("metric not reported: %r", error, extra={"metric": self.get_metric_identifier(name)})
            return None
        self._failing.discard(name)
        return value

    def close(self) -> None:
        """Forget all metrics and groups below; what is registered later counts but is not reported."""
        self._closed = True
        for group in list(self._groups.values()):
            group.close()
        self._metrics.clear()
        self._groups.clear()
        if self._parent is not None and self._parent._groups.get(self.name) is self:
            del self._parent._groups[self.name]
