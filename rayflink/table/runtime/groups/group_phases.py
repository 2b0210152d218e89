"""Groups in two phases: rows are added up where they come from, and these parts are merged behind the exchange.

A part is a row: the key, how many rows came less those that were taken back, and the accumulators of these rows alone.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rayflink.common.records.row_kinds import kinds_of, without_kinds

from ..aggregates.grouping import grouped
from ..aggregates.reductions import to_arrow, to_numpy
from ..keyed_state.comparable_keys import KeyForms
from ..keyed_state.key_rows import take_rows
from .group_accumulators import GroupAccumulators
from .group_changes import GroupSpec, state_of_groups, stored_before
from .group_rows import signs_of
from .result_changes import ResultChanges, Shown
from .segments import Segments, first_of_runs

COUNT = "$count"
"""The column of the number of rows in parts."""


def part_names(keys: int) -> list[str]:
    """Return the names of the key's columns in parts."""
    return [f"$k{number}" for number in range(keys)]


class GroupParts:
    """Adds up rows by their groups.

    Args:
        spec: what is computed; all of it can be merged.
    """

    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self._accumulators = accumulators = GroupAccumulators(spec.aggregates, spec.columns, spec.retracts)
        self._kinds = [spec.columns[key] for key in spec.keys]
        self._forms = KeyForms(self._kinds)
        fields = zip(part_names(len(spec.keys)), self._kinds, strict=True)
        states = [pa.field(f"$s{number}", kind) for number, kind in enumerate(accumulators.types)]
        self._schema = pa.schema([*fields, pa.field(COUNT, pa.int64()), *states])

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the parts of rows: one for each group, in the order in which the groups come."""
        rows = without_kinds(batch)
        weights = signs_of(kinds_of(batch), rows.num_rows)
        keys = [rows.column(key).cast(kind) for key, kind in zip(self._spec.keys, self._kinds, strict=True)]
        codes = grouped(self._forms.encode(keys), rows.num_rows).codes
        order = np.argsort(codes, kind="stable")
        segments = Segments(first_of_runs(codes[order]))
        count, weights = len(segments), weights[order]
        counts = segments.sums(weights, np.zeros(count, dtype=np.int64))[segments.lasts]
        nothing = self._accumulators.no_rows(count)
        _, state = self._accumulators.run(nothing, rows.take(pa.array(order)), weights, segments, True)
        firsts = order[segments.starts]
        columns = [*take_rows(keys, firsts), to_arrow(counts, pa.int64()), *state]
        parts = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        return parts.take(pa.array(np.argsort(firsts)))


class MergedGroups:
    """Merges the parts of groups, and computes the changes of the results.

    A group is forgotten when it has no rows left. Parts in which more rows are taken back than came and stay are
    dropped with their group where it is not known: it has expired. The state is that of `GroupChanges`.

    Args:
        spec: what is computed; all of it can be merged.
        schema: of the result: keys, then aggregates.
    """

    def __init__(self, spec: GroupSpec, schema: pa.Schema) -> None:
        self._width = len(spec.keys)
        self._changes = ResultChanges(schema, spec.ttl_ms > 0, spec.with_before)
        self._accumulators = GroupAccumulators(spec.aggregates, spec.columns, spec.retracts)
        self.state = state_of_groups([spec.columns[key] for key in spec.keys], self._accumulators, spec)

    def add(self, parts: pa.RecordBatch) -> pa.RecordBatch:
        """Return the changes that parts make: one of each group at most."""
        now_ms = self.state.now_ms
        keys = parts.columns[: self._width]
        groups = self.state.find(self.state.keys_of(keys, parts.num_rows), parts.num_rows, now_ms)
        order = np.argsort(groups.codes, kind="stable")
        segments = Segments(first_of_runs(groups.codes[order]))
        sorted_parts = take_rows(parts.columns[self._width :], order)
        has_base = groups.rows >= 0
        stored = stored_before(groups, np.arange(len(groups.rows)), has_base)
        running = np.zeros(len(groups.rows), dtype=np.int64)
        running[has_base] = to_numpy(groups.stored[0])
        counts = segments.sums(to_numpy(sorted_parts[0]), running)[segments.lasts]
        state = self._accumulators.merge(stored[1:], sorted_parts[1:], segments)
        self.state.store(groups, counts > 0, [to_arrow(counts, pa.int64()), *state], now_ms)
        results = self._accumulators.results(state), self._accumulators.results(stored[1:])
        shown = Shown(*results, counts > 0, has_base, order[segments.starts])
        return self._changes.of(keys, shown)


__all__ = ["COUNT", "GroupParts", "MergedGroups", "part_names"]
