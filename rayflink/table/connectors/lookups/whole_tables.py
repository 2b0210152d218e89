"""Tables that are read as a whole into memory, to find rows by key there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rayflink.common.connector_base.source import Source
from rayflink.common.connector_base.whole_reading import read_whole
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import ArrowBatch

from ...runtime.lookups.lookup_function import TableLookup
from ...runtime.lookups.whole_cache import TableReader, WholeTableLookup
from .lookup_options import LookupOptions

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class BoundedTable(TableReader):
    """Reads a bounded source of columns.

    Args:
        source: whose columns have the types of the schema.
        schema: of the table.
    """

    source: Source
    schema: pyarrow.Schema

    def read(
        self, config: Mapping[str, object], metrics: MetricGroup, is_cancelled: Callable[[], bool]
    ) -> pyarrow.Table:
        import pyarrow

        batches = []
        for batch in read_whole(self.source, config, metrics, is_cancelled):
            assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
            columns = [column if column.type == field.type else column.cast(field.type)
                       for column, field in zip(batch.data.columns, self.schema, strict=True)]  # fmt: skip
            batches.append(pyarrow.RecordBatch.from_arrays(columns, schema=self.schema))
        return pyarrow.Table.from_batches(batches, self.schema)


@dataclass(frozen=True)
class RowsInMemory(TableReader):
    """Rows that travel with the program."""

    table: pyarrow.Table

    def read(
        self, config: Mapping[str, object], metrics: MetricGroup, is_cancelled: Callable[[], bool]
    ) -> pyarrow.Table:
        return self.table


def whole_lookup(reader: TableReader, keys: Sequence[str], options: LookupOptions | None = None) -> TableLookup:
    """Return the lookup in a table that is read as a whole."""
    options = options or LookupOptions("FULL")
    function = WholeTableLookup(reader, keys, options.reload_ms, options.is_fixed_rate)
    return TableLookup(function, None, options.max_retries, True)


__all__ = ["RowsInMemory", "BoundedTable", "whole_lookup"]
