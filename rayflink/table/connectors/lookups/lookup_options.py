"""The options `lookup.*` of tables whose rows are found by key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rayflink.common.options.option_types import DURATION
from rayflink.connectors.lookup_cache import LookupCache

from ...errors import SqlError
from ..contract import Option, OptionValues
from ..option_values import one_of, typed, whole_from
from ..print_and_blackhole import truth

_PARTIAL = "lookup.partial-cache."
_CACHE = ("max-rows", "expire-after-write", "expire-after-access")
RELOAD_OPTIONS: Mapping[str, Option] = {
    "lookup.full-cache.reload-strategy": Option(one_of("PERIODIC"), "PERIODIC"),
    "lookup.full-cache.periodic-reload.interval": Option(typed(DURATION)),
    "lookup.full-cache.periodic-reload.schedule-mode": Option(one_of("FIXED_DELAY", "FIXED_RATE"), "FIXED_DELAY"),
}
"""When a table in memory is read again."""
PARTIAL_OPTIONS: Mapping[str, Option] = {
    "lookup.partial-cache.max-rows": Option(whole_from(1)),
    "lookup.partial-cache.expire-after-write": Option(typed(DURATION)),
    "lookup.partial-cache.expire-after-access": Option(typed(DURATION)),
    "lookup.partial-cache.cache-missing-key": Option(truth, True),
    "lookup.max-retries": Option(whole_from(0), 3),
}
"""The limits of rows that are remembered by key, and repetitions of calls that failed."""


@dataclass(frozen=True)
class LookupOptions:
    """The options of a table.

    Args:
        cache: NONE, PARTIAL or FULL.
        limits: of a PARTIAL cache.
        reload_ms: pause between two readings of a FULL cache; None: it is read once.
        is_fixed_rate: the pause is between the begins of readings.
        max_retries: repetitions of a call that failed as the table was away.
    """

    cache: str = "NONE"
    limits: LookupCache | None = None
    reload_ms: int | None = None
    is_fixed_rate: bool = False
    max_retries: int = 3


def check_lookup_options(table: str, values: OptionValues) -> None:
    """Check that the options of a table go together.

    Raises:
        SqlError: they do not.
    """
    cache = values.get("lookup.cache", "FULL")
    limits = [f"{_PARTIAL}{name}" for name in _CACHE]
    written = [name for name in limits if values.get(name) is not None]
    if cache == "PARTIAL" and not written:
        problem = f"{table} has 'lookup.cache' = 'PARTIAL' without a limit"
        raise SqlError(problem, f"give one of {', '.join(limits)}")
    interval = values.get("lookup.full-cache.periodic-reload.interval")
    for name in (*limits, "lookup.full-cache.periodic-reload.interval"):
        value = values.get(name)
        if value is not None and not isinstance(value, int) and value.to_millis() <= 0:
            raise SqlError(f"option {name!r} of {table} is {value.to_millis()} ms", "write a duration above 0")
    if cache != "PARTIAL" and written:
        problem = f"{table} has {written[0]!r} and 'lookup.cache' = {cache!r}"
        raise SqlError(problem, "set 'lookup.cache' = 'PARTIAL', or leave the limit out")
    if cache != "FULL" and interval is not None:
        problem = f"{table} has 'lookup.full-cache.periodic-reload.interval' and 'lookup.cache' = {cache!r}"
        raise SqlError(problem, "set 'lookup.cache' = 'FULL', or leave the interval out")


def lookup_options(values: OptionValues) -> LookupOptions:
    """Return the options of a table, which were checked."""
    cache = values.get("lookup.cache", "FULL")
    limits = None
    if cache == "PARTIAL":
        most, written, used, misses = (values[f"{_PARTIAL}{name}"] for name in (*_CACHE, "cache-missing-key"))
        limits = LookupCache(most, written, used, misses)
    interval = values.get("lookup.full-cache.periodic-reload.interval")
    return LookupOptions(
        cache, limits, None if interval is None else interval.to_millis(),
        values.get("lookup.full-cache.periodic-reload.schedule-mode") == "FIXED_RATE",
        values.get("lookup.max-retries", 3),
    )  # fmt: skip


__all__ = ["PARTIAL_OPTIONS", "RELOAD_OPTIONS", "LookupOptions", "check_lookup_options", "lookup_options"]
