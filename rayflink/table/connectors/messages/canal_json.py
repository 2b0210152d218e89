"""`canal-json` and `maxwell-json`: envelopes with the new row, and of the old one the fields that have changed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rayflink.common.metrics.metric_group import Counter
from rayflink.common.records.batches import ArrowBatch, Batch

from ...plan.logical import Attribute, Schema
from ...types import DataType, DataTypes
from ..contract import Option
from .change_json import (
    BadEnvelopes,
    ChangeJson,
    ChangeJsonDecoder,
    Changes,
    Wanted,
    milliseconds,
    refuse_missing,
    refuse_unknown,
)  # fmt: skip
from .change_rows import DELETE, INSERT, NOTHING, UPDATE, chosen, operations_of, struct_columns
from .json_messages import JsonDecoder

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from numpy.typing import NDArray

    from .change_rows import Operations, Positions


def rows_before(
    names: Sequence[str], new: pyarrow.StructArray, old: pyarrow.StructArray, operations: Operations,
    may_be_null: Callable[[int], bool], old_fields: Callable[[int], Mapping[str, object]],
) -> list[pyarrow.Array]:  # fmt: skip
    """Return the columns of the rows before: for updates the old fields where there are some, else the new ones.

    A field that is null in columns is either missing, so it has not changed, or was NULL before. Where that makes a
    difference the message is looked at again.

    Args:
        names: of the columns.
        may_be_null: row -> False if no old field of it can be null in its message.
        old_fields: row -> the old fields in its message.
    """
    import numpy

    is_update = operations == UPDATE
    columns = []
    for name, now, was in zip(names, struct_columns(new, names), struct_columns(old, names), strict=True):
        is_old: NDArray[np.bool_] = is_update & was.is_valid().to_numpy(zero_copy_only=False)
        unclear = is_update & ~is_old & now.is_valid().to_numpy(zero_copy_only=False)
        for row in numpy.flatnonzero(unclear).tolist():
            is_old[row] = may_be_null(row) and name in old_fields(row)
        columns.append(chosen(now, was, is_old))
    return columns


def null_follows_old(message: bytes) -> bool:
    """Return False if no old field in an envelope can be null."""
    return message.find(b"null", max(message.find(b'"old"'), 0)) >= 0


def _fields_in(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


class MaxwellJsonDecoder(ChangeJsonDecoder):
    """Decodes Maxwell's envelopes."""

    operations = {"insert": INSERT, "update": UPDATE, "delete": DELETE}

    def envelope(self) -> Schema:
        row = self._wanted.row_type()
        kinds = {
            "database": DataTypes.STRING(), "table": DataTypes.STRING(), "ts": DataTypes.BIGINT(),
            "primary_key_columns": DataTypes.ARRAY(DataTypes.STRING()),
        }  # fmt: skip
        names = dict.fromkeys(_MAXWELL[key] for key in self._wanted.metadata.values())
        rows = Attribute("data", row), Attribute("old", row), Attribute("type", DataTypes.STRING())
        return (*rows, *(Attribute(name, kinds[name]) for name in names))

    def changes(self, data: pyarrow.RecordBatch, messages: Sequence[bytes]) -> Changes:
        import numpy

        new, old, kinds = data.columns[:3]
        operations, unknown = operations_of(kinds, self.operations)
        refuse_unknown(kinds, unknown, "type", list(self.operations))
        refuse_missing(new, operations != NOTHING, "'data' is null, a row is wanted")
        refuse_missing(old, operations == UPDATE, "'old' of an update is null, the changed fields are wanted")
        names = self._wanted.names
        before = rows_before(
            names, new, old, operations, lambda row: null_follows_old(messages[row]),
            lambda row: _fields_in(json.loads(messages[row]).get("old")),
        )  # fmt: skip
        return Changes(before, struct_columns(new, names), operations, numpy.arange(data.num_rows))

    def metadata(self, key: str, data: pyarrow.RecordBatch) -> pyarrow.Array:
        from pyarrow import compute

        column = data.column(data.schema.get_field_index(_MAXWELL[key]))
        return milliseconds(compute.multiply(column, 1000)) if key == "ingestion-timestamp" else column


_MAXWELL = {
    "database": "database", "table": "table", "primary-key-columns": "primary_key_columns",
    "ingestion-timestamp": "ts",
}  # fmt: skip
"""Key of metadata -> field of the envelope; `ts` counts seconds."""


class MaxwellJson(ChangeJson):
    """Maxwell's envelopes."""

    name = "maxwell-json"
    decoder_class = MaxwellJsonDecoder
    insertion = ('{"data":', ',"type":"insert"}')
    deletion = ('{"data":', ',"type":"delete"}')
    metadata = {
        "database": "STRING",
        "table": "STRING",
        "primary-key-columns": "ARRAY<STRING>",
        "ingestion-timestamp": "TIMESTAMP_LTZ(3)",
    }


