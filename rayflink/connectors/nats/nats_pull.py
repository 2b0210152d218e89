"""The delivery of messages behind a position, by a consumer of the server that lives as long as it is asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from .nats_connection import Message, NatsConnection
from .nats_errors import NatsOutage
from .nats_messages import NatsMessage
from .nats_positions import NatsSplit

MOST_MESSAGES = 2_000
"""Messages that a request asks for."""
MOST_BYTES = 8 << 20
WAIT_S = 1.0
"""Seconds for which the server holds a request while there is no message."""
LATE_S = 10.0
"""Seconds after which a request without an answer is an outage."""
_LINGER_S = 0.002
"""Seconds for which a few messages wait for more, while a request is open."""
_FEW = 500
_IDLE_S = 120
"""Seconds without a request after which the server removes a consumer."""
_LIMITS = ("maxbytes", "batchcompleted")
"""Answers that end a request, among those that say that the consumer is gone; without blanks."""


class ConsumerGone(Exception):
    """The server has the consumer no more: it was idle, or has moved."""


class StreamPull:
    """Messages of one split, from one consumer without acknowledgements.

    Args:
        connection: that it was made on.
        split: at the position before the first message.
    """

    def __init__(self, connection: NatsConnection, split: NatsSplit) -> None:
        self._connection, self._split = connection, split
        self._next = self._inbox = ""
        self._received: list[NatsMessage] = []
        self._is_asking = self._is_gone = self._is_empty = False
        self._left = self._delivered = 0
        self._changed = asyncio.Event()
        self._most_bytes = MOST_BYTES
        self.is_drained = False
        """Whether the last `take` found that there is nothing, at a moment after it was called."""

    async def open(self) -> None:
        """Create the consumer.

        Raises:
            NatsError: the server refuses, or is away.
        """
        connection, split = self._connection, self._split
        doing = f"reading stream {split.stream!r}"
        config: dict[str, object] = {
            "deliver_policy": "by_start_sequence", "opt_start_seq": split.covered + 1, "ack_policy": "none",
            "replay_policy": "instant", "inactive_threshold": _IDLE_S * 1_000_000_000, "mem_storage": True,
            "num_replicas": 1,
        }  # fmt: skip
        if split.subject:
            config["filter_subject"] = split.subject
        request = {"stream_name": split.stream, "config": config}
        answer = await connection.ask(f"CONSUMER.CREATE.{split.stream}", request, doing)
        self._next = f"{connection.api}.CONSUMER.MSG.NEXT.{split.stream}.{answer['name']}"
        self._inbox = connection.client.new_inbox()
        self._most_bytes = max(MOST_BYTES, 2 * connection.client.max_payload)
        await connection.wait_for(connection.client.subscribe(self._inbox, cb=self._take_message), doing)

    async def take(self) -> Sequence[NatsMessage]:
        """Return the next messages, in order; none: there are none at the moment.

        Raises:
            ConsumerGone: another consumer is needed.
            NatsOutage: the server does not answer.
        """
        connection, doing = self._connection, f"reading stream {self._split.stream!r}"
        self.is_drained = False
        if not self._received and not self._is_asking:
            if self._is_gone:
                raise ConsumerGone
            await self._ask()
        if not self._received and self._is_asking:
            try:
                await connection.wait_for(asyncio.wait_for(self._changed.wait(), LATE_S), doing)
            except NatsOutage:
                if not self._received:
                    raise
            if self._is_asking and len(self._received) < _FEW:
                await asyncio.sleep(_LINGER_S)
        messages, self._received = self._received, []
        self._changed.clear()
        if messages:
            self._is_empty = False
            return messages
        if not self._is_asking and not self._is_gone:
            self.is_drained = self._is_empty = True
        return messages

    async def _ask(self) -> None:
        """Ask for more; the answer comes at once where the last one had messages, else when there are some."""
        request: dict[str, object] = {"batch": MOST_MESSAGES, "max_bytes": self._most_bytes}
        if self._is_empty:
            request["expires"] = int(WAIT_S * 1_000_000_000)
        else:
            request["no_wait"] = True
        self._is_asking, self._left = True, MOST_MESSAGES
        self._changed.clear()
        publishing = self._connection.client.publish(self._next, json.dumps(request).encode(), self._inbox)
        await self._connection.wait_for(publishing, f"reading stream {self._split.stream!r}")

    async def _take_message(self, message: Message) -> None:
        """Take what the server sends: a message, or the end of a request."""
        fields = message.reply.split(".") if message.reply else ()
        if len(fields) < 9:
            self._take_status(message.headers or {})
            return
        position = 4 if len(fields) == 9 else 6  # newer servers add a domain and a hash
        sequence, number, nanoseconds = map(int, fields[position + 1 : position + 4])
        if self._is_gone or number != self._delivered + 1:  # some were lost on the way
            self._is_gone, self._is_asking = True, False
        else:
            self._delivered = number
            headers = message.headers
            self._received.append(
                NatsMessage(message.subject, message.data, headers or {}, sequence, nanoseconds // 1_000_000)
            )
            self._left -= 1
            if not self._left:
                self._is_asking = False
        self._changed.set()

    def _take_status(self, headers: dict[str, str]) -> None:
        status, text = headers.get("Status", ""), headers.get("Description", "").lower()
        if status == "100":  # the request is alive
            return
        is_end = status in ("404", "408") or any(limit in text.replace(" ", "") for limit in _LIMITS)
        self._is_gone = self._is_gone or not is_end
        self._is_asking = False
        self._changed.set()


__all__ = ["ConsumerGone", "StreamPull"]
