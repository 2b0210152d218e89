"""The formats of messages: how the rows of a table lie in the messages of a queue, one by one, and their options.

A format gives a schema that decodes whole batches of messages to columns, and one that encodes columns to messages.
Formats of files are in `formats`; most that have both forms share their options.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from rayflink.common.serialization import DeserializationSchema, SerializationSchema

from ...errors import SqlError
from ...plan.changelog import Change
from ...plan.logical import Schema
from ..contract import Option


class MessageFormat(ABC):
    """A format of messages."""

    name = ""
    """The name in the options `format`, `key.format` and `value.format`."""
    options: Mapping[str, Option] = {}
    """Option name without the format's prefix -> option."""
    changes = Change.INSERT
    """The kinds of change of the rows; more than INSERT for formats of change data capture."""
    topic_option = ""
    """An option whose default is the name of the topic with `-key` or `-value` behind it; "": there is none."""
    has_nested_projection = False
    """True if rows within rows can be decoded with some of their fields alone."""
    metadata: Mapping[str, str] = {}
    """Key of metadata inside a message -> its SQL type, such as `ingestion-timestamp` of `debezium-json`."""

    def check(self, options: Mapping[str, object]) -> None:  # noqa: B027
        """Check that the options go together.

        Raises:
            SqlError: they do not.
        """

    @abstractmethod
    def decoder(self, schema: Schema, names: Sequence[str], options: Mapping[str, object]) -> DeserializationSchema:
        """Return a schema whose `deserialize_batch` returns an `ArrowBatch` of some columns of the table, in order.

        The columns have the types of `schema`. A format whose rows are changes appends the column of row kinds
        (`rayflink.common.records.row_kinds`). Where messages and rows do not correspond one to one, the indices of the
        answer say which message a row comes from.

        Args:
            schema: the columns that the messages contain.
            names: those to decode; the others need not be parsed.
            options: the options of the format, parsed, by their names without prefix.

        Raises:
            SqlError: the format cannot represent a column.
        """

    def decoder_with_metadata(
        self, schema: Schema, names: Sequence[str], options: Mapping[str, object], metadata: Mapping[str, str]
    ) -> DeserializationSchema:
        """Return a schema as `decoder` does, for a table some of whose columns are metadata inside the messages.

        Args:
            schema: the columns of the rows in the messages, and those of metadata, with the types of `metadata`.
            names: the columns to decode, of both sorts, in the order that is wanted.
            options: the options of the format, parsed.
            metadata: name of a column -> key of `metadata`.

        Raises:
            SqlError: the format does not have such metadata, or cannot represent a column.
        """
        for name, key in metadata.items():
            problem = f"column {name!r} is metadata {key!r}, which {self.name!r} does not have"
            raise SqlError(problem, "its messages contain no metadata: make it a column of the rows, or leave it out")
        return self.decoder(schema, names, options)

    @abstractmethod
    def encoder(self, schema: Schema, options: Mapping[str, object]) -> SerializationSchema:
        """Return a schema whose `serialize_batch` returns one message for each row of an `ArrowBatch` of `schema`.

        A format whose rows are changes reads the column of row kinds at the end.

        Raises:
            SqlError: the format cannot represent a column, or only reads.
        """


__all__ = ["MessageFormat"]
