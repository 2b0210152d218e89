"""The keyed multiset of joins of streams on one core: rows that come and go by value, of many keys and of a hot one.

Rates are rows a second of the process's CPU time, in batches of 64 K rows. A row is three BIGINT columns, of which the
first is the key. Rows of many keys are drawn, one for each key; the hot key has all rows. Beside it stand sorted runs
that are merged geometrically, the form of arrangements: rows with signs, sorted by key, merged where a run is not twice
as long as the next, which polars does.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rayflink.table.runtime.keyed_state.keyed_multiset import KeyedMultiset

    Rows = NDArray[np.int64]

BATCH = 65_536


def run(data_path: str = "", keys: int = 1_000_000, rows: int = 2_000_000) -> dict[str, Any]:
    """Measure a multiset of each form, a hot key, and sorted runs.

    Args:
        data_path: not used; rows are drawn.
        keys: rows that are there before anything is measured, each of another key; of the hot key as many.
        rows: that are taken back, and that come, in each measurement.
    """
    from rayflink.table.runtime.keyed_state.keyed_multiset import RowForm

    result: dict[str, float] = {}
    for form in (RowForm.COUNTED, RowForm.UNIQUE):
        for name, is_hot in (("", False), ("_of_a_hot_key", True)):
            result |= _changes(f"{form.name.lower()}{name}", _multiset(form), keys, rows, is_hot)
    multiset = _multiset(RowForm.APPENDED)
    result["m_appended_rows_per_cpu_second"] = _rate(keys, lambda: _apply(multiset, _drawn(keys, False), 1))
    return result | _sorted_runs(keys, rows)


def _rate(rows: int, work: Any) -> float:
    began = time.process_time()
    work()
    return rows / (time.process_time() - began) / 1e6


def _multiset(form: Any) -> KeyedMultiset:
    import pyarrow as pa

    from rayflink.table.runtime.keyed_state.keyed_multiset import KeyedMultiset, MultisetSpec

    return KeyedMultiset(MultisetSpec((pa.int64(),) * 3, 1, form, 2))


def _drawn(rows: int, is_hot: bool) -> Rows:
    """Return rows of three columns: the key, a number that no other row has, and another."""
    import numpy as np

    numbers = np.random.default_rng(1).permutation(rows)
    return np.stack([np.zeros(rows, dtype=np.int64) if is_hot else numbers, numbers * 7, numbers])


def _apply(multiset: KeyedMultiset, rows: Rows, sign: int) -> None:
    import numpy as np
    import pyarrow as pa

    for first in range(0, rows.shape[1], BATCH):
        columns = [pa.array(column) for column in rows[:, first : first + BATCH]]
        multiset.change(columns, np.full(len(columns[0]), sign), None, 0)


def _changes(name: str, multiset: KeyedMultiset, keys: int, rows: int, is_hot: bool) -> dict[str, float]:
    import numpy as np

    stored = _drawn(keys, is_hot)
    _apply(multiset, stored, 1)
    chance, seconds = np.random.default_rng(2), {-1: 0.0, 1: 0.0}
    rounds = max(2 * rows // keys, 1)
    for _ in range(rounds):
        chosen = stored[:, chance.permutation(keys)[: keys // 2]]
        for sign in seconds:
            began = time.process_time()
            _apply(multiset, chosen, sign)
            seconds[sign] += time.process_time() - began
    changed = rounds * (keys // 2) / 1e6
    return {f"m_rows_taken_back_per_cpu_second_{name}": changed / seconds[-1],
            f"m_new_rows_per_cpu_second_{name}": changed / seconds[1]}  # fmt: skip


def _sorted_runs(keys: int, rows: int) -> dict[str, float]:
    """Take rows back and add them in sorted runs, without a look at what is there."""
    import numpy as np
    import polars as pl

    stored, runs = _drawn(keys, False), list[pl.DataFrame]()
    names = ["key", "number", "value"]

    def add(batches: Iterable[Rows], sign: int) -> None:
        for batch in batches:
            frame = pl.DataFrame(dict(zip(names, batch, strict=True))).with_columns(sign=pl.lit(sign, pl.Int64))
            runs.append(frame.sort(names))
            while len(runs) > 1 and len(runs[-2]) < 2 * len(runs[-1]):
                last, before = runs.pop(), runs.pop()
                merged = before.merge_sorted(last, key="key").group_by(names, maintain_order=True).agg(pl.sum("sign"))
                runs.append(merged.filter(pl.col("sign") != 0))

    def batches(chosen: Rows) -> list[Rows]:
        return [chosen[:, first : first + BATCH] for first in range(0, chosen.shape[1], BATCH)]

    add(batches(stored), 1)
    chosen = stored[:, np.random.default_rng(2).permutation(keys)[: keys // 2]]
    began, rounds = time.process_time(), max(rows // keys, 1)
    for _ in range(rounds):
        add(batches(chosen), -1)
        add(batches(chosen), 1)
    seconds = time.process_time() - began
    return {"m_rows_per_cpu_second_in_sorted_runs": 2 * rounds * (keys // 2) / seconds / 1e6}
