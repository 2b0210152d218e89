"""The options `malformed-records` and `dead-letter.topic`: what a table does with messages that cannot be decoded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rayflink.common.connector_base.malformed_records import MalformedRecord, MalformedRecords
from rayflink.common.output_tag import OutputTag

from ...errors import SqlError
from ..contract import Option
from ..option_values import one_of

FAIL, SKIP, DEAD_LETTER = "fail", "skip", "dead-letter"
MALFORMED_OPTIONS: Final[Mapping[str, Option]] = {
    "malformed-records": Option(one_of(FAIL, SKIP, DEAD_LETTER), FAIL),
    "dead-letter.topic": Option(str, about="takes the messages as they came, with headers that say what is wrong"),
}
"""The options that all connectors of messages have."""

DEAD_LETTERS: Final[OutputTag[MalformedRecord]] = OutputTag("malformed-records")
"""The side output of a source for messages on their way to the dead-letter topic."""


def check_malformed_options(table: str, options: Mapping[str, object]) -> None:
    """Check that the two options go together.

    Args:
        table: full name, for errors.
        options: of the connector, parsed.

    Raises:
        SqlError: a topic is missing or has no use.
    """
    asked, topic = options["malformed-records"], options["dead-letter.topic"]
    if asked == DEAD_LETTER and not topic:
        problem = f"{table} has 'malformed-records' = 'dead-letter' and no option 'dead-letter.topic'"
        raise SqlError(problem, "name the topic for messages that cannot be decoded")
    if asked != DEAD_LETTER and topic:
        problem = f"{table} has 'dead-letter.topic', and 'malformed-records' is {asked!r}"
        raise SqlError(problem, "write 'malformed-records' = 'dead-letter', or leave the topic out")


def malformed_policy(asked: str) -> MalformedRecords:
    """Return the policy of the option `malformed-records`; dead letters go to the side output `DEAD_LETTERS`."""
    if asked == SKIP:
        return MalformedRecords.skip()
    return MalformedRecords.side_output(DEAD_LETTERS) if asked == DEAD_LETTER else MalformedRecords.fail()


__all__ = [
    "DEAD_LETTER",
    "DEAD_LETTERS",
    "FAIL",
    "MALFORMED_OPTIONS",
    "SKIP",
    "check_malformed_options",
    "malformed_policy",
]
