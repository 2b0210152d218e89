"""How long readers of an output are kept from what is there, watched beside the job that writes it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, TopicPartition


class StrandedReaders:
    """Watches how long a reader waits, about ten times a second; see the classes below."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self.longest_s = 0.0
        self.samples = 0
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> StrandedReaders:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        self.open()
        while not self._ended.wait(0.1):
            self.look()
        self.close()

    def open(self) -> None:
        """Connect."""

    def look(self) -> None:
        """Note for how long somebody waits."""
        raise NotImplementedError

    def close(self) -> None:
        """Disconnect."""

    def note(self, seconds: float) -> None:
        """Add a sample."""
        self.samples += 1
        self.longest_s = max(self.longest_s, seconds)


class KafkaReaders(StrandedReaders):
    """Watches how long the end of the committed messages of a partition stays before the end of all.

    Args:
        servers: of the brokers.
    """

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        super().__init__()
        self._servers, self._topic, self._partitions = servers, topic, partitions
        self._since: dict[int, tuple[int, float]] = {}

    def open(self) -> None:
        shared = {"bootstrap.servers": self._servers, "group.id": "watching", "log_level": 0}
        self._committed = Consumer({**shared, "isolation.level": "read_committed"})
        self._every = Consumer({**shared, "isolation.level": "read_uncommitted"})

    def look(self) -> None:
        for number in range(self._partitions):
            place = TopicPartition(self._topic, number)
            try:
                stable = self._committed.get_watermark_offsets(place, timeout=1)[1]
                end = self._every.get_watermark_offsets(place, timeout=1)[1]
            except KafkaException:  # nobody reads anything while the broker is down
                self._since.clear()
                return
            before, since = self._since.get(number, (-1, 0.0))
            if stable >= end or stable != before:
                since = time.monotonic()
            self._since[number] = stable, since
            self.note(time.monotonic() - since)

    def close(self) -> None:
        self._committed.close()
        self._every.close()


class PlainReaders(StrandedReaders):
    """Watches how long a read of all lines takes.

    Args:
        read: reads them; raises an `away` where the server is down.
        away: errors that mean so.
    """

    def __init__(self, read: Callable[[], object], away: tuple[type[Exception], ...] = ()) -> None:
        super().__init__()
        self._read, self._away = read, away

    def look(self) -> None:
        began = time.monotonic()
        try:
            self._read()
        except self._away:  # nobody reads anything then
            return
        self.note(time.monotonic() - began)
