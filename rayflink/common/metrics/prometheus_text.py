"""Samples as Prometheus scrapes them: its text format 0.0.4, and OpenMetrics 1.0.

Source: prometheus.io/docs/instrumenting/exposition_formats; OpenMetrics specification, "Text format".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from .prometheus import Sample

__all__ = ["OMITTED", "TextFormat", "accepted_format", "exposition"]

OMITTED = "rayflink_metrics_omitted_samples"
"""The gauge of samples that an exposition has no room for."""
_END = b"# EOF\n"
_ROOM = 512
"""Bytes that are left for the gauge of omitted samples, and the end."""
_VALUE_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_HELP_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})


class TextFormat(Enum):
    """The forms of an exposition; the value is its media type."""

    PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
    OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def accepted_format(accept: str) -> TextFormat:
    """Return the form in which a scraper prefers its answer, by its header `Accept`.

    >>> accepted_format("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5").name
    'OPEN_METRICS'
    >>> accepted_format("text/plain, application/openmetrics-text;q=0.2").name, accepted_format("*/*").name
    ('PROMETHEUS', 'PROMETHEUS')
    """
    weights = {TextFormat.PROMETHEUS: 0.0, TextFormat.OPEN_METRICS: 0.0}
    for part in accept.lower().split(","):
        media, *parameters = (word.strip() for word in part.split(";"))
        for text_format in TextFormat:
            if media == text_format.value.partition(";")[0]:
                weights[text_format] = max(weights[text_format], _weight(parameters))
    is_open = weights[TextFormat.OPEN_METRICS] > weights[TextFormat.PROMETHEUS]
    return TextFormat.OPEN_METRICS if is_open else TextFormat.PROMETHEUS


def _weight(parameters: Iterable[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:  # no weight that HTTP has
                return 0.0
    return 1.0


@dataclass
class _Family:
    """The lines of one name, which stand together: series -> line."""

    type: str
    help: str
    lines: dict[str, bytes] = field(default_factory=dict)

    def add(self, series: str, value: float) -> None:
        """Add a series; one that is there already gets the newer value."""
        self.lines[series] = f"{series} {_value(value)}\n".encode("utf-8", "replace")


class _WrittenLabels:
    """Labels as text; those of one task are one object for all its metrics, and are written once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Mapping[str, str], str]] = {}

    def of(self, labels: Mapping[str, str]) -> str:
        """Return the text of labels, which do not change meanwhile."""
        known = self._known.get(id(labels))
        if known is None:
            known = self._known[id(labels)] = labels, _labels(labels)
        return known[1]


def exposition(samples: Iterable[Sample], text_format: TextFormat, most_bytes: int) -> bytes:
    """Return samples as text, families in the order in which they come first.

    Of two samples of one name and the same labels, in one order, the later one counts. A family whose samples have
    another type is written under the type that comes first. Samples beyond `most_bytes` are left out and counted in
    `OMITTED`.

    >>> print(exposition([Sample("up", {"a": 'b"'}, 1.0, "is up")], TextFormat.PROMETHEUS, 1 << 20).decode(), end="")
    # HELP up is up
    # TYPE up gauge
    up{a="b\\""} 1
    # HELP rayflink_metrics_omitted_samples Samples left out, as the answer would be too long
    # TYPE rayflink_metrics_omitted_samples gauge
    rayflink_metrics_omitted_samples 0
    """
    families: dict[str, _Family] = {}
    labels = _WrittenLabels()
    for sample in samples:
        name = sample.family or sample.name
        family = families.get(name)
        if family is None:
            family = families[name] = _Family(sample.type, sample.help)
        family.add(f"{sample.name}{labels.of(sample.labels)}", sample.value)
    parts, size, omitted = [], _ROOM, 0
    for name, family in families.items():
        head, lines = _head(name, family, text_format), list(family.lines.values())
        room = most_bytes - size - len(head)
        fitting = _fitting(lines, room)
        omitted += len(lines) - fitting
        if fitting:
            parts += [head, *lines[:fitting]]
            size += len(head) + sum(map(len, lines[:fitting]))
    rest = _Family("gauge", "Samples left out, as the answer would be too long")
    rest.add(OMITTED, omitted)
    parts += [_head(OMITTED, rest, text_format), *rest.lines.values()]
    return b"".join([*parts, _END] if text_format is TextFormat.OPEN_METRICS else parts)


def _fitting(lines: list[bytes], room: int) -> int:
    """Return how many lines, from the first on, have no more than `room` bytes."""
    for index, line in enumerate(lines):
        room -= len(line)
        if room < 0:
            return index
    return len(lines)


def _head(name: str, family: _Family, text_format: TextFormat) -> bytes:
    if text_format is TextFormat.OPEN_METRICS and family.type == "counter":
        name = name.removesuffix("_total")
    help = family.help.translate(_VALUE_ESCAPES if text_format is TextFormat.OPEN_METRICS else _HELP_ESCAPES)
    return f"# HELP {name} {help}\n# TYPE {name} {family.type}\n".encode()


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{value.translate(_VALUE_ESCAPES)}"' for name, value in labels.items()) + "}"


def _value(value: float) -> str:
    """Return a number in decimals, whole numbers without a point.

    >>> _value(3.0), _value(0.25), _value(1_790_000_000_123)
    ('3', '0.25', '1790000000123')
    """
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 1 << 53 else repr(number)
