"""`datagen`: made-up rows, the same ones for the same numbers."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rayflink.common.options.option_types import DURATION
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.connectors.seeded_random import drawn

from ..conversion.arrow_columns import arrow_schema
from ..errors import SqlError, nearest
from ..plan.logical import Attribute
from ..types import DataType, Root
from .contract import Connected, Connector, Option, TableSource
from .numbered_rows import NumberedRows
from .option_values import is_number, whole_from

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from numpy.typing import NDArray

    from rayflink.datastream import StreamExecutionEnvironment
    from rayflink.datastream.streams.stream import DataStream

_BOUNDS = {Root.TINYINT: 7, Root.SMALLINT: 15, Root.INT: 31, Root.BIGINT: 63}
_SETTINGS = ("kind", "min", "max", "start", "end", "length", "max-past", "null-rate")
_LONGEST = 100
_MOST_LENGTH = 1_000_000  # of one text: a batch has many


@dataclass(frozen=True)
class GeneratedField:
    """The generator of a column's values.

    Args:
        settings: of the field, by name.
    """

    name: str
    type: DataType
    settings: Mapping[str, str]

    @property
    def sequence(self) -> tuple[int, int] | None:
        """First and last number of a sequence; None: values are random."""
        if self.settings.get("kind", "random") == "random":
            return None
        return int(self.settings["start"]), int(self.settings["end"])

    def values(self, numbers: NDArray[np.int64], now_ms: int) -> pyarrow.Array:
        """Return the values of rows by their numbers."""
        import numpy
        import pyarrow

        target = self.type.to_arrow()
        if self.sequence is not None:
            return pyarrow.array(numbers + self.sequence[0], pyarrow.int64()).cast(target)
        array = self._made(drawn(numbers, zlib.crc32(self.name.encode())), now_ms)
        rate = float(self.settings.get("null-rate", "0"))
        if rate:
            absent = drawn(numbers, zlib.crc32(self.name.encode()) + 1) < numpy.uint64(int(rate * (2**64 - 1)))
            array = pyarrow.compute.if_else(pyarrow.array(absent), pyarrow.scalar(None, array.type), array)
        return array if array.type == target else array.cast(target)

    def _made(self, draws: NDArray[np.uint64], now_ms: int) -> pyarrow.Array:
        import numpy
        import pyarrow

        root = self.type.root
        if root is Root.BOOLEAN:
            return pyarrow.array((draws & numpy.uint64(1)).astype(bool))
        if self.type.is_text:
            return _strings(draws, int(self.settings.get("length", str(min(self.type.length, _LONGEST)))))
        if root in _BOUNDS:
            low = int(self.settings.get("min", str(-(2 ** _BOUNDS[root]))))
            high = int(self.settings.get("max", str(2 ** _BOUNDS[root] - 1)))
            width = high - low + 1
            offset = draws if width >= 2**64 else draws % numpy.uint64(width)
            return pyarrow.array((offset + numpy.uint64(low % 2**64)).astype(numpy.int64))
        fractions = draws.astype(numpy.float64) / 2.0**64
        if root in (Root.FLOAT, Root.DOUBLE):
            low_, high_ = float(self.settings.get("min", "0")), float(self.settings.get("max", "1"))
            return pyarrow.array(low_ + fractions * (high_ - low_))
        if root is Root.DECIMAL:
            most = 10 ** min(self.type.precision, 18)
            low = int(float(self.settings.get("min", "0")) * 10**self.type.scale)
            high = int(float(self.settings["max"]) * 10**self.type.scale) if "max" in self.settings else most - 1
            whole = (draws % numpy.uint64(high - low + 1)).astype(numpy.int64) + low
            words = numpy.stack([whole, whole >> 63], axis=1)  # 128 bits, the low ones first
            buffers = [None, pyarrow.py_buffer(numpy.ascontiguousarray(words))]
            return pyarrow.Array.from_buffers(self.type.to_arrow(), len(whole), buffers)
        past = DURATION.read(self.settings["max-past"]).to_millis() if "max-past" in self.settings else 0
        stamps = pyarrow.array(now_ms - (fractions * past).astype(numpy.int64)).cast(pyarrow.timestamp("ms"))
        return stamps.cast(pyarrow.timestamp("ms", "UTC")) if root is Root.TIMESTAMP_LTZ else stamps


def _strings(draws: NDArray[np.uint64], length: int) -> pyarrow.Array:
    """Hexadecimal digits."""
    import numpy
    import pyarrow

    rows = len(draws)
    blocks = -(-length // 16)
    parts = numpy.stack([drawn(draws.astype(numpy.int64), block) for block in range(blocks)], axis=1)
    nibbles = numpy.stack([(parts.view(numpy.uint8) >> 4), (parts.view(numpy.uint8) & 15)], axis=2)
    digits = numpy.frombuffer(b"0123456789abcdef", numpy.uint8)[nibbles.reshape(rows, -1)[:, :length]]
    offsets = numpy.arange(rows + 1, dtype=numpy.int32) * length
    buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(numpy.ascontiguousarray(digits))]
    return pyarrow.Array.from_buffers(pyarrow.string(), rows, buffers)


class GeneratedRows(NumberedRows):
    """Rows by their numbers.

    Args:
        fields: of the table.
        schema: of the rows.
    """

    def __init__(self, fields: tuple[GeneratedField, ...], schema: pyarrow.Schema) -> None:
        self._fields, self._schema = fields, schema
        self.depends_on_clock = any(field.type.is_timestamp for field in fields)

    def rows(self, numbers: NDArray[np.int64], now_ms: int) -> pyarrow.RecordBatch:
        import pyarrow

        columns = [field.values(numbers, now_ms) for field in self._fields]
        return pyarrow.RecordBatch.from_arrays(columns, schema=self._schema)


@dataclass(frozen=True)
class DatagenSource(TableSource):
    """Made-up rows.

    Args:
        count: how many; None: no end.
        rate: rows a second, of all subtasks together.
    """

    schema: tuple[Attribute, ...]
    fields: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    count: int | None
    rate: int

    @property
    def is_bounded(self) -> bool:  # type: ignore[override]
        """Return whether the rows end."""
        return self.count is not None

    def limited(self, rows: int) -> TableSource | None:
        return replace(self, count=rows if self.count is None else min(rows, self.count))

    def stream(self, env: StreamExecutionEnvironment, strategy: WatermarkStrategy | None, name: str) -> DataStream:
        settings = {field: dict(options) for field, options in self.fields}
        fields = tuple(
            GeneratedField(column.name, column.type, settings.get(column.name, {})) for column in self.schema
        )
        source = DataGeneratorSource(None, self.count, self.rate)
        return GeneratedRows(fields, arrow_schema(self.schema)).stream(env, source, strategy, name, "Rows")


class Datagen(Connector):
    """Tables of made-up rows."""

    name = "datagen"
    options: Mapping[str, Option] = {
        "rows-per-second": Option(whole_from(1), 10_000),
        "number-of-rows": Option(whole_from(0), None),
    }
    prefixes = ("fields.",)

    def source(self, table: Connected) -> TableSource:
        fields: dict[str, dict[str, str]] = {}
        names = [column.name for column in table.schema]
        for key, text in table.formats.items():
            name, _, setting = key.removeprefix("fields.").rpartition(".")
            if name not in names:
                problem = f"{table.table} has an option {key!r}, and no column {name!r}{nearest(name, names)}"
                raise SqlError(problem, f"the columns are {', '.join(names)}")
            if setting not in _SETTINGS:
                problem = (
                    f"{table.table} has an option {key!r}, which 'datagen' does not know{nearest(setting, _SETTINGS)}"
                )
                raise SqlError(problem, f"the settings of a field are {', '.join(_SETTINGS)}")
            fields.setdefault(name, {})[setting] = text
        counts = [table.options["number-of-rows"]] if table.options["number-of-rows"] is not None else []
        for column in table.schema:
            field = GeneratedField(column.name, column.type, fields.get(column.name, {}))
            _check(field, table.table)
            if field.sequence is not None:
                counts.append(field.sequence[1] - field.sequence[0] + 1)
        options = tuple((name, tuple(settings.items())) for name, settings in fields.items())
        return DatagenSource(table.schema, options, min(counts, default=None), table.options["rows-per-second"])


def _check(field: GeneratedField, table: str) -> None:
    """Check whether the values of a column can be made.

    Raises:
        SqlError: they cannot.
    """
    kinds = (*_BOUNDS, Root.BOOLEAN, Root.FLOAT, Root.DOUBLE, Root.DECIMAL, Root.TIMESTAMP, Root.TIMESTAMP_LTZ)
    if field.type.root not in kinds and not field.type.is_text:
        problem = f"column {field.name!r} of {table} is of type {field.type}, which 'datagen' does not make"
        raise SqlError(problem, "use numbers, strings, truth values or timestamps, and compute others in a query")
    kind = field.settings.get("kind", "random")
    if kind not in ("random", "sequence"):
        raise SqlError(f"column {field.name!r} of {table} is of kind {kind!r}", "expected random or sequence")
    if kind == "sequence" and not {"start", "end"} <= field.settings.keys():
        raise SqlError(f"the sequence {field.name!r} of {table} has no start or end", "give both")
    try:
        [float(field.settings[name]) for name in ("min", "max", "start", "end", "length", "null-rate")
                   if name in field.settings]  # fmt: skip
    except ValueError as error:
        problem = f"a setting of column {field.name!r} of {table} is not a number ({error})"
        raise SqlError(problem, "write one") from error
    low, high = field.settings.get("min"), field.settings.get("max")
    if low is not None and high is not None and float(low) > float(high):
        raise SqlError(f"column {field.name!r} of {table} has a min of {low} and a max of {high}", "swap them")
    _check_range(field, table)


def _check_range(field: GeneratedField, table: str) -> None:
    """Check whether the settings of a column are numbers that its type and its maker can have.

    Raises:
        SqlError: one is not.
    """
    bits = _BOUNDS.get(field.type.root)
    ranges: dict[str, tuple[float, float]] = {"null-rate": (0, 1), "length": (0, _MOST_LENGTH)}
    if bits is not None:
        ranges.update(dict.fromkeys(("min", "max", "start", "end"), (-(2**bits), 2**bits - 1)))
    for name, (least, most) in ranges.items():
        text = field.settings.get(name)
        whole = name != "null-rate"
        if text is None or (is_number(text, whole) and least <= (int(text) if whole else float(text)) <= most):
            continue
        kind = "a whole number" if whole else "a number"
        problem = f"column {field.name!r} of type {field.type} of {table} has a {name} of {text!r}"
        raise SqlError(problem, f"write {kind} within [{least}, {most}]")
    if field.sequence is not None and field.sequence[0] > field.sequence[1] + 1:
        start, end = field.sequence
        problem = f"the sequence {field.name!r} of {table} starts at {start} and ends at {end}"
        raise SqlError(problem, "swap them")
