"""The decoding of messages, batch by batch, with the policy for those that are malformed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rayflink.common.text_output.logs import get_logger
from rayflink.user_types import UserValue

from ..errors import described, shorten
from ..metrics.metric_group import MetricGroup
from ..metrics.metric_names import NUM_RECORDS_IN_ERRORS
from ..records.batches import Batch, RowBatch, Tagged
from ..serialization import DeserializationSchema
from .malformed_records import DecoderUnavailable, MalformedMessage, MalformedRecord, MalformedRecords

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class DecodedBatch:
    """The records of a batch of messages.

    Args:
        batch: the records.
        indices: for each record the index of its message; None: there is one record a message, in order.
        malformed: records for a side output; None: there are none.
    """

    batch: Batch
    indices: Sequence[int] | None = None
    malformed: Tagged | None = None


class MessageDecoder:
    """Decodes the messages that one reader receives.

    A batch is decoded as a whole. When that fails, the malformed messages are searched by halves, so a batch of n
    messages with k malformed ones takes about k * log2(n) attempts.

    >>> from rayflink.common.serialization import SimpleStringSchema
    >>> decoder = MessageDecoder(SimpleStringSchema(), MalformedRecords.skip())
    >>> decoder.decode([b"a", b"\\xff", b"c"], lambda index: f"message {index}")
    DecodedBatch(batch=RowBatch(['a', 'c']), indices=[0, 2], malformed=None)

    Args:
        schema: decodes messages.
        policy: for those that it cannot decode.
        metrics: of the source; None: nothing is counted.
        bytes_of: returns what a malformed message is shown as; for sources whose schema decodes objects of a client
            library in place of bytes.
    """

    def __init__(
        self,
        schema: DeserializationSchema,
        policy: MalformedRecords | None = None,
        metrics: MetricGroup | None = None,
        bytes_of: Callable[[UserValue], bytes] = bytes,
    ) -> None:
        self._schema = schema if metrics is None else schema.counting(metrics)
        self._policy, self._bytes_of = policy or MalformedRecords.fail(), bytes_of
        self._errors = None if metrics is None else metrics.counter(NUM_RECORDS_IN_ERRORS)
        self._is_logged = False

    def decode(self, messages: Sequence[UserValue], place_of: Callable[[int], str]) -> DecodedBatch:
        """Return the records of a batch of messages.

        Args:
            place_of: index of a message -> its position in the outside system, for errors.

        Raises:
            MalformedMessage: one cannot be decoded, and the policy is to fail.
            DecoderUnavailable: none can be decoded now, for a reason that is not in them.
        """
        try:
            return DecodedBatch(*self._schema.deserialize_batch(messages))
        except DecoderUnavailable:
            raise
        except Exception as error:  # whatever a user's schema raises: the messages are looked at one by one
            first = error
        failures: dict[int, Exception] = {}
        self._find_failures(messages, 0, len(messages), failures)
        if not failures:  # none fails alone: the batch as a whole does
            raise first
        self._report(messages, failures, place_of)
        good = [index for index in range(len(messages)) if index not in failures]
        if not good:
            return DecodedBatch(RowBatch([]), None, self._tagged(messages, failures, place_of))
        batch, indices = self._schema.deserialize_batch([messages[index] for index in good])
        origins = good if indices is None else [good[index] for index in indices]
        return DecodedBatch(batch, origins, self._tagged(messages, failures, place_of))

    def _find_failures(
        self, messages: Sequence[UserValue], start: int, end: int, failures: dict[int, Exception]
    ) -> None:
        if failures and self._policy.fails:  # the first is enough
            return
        try:
            self._schema.deserialize_batch(messages[start:end])
        except DecoderUnavailable:
            raise
        except Exception as error:
            if end - start == 1:
                failures[start] = error
                return
            middle = (start + end) // 2
            self._find_failures(messages, start, middle, failures)
            self._find_failures(messages, middle, end, failures)

    def _report(
        self, messages: Sequence[UserValue], failures: dict[int, Exception], place_of: Callable[[int], str]
    ) -> None:
        if self._errors is not None:
            self._errors.inc(len(failures))
        index, error = next(iter(failures.items()))
        if self._policy.fails:
            raise MalformedMessage(
                place_of(index), shorten(self._bytes_of(messages[index]), 120), described(error)
            ) from error
        if not self._is_logged:
            self._is_logged = True
            log.warning("the first malformed message is at %s: %s", place_of(index), described(error))

    def _tagged(
        self, messages: Sequence[UserValue], failures: dict[int, Exception], place_of: Callable[[int], str]
    ) -> Tagged | None:
        if self._policy.tag is None:
            return None
        records = [
            MalformedRecord(self._bytes_of(messages[index]), described(error), place_of(index))
            for index, error in failures.items()
        ]
        return Tagged(self._policy.tag.tag_id, RowBatch(records))


__all__ = ["DecodedBatch", "MessageDecoder"]