class CanalJsonDecoder(ChangeJsonDecoder):
    """Decodes Canal's envelopes, each of which has any number of rows; of DDL statements they have none."""

    operations = {"INSERT": INSERT, "UPDATE": UPDATE, "DELETE": DELETE, "CREATE": NOTHING}

    def __init__(self, wanted: Wanted, errors: Counter | None = None) -> None:
        super().__init__(wanted, errors)
        self._of_strings: JsonDecoder | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "_of_strings": None}

    def parsed(self, messages: Sequence[bytes]) -> tuple[Batch, Sequence[int] | None]:
        """Return the envelopes; Canal writes numbers as strings, which become numbers by columns."""
        import pyarrow

        numbers = [column.name for column in self._wanted.columns if _is_number(column.type)]
        if not messages or not _has_strings(messages[0], numbers):
            return super().parsed(messages)
        if self._of_strings is None:
            self._of_strings = JsonDecoder(self._envelope(_as_strings(self._wanted.row_type())), self._wanted.iso)
        try:
            batch, indices = self._of_strings.deserialize_batch(messages)
            assert isinstance(batch, ArrowBatch)
            data = batch.data
            rows = pyarrow.list_(self._wanted.row_type().to_arrow())
            columns = [_numbers_in(column, rows) for column in data.columns[:2]] + data.columns[2:]
            names = data.schema.names
            return ArrowBatch(pyarrow.RecordBatch.from_arrays(columns, names=names)), indices
        except ValueError:  # a string is no number, or a message malformed: they are looked at value by value
            return super().parsed(messages)

    def envelope(self) -> Schema:
        return self._envelope(self._wanted.row_type())

    def _envelope(self, row: DataType) -> Schema:
        rows = DataTypes.ARRAY(row)
        fields = dict.fromkeys(_CANAL[key] for key in self._wanted.metadata.values())
        filters = [name for name in ("database", "table") if self._wanted.options[f"{name}.include"] is not None]
        fields.update(dict.fromkeys(filters))
        envelope = Attribute("data", rows), Attribute("old", rows), Attribute("type", DataTypes.STRING())
        return (*envelope, *(Attribute(name, _CANAL_FIELDS[name]) for name in fields))

    def changes(self, data: pyarrow.RecordBatch, messages: Sequence[bytes]) -> Changes:
        import numpy
        import pyarrow

        new, old, kinds = data.columns[:3]
        is_wanted = self._is_wanted(data)
        operations, unknown = operations_of(kinds, self.operations)
        refuse_unknown(kinds, [row for row in unknown if is_wanted[row]], "type", list(self.operations))
        operations = numpy.where(is_wanted, operations, NOTHING).astype(numpy.int8)
        refuse_missing(new, operations != NOTHING, "'data' is null, an array of rows is wanted")
        sizes = numpy.where(operations == NOTHING, 0, _sizes(new))
        _refuse_short(sizes, _sizes(old), operations)
        origins = numpy.repeat(numpy.arange(data.num_rows), sizes)
        within = numpy.arange(len(origins)) - numpy.repeat(numpy.cumsum(sizes) - sizes, sizes)
        new_rows = new.values.take(pyarrow.array(_begins(new)[origins] + within))
        of_update = operations[origins] == UPDATE
        old_places = pyarrow.array(_begins(old)[origins] + within, mask=~of_update)
        old_rows = old.values.take(old_places)
        names = self._wanted.names
        before = rows_before(
            names, new_rows, old_rows, operations[origins], lambda row: null_follows_old(messages[int(origins[row])]),
            lambda row: _fields_in(json.loads(messages[int(origins[row])])["old"][within[row]]),
        )  # fmt: skip
        return Changes(before, struct_columns(new_rows, names), operations[origins], origins)

    def _is_wanted(self, data: pyarrow.RecordBatch) -> NDArray[np.bool_]:
        """Return whether each message is of the databases and tables that the options name."""
        import numpy

        is_wanted = numpy.ones(data.num_rows, bool)
        for name in ("database", "table"):
            pattern = self._wanted.options[f"{name}.include"]
            if isinstance(pattern, re.Pattern):
                column = data.column(data.schema.get_field_index(name)).dictionary_encode()
                fits = [value is not None and bool(pattern.fullmatch(value)) for value in column.dictionary.to_pylist()]
                places = column.indices.fill_null(len(fits)).to_numpy(zero_copy_only=False)
                is_wanted &= numpy.array([*fits, False])[places]
        return is_wanted

    def wanted_messages(self, messages: Sequence[bytes]) -> Sequence[int] | None:
        patterns = {name: self._wanted.options[f"{name}.include"] for name in ("database", "table")}
        if not any(patterns.values()):
            return None
        return [index for index, message in enumerate(messages) if _fits(message, patterns)]

    def metadata(self, key: str, data: pyarrow.RecordBatch) -> pyarrow.Array:
        column = data.column(data.schema.get_field_index(_CANAL[key]))
        return milliseconds(column) if key.endswith("-timestamp") else column


