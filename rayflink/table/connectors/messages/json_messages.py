"""`json`: one JSON object a message, as Flink's JSON format reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rayflink.common.errors import shorten
from rayflink.common.metrics.metric_group import Counter, MetricGroup
from rayflink.common.metrics.metric_names import NUM_RECORDS_IN_ERRORS
from rayflink.common.records.batches import ArrowBatch, Batch
from rayflink.common.serialization import DeserializationSchema

from ...plan.logical import Schema
from ..formats import Json, column_named, refuse_maps
from ..json_blocks import JsonBlocks
from ..json_values import BadValue
from .column_schemas import ColumnDecoder, ColumnEncoder
from .contract import MessageFormat

if TYPE_CHECKING:
    import pyarrow

    from ..json_strings import JsonColumns


class JsonMessages(MessageFormat):
    """One JSON object a message, or an array of objects, each of which is a row."""

    name = "json"
    options = Json.options
    has_nested_projection = True

    def check(self, options: Mapping[str, object]) -> None:
        Json().check(options)

    def decoder(self, schema: Schema, names: Sequence[str], options: Mapping[str, object]) -> DeserializationSchema:
        refuse_maps(schema)
        return JsonDecoder(
            tuple(column_named(schema, name) for name in names),
            options["timestamp-format.standard"] == "ISO-8601",
            bool(options["fail-on-missing-field"]),
            bool(options["ignore-parse-errors"]),
        )

    def encoder(self, schema: Schema, options: Mapping[str, object]) -> JsonEncoder:
        return JsonEncoder(Json().columns(schema, options))


class JsonDecoder(ColumnDecoder):
    """Decodes JSON objects to columns.

    Args:
        schema: the columns to decode.
        iso: times are written as 2020-01-02T03:04:05, instead of with a blank.
        fails_on_missing: a missing field is an error, instead of NULL.
        skips: messages that are no JSON have no rows, values of other types become NULL, and both are counted.
        errors: the counter; None: nothing is counted.
    """

    def __init__(
        self,
        schema: Schema,
        iso: bool = False,
        fails_on_missing: bool = False,
        skips: bool = False,
        errors: Counter | None = None,
    ) -> None:
        self._settings = schema, iso, fails_on_missing, skips
        self._skips, self._errors = skips, errors
        self._blocks: JsonBlocks | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return JsonDecoder, self._settings

    def counting(self, metrics: MetricGroup) -> DeserializationSchema:
        return JsonDecoder(*self._settings, metrics.counter(NUM_RECORDS_IN_ERRORS)) if self._skips else self

    def deserialize_batch(self, messages: Sequence[bytes]) -> tuple[Batch, Sequence[int] | None]:
        if self._blocks is None:
            self._blocks = JsonBlocks(*self._settings)
        data = None if None in messages else self._blocks.messages(messages)
        return (ArrowBatch(data), None) if data is not None else self._one_by_one(self._blocks, messages)

    def _one_by_one(self, blocks: JsonBlocks, messages: Sequence[bytes]) -> tuple[Batch, Sequence[int] | None]:
        rows, indices = list[list[object]](), list[int]()
        skipped = -blocks.skipped
        for index, message in enumerate(messages):
            if not message:  # as in Flink: without bytes there is no row
                continue
            try:
                if not message.strip():
                    raise BadValue("the message is empty, a JSON object is wanted")
                new_rows = blocks.rows(message)
            except (ValueError, RecursionError) as error:
                if self._skips:
                    skipped += 1
                    continue
                shown = "" if isinstance(error, BadValue) else f"{shorten(message.decode('utf-8', 'replace'), 120)}: "
                remedy = "set the format's option 'ignore-parse-errors' = 'true' to leave such messages and values out"
                raise ValueError(f"{shown}{error}; {remedy}") from error
            rows += new_rows
            indices += [index] * len(new_rows)
        skipped += blocks.skipped
        if skipped and self._errors is not None:
            self._errors.inc(skipped)
        return ArrowBatch(blocks.batch(rows)), indices


class JsonEncoder(ColumnEncoder):
    """Encodes rows as JSON objects."""

    def __init__(self, form: JsonColumns) -> None:
        super().__init__(form.schema)
        self._form = form

    def strings_of(self, data: pyarrow.RecordBatch) -> pyarrow.Array:
        """Return the object of each row."""
        return self._form.strings(data)

    def messages_of(self, data: pyarrow.RecordBatch) -> Sequence[bytes | None]:
        import pyarrow

        messages: list[bytes | None] = self.strings_of(data).cast(pyarrow.binary()).to_pylist()
        return messages


__all__ = ["JsonDecoder", "JsonEncoder", "JsonMessages"]
