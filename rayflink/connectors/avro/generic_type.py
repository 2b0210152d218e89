"""The type of records that are dicts of an Avro schema."""

from __future__ import annotations

from collections.abc import Sequence

from rayflink.common.data_types.basic_types import PickledBytesTypeInfo
from rayflink.common.data_types.type_base import Fault
from rayflink.common.errors import shorten
from rayflink.user_types import UserValue

from .avro_schema import AvroSchema, fastavro_package


class GenericRecordAvroTypeInfo(PickledBytesTypeInfo):
    """The type of dicts with the fields of an Avro schema; values are checked, and not changed.

    >>> schema = AvroSchema({"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]})
    >>> GenericRecordAvroTypeInfo(schema)
    GenericRecordAvroTypeInfo({"type":"record","name":"R","fields":[{"name":"n","type":"int"}]})

    Args:
        schema: of the records.
    """

    python_form = "a dict with the fields of the schema"

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema

    def get_schema(self) -> AvroSchema:
        """Return the schema of the records."""
        return self._schema

    def _fault(self, value: UserValue, path: str) -> Fault | None:
        return None if self._fits(value) else Fault(
            path, shorten(value, 80), f"a record of {shorten(str(self._schema), 120)}",
            "map it to a dict with these fields",
        )  # fmt: skip

    def _column_fits(self, values: Sequence[UserValue]) -> bool:
        return all(map(self._fits, values))

    def _fits(self, value: UserValue) -> bool:
        return bool(fastavro_package().validate(value, self._schema.definition, raise_errors=False))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GenericRecordAvroTypeInfo) and self._schema == other._schema

    def __hash__(self) -> int:
        return hash(self._schema)

    def __repr__(self) -> str:
        return f"GenericRecordAvroTypeInfo({self._schema})"


__all__ = ["GenericRecordAvroTypeInfo"]