def _is_number(kind: DataType) -> bool:
    return kind.is_exact or kind.is_approximate


def _has_strings(message: bytes, names: Sequence[str]) -> bool:
    """Return whether a field of the first row in a message is a string."""
    try:
        rows = _fields_in(json.loads(message)).get("data")
    except ValueError:
        return False
    row = _fields_in(rows[0]) if isinstance(rows, list) and rows else {}
    return any(isinstance(row.get(name), str) for name in names)


def _as_strings(row: DataType) -> DataType:
    """Return a row type with strings for numbers."""
    kinds = [(field.name, DataTypes.STRING() if _is_number(field.type) else field.type) for field in row.fields]
    return DataTypes.ROW([DataTypes.FIELD(*pair) for pair in kinds])


def _numbers_in(lists: pyarrow.ListArray, wanted: pyarrow.DataType) -> pyarrow.ListArray:
    """Return lists of rows whose strings have become numbers where they are wanted.

    Raises:
        pyarrow.ArrowInvalid: a string is none.
    """
    import pyarrow

    rows = lists.values
    fields = list(wanted.value_type)
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip([rows.field(place) for place in range(len(fields))], fields, strict=True)
    ]
    mask = rows.is_null() if rows.null_count else None
    typed = pyarrow.StructArray.from_arrays(columns, fields=fields, mask=mask)
    is_null = lists.is_null() if lists.null_count else None
    return pyarrow.ListArray.from_arrays(lists.offsets, typed, wanted, mask=is_null)


def _fits(message: bytes, patterns: Mapping[str, object]) -> bool:
    """Return whether a message is of the tables that are wanted, or malformed, which its reader finds out."""
    try:
        fields = _fields_in(json.loads(message))
    except ValueError:
        return True
    pairs = [(pattern, fields.get(name)) for name, pattern in patterns.items() if isinstance(pattern, re.Pattern)]
    return all(isinstance(value, str) and pattern.fullmatch(value) is not None for pattern, value in pairs)


def _sizes(lists: pyarrow.ListArray) -> Positions:
    """Return the number of elements of each list; -1 where there is no list."""
    from pyarrow import compute

    sizes: Positions = compute.list_value_length(lists).fill_null(-1).to_numpy(zero_copy_only=False)
    return sizes


def _begins(lists: pyarrow.ListArray) -> Positions:
    """Return the position of the first element of each list in `values`."""
    begins: Positions = lists.offsets.to_numpy()[:-1]
    return begins


def _refuse_short(new_sizes: Positions, old_sizes: Positions, operations: Operations) -> None:
    """Check that updates have an old row for each new one.

    Raises:
        BadEnvelopes: some have not.
    """
    import numpy

    short = numpy.flatnonzero((operations == UPDATE) & (old_sizes < new_sizes)).tolist()
    if short:
        row = short[0]
        problem = f"'data' of an update has {new_sizes[row]} rows, 'old' has {max(old_sizes[row], 0)}"
        raise BadEnvelopes(short, f"{problem}; one old row for each new one is wanted")


_CANAL = {
    "database": "database", "table": "table", "sql-type": "sqlType", "pk-names": "pkNames",
    "ingestion-timestamp": "ts", "event-timestamp": "es",
}  # fmt: skip
"""Key of metadata -> field of the envelope."""
_CANAL_FIELDS: Mapping[str, DataType] = {
    "database": DataTypes.STRING(), "table": DataTypes.STRING(),
    "sqlType": DataTypes.MAP(DataTypes.STRING(), DataTypes.INT()), "pkNames": DataTypes.ARRAY(DataTypes.STRING()),
    "ts": DataTypes.BIGINT(), "es": DataTypes.BIGINT(),
}  # fmt: skip


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"a regular expression ({error})") from error


class CanalJson(ChangeJson):
    """Canal's envelopes."""

    name = "canal-json"
    options = {"database.include": Option(_pattern), "table.include": Option(_pattern), **ChangeJson.options}
    decoder_class = CanalJsonDecoder
    insertion = ('{"data":[', '],"type":"INSERT"}')
    deletion = ('{"data":[', '],"type":"DELETE"}')
    metadata = {
        "database": "STRING",
        "table": "STRING",
        "sql-type": "MAP<STRING, INT>",
        "pk-names": "ARRAY<STRING>",
        "ingestion-timestamp": "TIMESTAMP_LTZ(3)",
        "event-timestamp": "TIMESTAMP_LTZ(3)",
    }


__all__ = ["CanalJson", "MaxwellJson"]
