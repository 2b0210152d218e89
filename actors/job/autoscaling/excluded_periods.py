"""The times at which a job is not rescaled: cron expressions in Quartz's form, and hours of a day.

Source: Quartz CronExpression, DailyCalendar; apache/flink-kubernetes-operator CalendarUtils.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rayflink.common.errors import ConfigError
from rayflink.common.options.autoscaler_options import EXCLUDED_PERIODS

_MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
_DAYS = "SUN MON TUE WED THU FRI SAT".split()
_FIELDS: tuple[tuple[str, int, int, Sequence[str]], ...] = (
    ("second", 0, 59, ()),
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 1, 7, _DAYS),
    ("year", 1970, 2199, ()),
)
_TIME = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")


@dataclass(frozen=True, slots=True)
class CronFields:
    """The values that each field of a cron expression takes: second to day of the week, 1 is Sunday, and the year."""

    values: tuple[frozenset[int], ...]

    def contains(self, moment: datetime) -> bool:
        """Return whether a moment satisfies the expression."""
        weekday = moment.isoweekday() % 7 + 1
        parts = (moment.second, moment.minute, moment.hour, moment.day, moment.month, weekday, moment.year)
        return all(part in allowed for part, allowed in zip(parts, self.values, strict=True))


@dataclass(frozen=True, slots=True)
class DailyHours:
    """The seconds of a day from `start` to `end`, both included."""

    start: int
    end: int

    def contains(self, moment: datetime) -> bool:
        """Return whether the time of day is in the range."""
        return self.start <= moment.hour * 3600 + moment.minute * 60 + moment.second <= self.end


@dataclass(frozen=True, slots=True)
class ExcludedPeriod:
    """A period of `job.autoscaler.excluded.periods`.

    >>> mornings = ExcludedPeriod.parse("9:30-10:50:20 && * * * ? * MON-FRI")
    >>> mornings.contains(datetime(2026, 11, 30, 10, 50, 20)), mornings.contains(datetime(2026, 11, 29, 10, 0))
    (True, False)

    Args:
        expression: as the option has it.
        parts: a moment is in the period if it is in all of them.
    """

    expression: str
    parts: tuple[CronFields | DailyHours, ...]

    @classmethod
    def parse(cls, expression: str) -> ExcludedPeriod:
        """Parse one period.

        Raises:
            ConfigError: it is neither a cron expression nor hours of a day, nor one of each.
        """
        parts = tuple(_part(expression, part.strip()) for part in expression.split("&&"))
        if len({type(part) for part in parts}) < len(parts):
            raise _refused(expression, "one cron expression and one range of hours, joined by &&")
        return cls(expression, parts)

    def contains(self, moment: datetime) -> bool:
        """Return whether a moment is in the period."""
        return all(part.contains(moment) for part in self.parts)


def period_at(periods: Sequence[ExcludedPeriod], now_ms: int) -> str:
    """Return the first period that contains a time, as it was written; "" where none does."""
    if not periods:
        return ""
    moment = datetime.fromtimestamp(now_ms / 1000)
    return next((period.expression for period in periods if period.contains(moment)), "")


def _refused(expression: str, wanted: str) -> ConfigError:
    example = "write for example `* * 9-11 * * ?`, or `9:30-10:50 && * * * ? * MON-FRI`"
    return ConfigError(EXCLUDED_PERIODS.key, expression, wanted, example)


def _part(expression: str, part: str) -> CronFields | DailyHours:
    start, dash, end = part.partition("-")
    if dash and (begins := _TIME.fullmatch(start.strip())) and (ends := _TIME.fullmatch(end.strip())):
        hours = DailyHours(_seconds(begins), _seconds(ends))
        if hours.start > hours.end or hours.end >= 86_400:
            raise _refused(expression, "a range of hours within one day")
        return hours
    fields = part.split()
    if len(fields) not in (6, 7):
        raise _refused(expression, "a cron expression of 6 or 7 fields, or a range of hours")
    fields += ["*"] * (7 - len(fields))
    return CronFields(tuple(_values(expression, *pair) for pair in zip(fields, _FIELDS, strict=True)))


def _seconds(match: re.Match[str]) -> int:
    hours, minutes, seconds = (int(group or 0) for group in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def _values(expression: str, field: str, known: tuple[str, int, int, Sequence[str]]) -> frozenset[int]:
    title, least, most, names = known
    values: set[int] = set()
    for item in field.upper().split(","):
        match = re.fullmatch(r"(\*|\?|(\w+)(?:-(\w+))?)(?:/(\d+))?", item)
        if match is None:
            raise _refused(expression, f"values, ranges or steps as the {title}")
        whole, first, last, step = match.groups()
        start, end = least, most
        if whole not in ("*", "?"):
            start = _number(expression, first, title, least, names)
            end = start if last is None and step is None else end
            end = _number(expression, last, title, least, names) if last is not None else end
        if not (least <= start <= most and least <= end <= most) or step == "0":
            raise _refused(expression, f"a {title} from {least} to {most}")
        length = most - least + 1
        span = range(0, (end - start) % length + 1, int(step or 1))
        values |= {least + (start - least + offset) % length for offset in span}
    return frozenset(values)


def _number(expression: str, written: str, title: str, least: int, names: Sequence[str]) -> int:
    if written in names:
        return names.index(written) + least
    if not written.isdigit():
        raise _refused(expression, f"a number as the {title}")
    return int(written)


__all__ = ["ExcludedPeriod", "period_at"]
