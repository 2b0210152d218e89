"""The options of `kafka` and `upsert-kafka`, and the checks that need nothing but them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from rayflink.common.options.option_types import DURATION

from ...errors import SqlError
from ...plan.changelog import Change
from ..contract import Option, OptionValues
from ..messages.format_options import ChosenFormat, choose_format
from ..messages.malformed_options import MALFORMED_OPTIONS
from ..option_values import one_of, typed, whole_from
from ..watermark_options import WATERMARK_OPTIONS
from .start_and_end import END_OPTIONS, START_OPTIONS

PROPERTIES: Final = "properties."
SERVERS: Final = "properties.bootstrap.servers"
GUARANTEES: Final = ("none", "at-least-once", "exactly-once")
PARTITIONERS: Final = ("default", "fixed", "round-robin")
FORMATS: Final = ("format", "key.format", "value.format")
"""The options that name a format."""


def names(text: str) -> tuple[str, ...]:
    """Return names with semicolons between.

    >>> names("a; b")
    ('a', 'b')

    Raises:
        ValueError: there is none.
    """
    parts = tuple(name.strip() for name in text.split(";") if name.strip())
    if not parts:
        raise ValueError("names with ; between")
    return parts


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"a regular expression ({error})") from error
    return text


def _include(text: str) -> str:
    return one_of("ALL", "EXCEPT_KEY")(text.upper())


def partitioner_name(text: str) -> str:
    """Return the name of a partitioner, or where a function of Python is: module.name or module:name.

    Raises:
        ValueError: it is neither.
    """
    if text not in PARTITIONERS and not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*[.:][A-Za-z_]\w*", text):
        raise ValueError(f"{', '.join(PARTITIONERS)}, or the path of a function, such as my_module.my_function")
    return text


_SHARED: Final[Mapping[str, Option]] = {
    SERVERS: Option(str, required=True, about="host:port of brokers"),
    "key.format": Option(str),
    "value.format": Option(str),
    "key.fields-prefix": Option(str, ""),
    "value.fields-include": Option(_include, "ALL"),
    "scan.parallelism": Option(whole_from(1)),
    "scan.topic-partition-discovery.interval": Option(typed(DURATION)),
    "sink.parallelism": Option(whole_from(1)),
    "sink.delivery-guarantee": Option(one_of(*GUARANTEES), "at-least-once"),
    "sink.transactional-id-prefix": Option(str),
    **END_OPTIONS,
    **WATERMARK_OPTIONS,
    **MALFORMED_OPTIONS,
}
KAFKA_OPTIONS: Final[Mapping[str, Option]] = {
    "topic": Option(names, (), about="one topic or more, with ; between"),
    "topic-pattern": Option(_pattern),
    "format": Option(str),
    "key.fields": Option(names),
    "sink.partitioner": Option(partitioner_name, "default"),
    **START_OPTIONS,
    **_SHARED,
}
UPSERT_OPTIONS: Final[Mapping[str, Option]] = {
    "topic": Option(names, required=True),
    "sink.buffer-flush.max-rows": Option(whole_from(0), 0),
    "sink.buffer-flush.interval": Option(typed(DURATION)),
    **_SHARED,
    "key.format": Option(str, required=True),
    "value.format": Option(str, required=True),
}


def format_prefixes(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return what the options of the formats of a table begin with, by its options as they are written.

    >>> format_prefixes({"format": "json", "key.format": "raw"})
    ('json.', 'key.raw.')
    """
    keys = [key for key in FORMATS if key in options]
    return tuple(f"{key.removesuffix('format')}{options[key]}." for key in keys)


def chosen_formats(
    table: str, options: OptionValues, raw_options: Mapping[str, str]
) -> tuple[ChosenFormat | None, ChosenFormat]:
    """Return the formats of keys and values; of keys None where messages have none that is read or written.

    Args:
        table: full name, for errors.
        options: of the connector, parsed.
        raw_options: of the formats, as they are written.

    Raises:
        SqlError: a format is missing, unknown or given twice, or one of its options is wrong.
    """
    both, value = options.get("format"), options["value.format"]
    if both is not None and value is not None:
        remedy = "'format' is that of values, too: leave one of them out"
        raise SqlError(f"{table} has both 'format' and 'value.format'", remedy)
    if both is None and value is None:
        raise SqlError(f"{table} has no option 'format'", "name the format of values, such as 'format' = 'json'")
    part = "" if value is None else "value."
    key = options["key.format"]
    keys = None if key is None else choose_format(table, key, raw_options, "key.")
    if keys is not None and keys.format.changes is not Change.INSERT:
        remedy = "take a format whose messages are rows, such as json, raw or csv"
        raise SqlError(f"{table} has 'key.format' = {key!r}, whose messages are changes", remedy)
    return keys, choose_format(table, str(value or both), raw_options, part)


def check_topics(table: str, options: OptionValues) -> None:
    """Check that topics are named in one way.

    Raises:
        SqlError: they are not named, or both by name and by pattern.
    """
    topics, pattern = options["topic"], options.get("topic-pattern")
    if topics and pattern is not None:
        raise SqlError(f"{table} has both 'topic' and 'topic-pattern'", "leave one of them out")
    if not topics and pattern is None:
        raise SqlError(f"{table} has no option 'topic'", "name a topic, several with ; between, or a 'topic-pattern'")


def check_guarantee(table: str, options: OptionValues) -> None:
    """Check that exactly-once has what it needs.

    Raises:
        SqlError: the prefix of its transactions is missing, or has no use.
    """
    guarantee, prefix = options["sink.delivery-guarantee"], options["sink.transactional-id-prefix"]
    if guarantee == "exactly-once" and not prefix:
        problem = f"{table} has 'sink.delivery-guarantee' = 'exactly-once' and no 'sink.transactional-id-prefix'"
        raise SqlError(problem, "give a prefix that no other job uses with these brokers")
    if guarantee != "exactly-once" and prefix:
        problem = f"{table} has 'sink.transactional-id-prefix', and 'sink.delivery-guarantee' is {guarantee!r}"
        raise SqlError(problem, "write 'sink.delivery-guarantee' = 'exactly-once', or leave the prefix out")


def client_properties(raw_options: Mapping[str, str], options: OptionValues) -> dict[str, str]:
    """Return the properties of the client, without the prefix of their options.

    Args:
        raw_options: those that are passed on, as they are written.
        options: of the connector, parsed.
    """
    own = {key.removeprefix(PROPERTIES): value for key, value in raw_options.items() if key.startswith(PROPERTIES)}
    return {"bootstrap.servers": options[SERVERS], **own}


__all__ = [
    "FORMATS",
    "KAFKA_OPTIONS",
    "PROPERTIES",
    "SERVERS",
    "UPSERT_OPTIONS",
    "check_guarantee",
    "check_topics",
    "chosen_formats",
    "client_properties",
    "format_prefixes",
    "names",
    "partitioner_name",
]
