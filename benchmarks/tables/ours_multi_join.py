"""Joins of four changing inputs on one core: as one operator, and as three joins of two sides one behind the other.

Each input has rows by a key, one a key or several, all of which may be taken back. They come in turn, then rows of the
first and of the last input are updated. The operators are stepped by hand, so that nothing else is measured: what an
exchange between two joins costs is not. Times are those of the process's CPU, bytes those of the state in memory.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

INPUTS = 4
BATCH = 16_384
_NAMES = ("key", "id", "value")


def run(data_path: str = "", rows: int = 200_000) -> dict[str, Any]:
    """Measure both with one row a key and with four, by inner and by left joins.

    Args:
        data_path: not used; rows are drawn.
        rows: of each input.
    """
    result: dict[str, float] = {}
    for kind in ("inner", "left"):
        for fan_out in (1, 4):
            for name, new_joins in (("multi", _Multi), ("cascade", _Cascade)):
                count = rows // fan_out ** (INPUTS - 1) * 4 if fan_out > 1 else rows
                result |= _measured(f"{kind}_{fan_out}_{name}", new_joins(kind == "left"), count, fan_out)
    return result


def _opened(operator: Any) -> Any:
    from rayflink.operators.base import OperatorContext
    from rayflink.state.clock import SystemClock

    operator.setup(OperatorContext("0" * 32, "join", clock=SystemClock()))
    operator.initialize_state(())
    operator.open()
    return operator


def _schema(numbers: range) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([(f"{name}{number}", pa.int64()) for number in numbers for name in _NAMES])


class _Multi:
    """One operator.

    Args:
        is_left: left joins, else inner ones.
    """

    def __init__(self, is_left: bool) -> None:
        from rayflink.table.plan.typed import Session
        from rayflink.table.runtime.joins.join_rows import JoinSide
        from rayflink.table.runtime.joins.multi_join import MultiJoinOperator
        from rayflink.table.runtime.joins.multi_join_rows import MultiJoinSpec, StepSpec
        from rayflink.table.runtime.joins.stored_side import SideState
        from rayflink.table.runtime.keyed_state.keyed_multiset import RowForm

        sides = tuple(JoinSide(_schema(range(number, number + 1)), (0,), (0,)) for number in range(INPUTS))
        states = (SideState(RowForm.COUNTED),) * INPUTS
        steps = (StepSpec(is_left, (0,)),) * (INPUTS - 1)
        self.operators = [
            _opened(MultiJoinOperator(MultiJoinSpec(sides, states, steps, _schema(range(INPUTS)), Session())))
        ]

    def add(self, rows: pa.RecordBatch, number: int) -> int:
        """Return how many changes of the result changes of an input lead to."""
        from rayflink.common.records.batches import ArrowBatch

        return sum(len(batch) for batch in self.operators[0].process(ArrowBatch(rows), number))


class _Cascade:
    """Joins of two sides, each of which gets the result of the one before."""

    def __init__(self, is_left: bool) -> None:
        from rayflink.table.plan.joins import JoinKind
        from rayflink.table.plan.typed import Session
        from rayflink.table.runtime.joins.join_rows import JoinSide, JoinSpec
        from rayflink.table.runtime.joins.stored_side import SideState
        from rayflink.table.runtime.joins.stream_join import StreamJoinOperator, StreamJoinSpec
        from rayflink.table.runtime.keyed_state.keyed_multiset import RowForm

        kind = JoinKind.LEFT if is_left else JoinKind.INNER
        self.operators = []
        for number in range(1, INPUTS):
            left, right = (JoinSide(_schema(side), (0,), (0,)) for side in (range(number), range(number, number + 1)))
            spec = JoinSpec(kind, left, right, (False,), None, _schema(range(number + 1)), Session())
            states = SideState(RowForm.COUNTED, 0, is_left), SideState(RowForm.COUNTED)
            self.operators.append(_opened(StreamJoinOperator(StreamJoinSpec(spec, *states))))

    def add(self, rows: pa.RecordBatch, number: int) -> int:
        """Return how many changes of the result changes of an input lead to."""
        from rayflink.common.records.batches import ArrowBatch

        batches = [ArrowBatch(rows)]
        for place in range(max(number - 1, 0), INPUTS - 1):
            side = 1 if place == number - 1 else 0
            batches = [result for batch in batches for result in self.operators[place].process(batch, side)]
        return sum(map(len, batches))


def _measured(name: str, joins: _Multi | _Cascade, rows: int, fan_out: int) -> dict[str, float]:
    import numpy as np

    keys, ids = np.arange(rows) // fan_out, np.arange(rows)
    order = np.random.default_rng(1).permutation(rows)
    filled = sum(
        _timed(joins, number, keys[part], ids[part], None) for number in range(INPUTS) for part in _parts(order)
    )
    bytes_of_state = sum(table.size for operator in joins.operators for table in operator.stored.tables)
    result = {f"s_to_fill_{name}": filled, f"mb_of_state_{name}": bytes_of_state / 1e6}
    for side, number in (("first", 0), ("last", INPUTS - 1)):
        parts = _parts(order)[: max(len(order) // BATCH // 4, 1)]
        seconds = sum(_timed(joins, number, keys[part], ids[part], 1) for part in parts)
        changed = sum(map(len, parts))
        result[f"us_per_update_of_the_{side}_{name}"] = 1e6 * seconds / changed
    for operator in joins.operators:
        operator.close()
    return result


def _parts(order: Numbers) -> list[Numbers]:
    return [order[first : first + BATCH] for first in range(0, len(order), BATCH)]


def _timed(joins: _Multi | _Cascade, number: int, keys: Numbers, ids: Numbers, value: int | None) -> float:
    """Return the seconds of CPU for rows that come, or get another value.

    Args:
        value: the new one; None: they come with 0.
    """
    import numpy as np
    import pyarrow as pa

    from rayflink.common.records.row_kinds import with_kinds
    from rayflink.common.types import RowKind

    times, values = (1, [0]) if value is None else (2, [0, value])
    columns = [np.repeat(keys, times), np.repeat(ids, times), np.tile(values, len(keys))]
    schema = _schema(range(number, number + 1))
    rows = pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=schema)
    if value is not None:
        kinds = [RowKind.UPDATE_BEFORE.value, RowKind.UPDATE_AFTER.value]
        rows = with_kinds(rows, np.tile(np.array(kinds, dtype=np.int8), len(keys)))
    began = time.process_time()
    joins.add(rows, number)
    return time.process_time() - began
