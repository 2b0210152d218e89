"""What is asked of the sessions of a key when a row is late."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rayflink.table.runtime.joins.join_rows import JoinSide
from rayflink.table.runtime.windows.session_store import SessionStore


class Keys:
    """Partial rows of a key and a large column."""

    width = 1

    def weight(self, columns):
        return len(columns[0])


def test_late_rows_look_at_keys_and_times_of_sessions_alone():
    store = SessionStore(Keys())
    bounds = [pa.array([0, 20]), pa.array([10, 30]), pa.array([0, 1])]
    store.add([pa.array(["a", "b"]), pa.array(["x" * 1000] * 2), *bounds])
    found = store.bounds_of_keys([pa.array(["b"])])
    assert [one.to_pylist() for one in found[0]] == [["b"], [20], [30]]
    assert not store.bounds_of_keys([pa.array(["c"])])


def test_columns_of_a_wide_join_are_looked_up_once():
    schema = pa.schema([pa.field(f"c{at}", pa.int64()) for at in range(300)])
    side = JoinSide(schema, (2,), (2,))
    assert side.state_places is side.state_places
    assert side.state_order[:4] == [2, 0, 1, 3]
    assert [side.state_order[at] for at in side.state_places] == np.arange(300).tolist()
