"""`print` and `blackhole`: where rows end without a system behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rayflink.connectors.discard import DiscardingSink
from rayflink.connectors.printing import PrintSink

from ..plan.logical import Schema
from .contract import Connected, Connector, Option, TableSink

if TYPE_CHECKING:
    from rayflink.datastream.streams.step import Step
    from rayflink.datastream.streams.stream import DataStream


def truth(text: str) -> bool:
    """Return an option that is true or false.

    Raises:
        ValueError: it is neither.
    """
    if text.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.lower() == "true"


class _Blackhole(TableSink):
    is_append_only = False
    reads_watermarks = False

    def attach(self, stream: DataStream, name: str) -> Step:
        return stream.sink_to(DiscardingSink()).name(name)


class Blackhole(Connector):
    """Takes rows and forgets them."""

    name = "blackhole"

    def sink(self, table: Connected) -> TableSink:
        return _Blackhole()


class _Print(TableSink):
    is_append_only = False
    reads_watermarks = False

    def __init__(self, schema: Schema, identifier: str, stderr: bool) -> None:
        self._schema, self._identifier, self._stderr = schema, identifier, stderr

    def attach(self, stream: DataStream, name: str) -> Step:
        from ..conversion.row_format import JavaFormat, RowFormat  # slow: it loads numpy

        sink = PrintSink(
            self._identifier, self._stderr, RowFormat([column.type for column in self._schema], JavaFormat())
        )
        return stream.sink_to(sink).name(name)


class Print(Connector):
    """Writes rows to the terminal of the process that has them."""

    name = "print"
    options: Mapping[str, Option] = {
        "print-identifier": Option(str, ""),
        "standard-error": Option(truth, False),
    }

    def sink(self, table: Connected) -> TableSink:
        return _Print(table.schema, table.options["print-identifier"], table.options["standard-error"])
