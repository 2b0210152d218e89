"""The ledger of an exactly-once sink: which chunks of messages are in Kafka. Pure decisions; see docs/kafka.md.

A chunk has the id of the run that wrote it and a sequence number within that run. Chunks of a run are committed in the
order of their numbers, so the highest committed number says it of all. The ledger stands in Kafka as the metadata of a
consumer group's offset, which a transaction commits together with the messages.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

MOST_RUNS = 64
"""Runs of a writer that the ledger remembers; at about 27 bytes each they are below half of the 4096 bytes that a
broker allows (`offset.metadata.max.bytes`)."""
SKEW_MS = 3_600_000
"""Most difference between the clocks of two nodes, and between a node's and the broker's."""
_FORMAT = 1


class ChunkFate(Enum):
    """The decision about a chunk that a committer has."""

    WRITE = "write"
    """It is not in Kafka."""
    SKIP = "skip"
    """It is in Kafka."""
    UNKNOWN = "unknown"
    """The ledger has forgotten the run, so it may be in Kafka or not."""


def new_run(now_ms: int) -> str:
    """Return the id of a new run: the time at which it starts and four random digits.

    >>> run_start_ms(new_run(1_700_000_000_000))
    1700000000000
    """
    return f"{now_ms:x}-{secrets.token_hex(2)}"


def run_start_ms(run: str) -> int:
    """Return the epoch milliseconds at which a run started."""
    return int(run.partition("-")[0], 16)


@dataclass(frozen=True)
class Ledger:
    """The committed chunks of one transactional id.

    Args:
        runs: run -> highest sequence number that is committed, in the order of the runs' last commits.
        commits: number of transactions; the offset of the consumer group.
        forgotten_ms: start of the latest run that was removed because there were more than `MOST_RUNS`; 0: none was.
    """

    runs: Mapping[str, int] = field(default_factory=dict)
    commits: int = 0
    forgotten_ms: int = 0

    def with_chunk(self, run: str, sequence: int) -> Ledger:
        """Return the ledger after a commit of this chunk, and with it of all before it in its run."""
        runs = {known: last for known, last in self.runs.items() if known != run}
        runs[run] = sequence
        forgotten_ms = self.forgotten_ms
        while len(runs) > MOST_RUNS:
            oldest = next(iter(runs))
            del runs[oldest]
            forgotten_ms = max(forgotten_ms, run_start_ms(oldest))
        return Ledger(runs, self.commits + 1, forgotten_ms)

    def metadata(self) -> str:
        """Return the ledger as the metadata of an offset.

        >>> Ledger().with_chunk("18bcfe56800-a1b2", 7).metadata()
        '{"v":1,"runs":{"18bcfe56800-a1b2":7},"forgotten":0}'
        """
        value = {"v": _FORMAT, "runs": dict(self.runs), "forgotten": self.forgotten_ms}
        return json.dumps(value, separators=(",", ":"))

    @staticmethod
    def of_metadata(offset: int, metadata: str | None) -> Ledger:
        """Return the ledger of a committed offset.

        Args:
            offset: below 0 where none is committed.

        Raises:
            ValueError: the metadata is not that of a ledger.
        """
        if offset < 0:
            return Ledger()
        value = json.loads(metadata or "")
        if not isinstance(value, dict) or value.get("v") != _FORMAT:
            raise ValueError(f"found {metadata!r}, wanted a ledger of format {_FORMAT}")
        return Ledger(value["runs"], offset, value["forgotten"])

    def fate(self, run: str, sequence: int, written_ms: int, now_ms: int, retention_ms: int) -> ChunkFate:
        """Return whether a chunk is committed.

        A run that the ledger does not name has no commit, unless its entry was removed: by `with_chunk`, which notes
        the start of such runs, or by the broker, which deletes an offset no sooner than `retention_ms` after its last
        commit, and so after every chunk of the run was written.

        Args:
            written_ms: epoch milliseconds at which the chunk was written.
            retention_ms: time for which the broker keeps the offset of an idle group.
        """
        last = self.runs.get(run)
        if last is not None:
            return ChunkFate.SKIP if sequence <= last else ChunkFate.WRITE
        is_forgotten = 0 < self.forgotten_ms and run_start_ms(run) <= self.forgotten_ms
        if is_forgotten or now_ms - written_ms > retention_ms - SKEW_MS:
            return ChunkFate.UNKNOWN
        return ChunkFate.WRITE


__all__ = ["MOST_RUNS", "SKEW_MS", "ChunkFate", "Ledger", "new_run", "run_start_ms"]
