"""A sample of the keys that a producer sends: which key groups, and which keys, have most of the records.

A few hundred records are looked at now and then: first after each doubling of the records, later once in 262,144. So a
sample costs less than a hundredth of the partitioning, and a stream of few records has one as well. It takes as many
batches as it needs: those of a slow stream are small. In a large batch, records are chosen at random: at even
distances, keys that come in turns would seem to be one. Older samples count half as much as newer ones from time to
time: the figures are those of now.

Source: G. S. Manku, R. Motwani, Approximate Frequency Counts over Data Streams (counts of the frequent ones alone).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from heapq import nlargest
from typing import TYPE_CHECKING, Any

from rayflink.common.errors import shorten
from rayflink.state.keys import hash_columns, hash_keys
from rayflink.state.keys.key_groups import key_groups_of
from rayflink.user_types import UserKey

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SAMPLED_ROWS = 256
"""Records that are looked at each time, from one batch or from several."""
EVERY_ROWS = 1 << 18
"""Records between two samples of a stream that has been going on for a while."""
_RECENT = 1 << 14
"""Sampled records after which all counts are halved."""
_MOST_KEYS = 64
_SHOWN_GROUPS = 16
_SHOWN_KEYS = 5


class KeySample:
    """Counts key groups, and keys if they may be named, in a sample of the records.

    >>> sample = KeySample(128, "count", names_keys=True)
    >>> sample.is_due(4)
    True
    >>> sample.add_keys(["ann", "bob", "ann", "ann"])
    >>> report = sample.report()
    >>> report["groups"][0][1], report["keys"][0][::2]
    (3, ["'ann'", 3])

    Args:
        max_parallelism: key groups in all.
        consumer: id of the vertex that the records are sent to.
        names_keys: whether reports have keys, which are data of the user.
    """

    def __init__(self, max_parallelism: int, consumer: str, names_keys: bool) -> None:
        self._consumer = consumer
        self._max_parallelism, self._names_keys = max_parallelism, names_keys
        self._draw = random.Random(0)
        self._rows = self._next = self._missing = 0
        self._new_rows = 0
        self._represented = 0.0
        self._sampled = 0
        self._groups: Counter[int] = Counter()
        self._keys: Counter[tuple[UserKey, int]] = Counter()

    def is_due(self, rows: int) -> bool:
        """Count the records of a batch, and return whether it is to be sampled."""
        self._rows += rows
        self._new_rows += rows
        if self._rows > self._next:
            self._next = self._rows + min(self._rows, EVERY_ROWS)
            self._missing = SAMPLED_ROWS
        if self._missing <= 0:
            return False
        self._missing -= rows
        return True

    def add_keys(self, keys: Sequence[UserKey]) -> None:
        """Add a batch with these keys; those that can be none are refused where the batch is partitioned."""
        chosen = [keys[row] for row in self._chosen(len(keys))]
        with suppress(TypeError, ValueError, RecursionError):
            self._add(hash_keys(chosen), chosen)

    def add_columns(self, columns: Sequence[Any], rows: int) -> None:
        """Add a batch whose keys are these Arrow columns."""
        import numpy as np

        rows_taken = np.asarray(self._chosen(rows))
        parts = [column.take(rows_taken) for column in columns]
        keys: list[Any] = []
        if self._names_keys:
            values = [part.to_pylist() for part in parts]
            keys = values[0] if len(values) == 1 else [*zip(*values, strict=True)]
        self._add(hash_columns(parts), keys)

    def _chosen(self, rows: int) -> Sequence[int]:
        """Return the rows of a batch that are looked at: all, or one of each `step` rows, at random."""
        step = -(-rows // SAMPLED_ROWS)
        if step <= 1:
            return range(rows)
        draw = self._draw.random
        return [first + int(draw() * min(step, rows - first)) for first in range(0, rows, step)]

    def _add(self, hashes: NDArray[np.uint32], keys: Sequence[UserKey]) -> None:
        groups = key_groups_of(hashes, self._max_parallelism).tolist()
        if self._names_keys:
            self._keys.update(zip(keys, groups, strict=True))
            if len(self._keys) > _MOST_KEYS:
                self._keys = Counter(dict(nlargest(_MOST_KEYS, self._keys.items(), key=_count)))
        self._groups.update(groups)
        self._sampled += len(groups)
        self._represented += self._new_rows
        self._new_rows = 0
        if self._sampled > _RECENT:
            self._halve()

    def _halve(self) -> None:
        self._groups = Counter({group: count // 2 for group, count in self._groups.items() if count > 1})
        self._keys = Counter({key: count // 2 for key, count in self._keys.items() if count > 1})
        self._sampled //= 2
        self._represented /= 2

    def report(self) -> dict[str, Any] | None:
        """Return the sample as JSON; None where nothing was sampled.

        Returns: "consumer", "max_parallelism", "rows" that the sample stands for, "sampled" records, "groups", pairs
            of a key group and its sampled records, and "keys", triples of a key's text, its key group and its sampled
            records; the most first.
        """
        if not self._sampled:
            return None
        groups = nlargest(_SHOWN_GROUPS, self._groups.items(), key=_count)
        keys = nlargest(_SHOWN_KEYS, self._keys.items(), key=_count)
        return {
            "consumer": self._consumer,
            "max_parallelism": self._max_parallelism,
            "rows": round(self._represented),
            "sampled": self._sampled,
            "groups": [list(entry) for entry in groups],
            "keys": [[shorten(key), group, count] for (key, group), count in keys],
        }


def _count(entry: tuple[Any, int]) -> int:
    return entry[1]


__all__ = ["KeySample"]
