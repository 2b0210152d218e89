"""Tables of lakes as sources and sinks of queries, whatever the format."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rayflink.common.connector_base.sink import Sink
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.delta.delta_plan import DeltaPlan
from rayflink.connectors.delta.delta_source import DeltaSource
from rayflink.connectors.formats.parquet_pruning import Wanted
from rayflink.connectors.iceberg.iceberg_plan import IcebergPlan
from rayflink.connectors.iceberg.iceberg_source import IcebergSource
from rayflink.user_types import UserRecord

from ...conversion.arrow_columns import arrow_schema
from ...plan.logical import Schema
from ...plan.typed import Expr
from ...types import DataType
from ..contract import TableSink, TableSource
from ..formats import column_named
from ..narrow_columns import narrower, paths_of
from ..row_conditions import wanted

if TYPE_CHECKING:
    from rayflink.datastream import StreamExecutionEnvironment
    from rayflink.datastream.streams.step import Step
    from rayflink.datastream.streams.stream import DataStream


@dataclass(frozen=True)
class LakeTableSource(TableSource):
    """Reads a snapshot of a table, or its appends.

    Args:
        schema: all columns of the table.
        names: those that are read.
        plan: which files are read.
        monitor_ms: pause between looks for new commits; None: those there at the start.
        wanted: conditions by whose statistics files and row groups are passed over.
        narrow: types of the columns of which some fields are read only.
    """

    schema: Schema
    names: tuple[str, ...]
    plan: DeltaPlan | IcebergPlan
    monitor_ms: int | None = None
    wanted: tuple[Wanted, ...] = ()
    narrow: tuple[tuple[str, DataType], ...] = ()

    @property
    def is_bounded(self) -> bool:  # type: ignore[override]  # a property here, as it depends on an option
        """Return whether the rows are those of a snapshot."""
        return self.monitor_ms is None

    def projected(self, names: Sequence[str]) -> TableSource:
        return replace(self, names=tuple(names) or (self.schema[0].name,))

    def narrowed(self, types: Mapping[str, DataType]) -> TableSource | None:
        return replace(self, narrow=narrower(self.schema, self.narrow, types))

    def filtered(self, conditions: Sequence[Expr]) -> tuple[TableSource, Sequence[Expr]] | None:
        searches = tuple(search for condition in conditions if (search := wanted(condition)))
        if not searches:
            return None
        return replace(self, wanted=(*self.wanted, *searches)), conditions  # statistics are of many rows

    def pushed(self) -> tuple[str, ...]:
        whole = not self.narrow and list(self.names) == [column.name for column in self.schema]
        read = [path for name in self.names for path in paths_of(name, dict(self.narrow))]
        shown = {"filter": tuple(map(str, self.wanted)), "project": () if whole else tuple(read)}
        return tuple(f"{what}=[{', '.join(parts)}]" for what, parts in shown.items() if parts)

    def stream(self, env: StreamExecutionEnvironment, strategy: WatermarkStrategy | None, name: str) -> DataStream:
        types = dict(self.narrow)
        columns = [column_named(self.schema, column) for column in self.names]
        schema = arrow_schema(tuple(replace(column, type=types.get(column.name, column.type)) for column in columns))
        plan = self.plan
        source: DeltaSource | IcebergSource
        if isinstance(plan, DeltaPlan):
            source = DeltaSource(replace(plan, columns=self.names, wanted=self.wanted), self.monitor_ms, schema)
        else:
            source = IcebergSource(replace(plan, columns=self.names, wanted=self.wanted), self.monitor_ms, schema)
        return env.from_source(source, strategy, name)


@dataclass(frozen=True)
class LakeTableSink(TableSink):
    """Appends rows to a table of a lake, each once."""

    lake: Sink[UserRecord]
    reads_watermarks = False

    def attach(self, stream: DataStream, name: str) -> Step:
        return stream.sink_to(self.lake).name(name)


def epoch_ms(text: str) -> int:
    """Return a time as epoch milliseconds: a number of them, or a time in ISO 8601, in UTC if it has no zone.

    Raises:
        ValueError: it is neither.

    >>> epoch_ms("1970-01-01T00:00:01"), epoch_ms("1970-01-01 00:00:01+00:00"), epoch_ms("1000")
    (1000, 1000, 1000)
    """
    if text.isdigit():
        return int(text)
    try:
        time = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as error:
        raise ValueError("a time, such as 2024-02-01T00:00:00Z, or epoch milliseconds") from error
    return int((time if time.tzinfo else time.replace(tzinfo=datetime.timezone.utc)).timestamp() * 1000)


__all__ = ["LakeTableSink", "LakeTableSource", "epoch_ms"]
