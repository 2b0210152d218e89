"""Statistics of the newest values."""

from __future__ import annotations

import math
from collections import deque
from numbers import Real

from .metric import Metric

QUANTILES = {"p50": 0.5, "p75": 0.75, "p95": 0.95, "p98": 0.98, "p99": 0.99, "p999": 0.999}
"""Name -> fraction, of the quantiles that are reported."""


class Histogram(Metric):
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
        """Take in one value.

        Raises:
            TypeError: it is no number.
        """
        if not isinstance(value, Real):
            raise TypeError(f"a histogram takes numbers, found {value!r}")
        self._values.append(value)
        self._count += 1

    def get_count(self) -> int:
        """Return the number of values so far, remembered or not."""
        return self._count

    def quantile(self, fraction: float) -> float:
        """Return the value below which `fraction` in (0, 1] of the remembered ones lie, interpolated; NaN if none."""
        return _quantile(sorted(self._values), fraction)

    def statistics(self) -> dict[str, float]:
        """Return count, min, max, mean, stddev and p50 to p999; NaN for all but count where there are no values."""
        values = sorted(self._values)
        if not values:
            return {"count": self._count, **dict.fromkeys(("min", "max", "mean", "stddev", *QUANTILES), math.nan)}
        mean = math.fsum(values) / len(values)
        variance = math.fsum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)
        shape = {"min": values[0], "max": values[-1], "mean": mean, "stddev": math.sqrt(variance)}
        return {
            "count": self._count,
            **shape,
            **{name: _quantile(values, fraction) for name, fraction in QUANTILES.items()},
        }


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


__all__ = ["Histogram", "QUANTILES"]
