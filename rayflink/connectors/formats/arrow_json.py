"""JSON objects, one a line, as columns by Arrow's parser: for types that `json_columns` does not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .misfits import may_be_large, refuse_large

if TYPE_CHECKING:
    import pyarrow

_NEWLINE, _OPEN, _CLOSE = b"\n{}"


def arrow_table_of(block: bytes, schema: pyarrow.Schema) -> pyarrow.Table | None:
    """Return the columns of a schema; None: not each line is just one object, which Arrow would read as something else.

    Args:
        block: whole lines.

    Raises:
        pyarrow.ArrowInvalid: a line is no JSON, or a value is not of its type.
        UnicodeDecodeError: a text is no UTF-8.
    """
    import pyarrow

    if not block or block.isspace():
        return schema.empty_table()
    objects = _objects_in(block)
    if objects is None:
        return None
    if not block.isascii():
        block.decode("utf-8")  # Arrow does not look
    table = _read(block, schema)
    decimals = [field.with_type(pyarrow.float64()) for field in schema if pyarrow.types.is_decimal(field.type)]
    if decimals and may_be_large(block):
        refuse_large(schema, _read(block, pyarrow.schema(decimals)))
    return table if table.num_rows == objects else None


def _read(block: bytes, schema: pyarrow.Schema) -> pyarrow.Table:
    import pyarrow
    from pyarrow import json

    return json.read_json(
        pyarrow.BufferReader(block),
        json.ReadOptions(use_threads=False, block_size=len(block) + 1),
        json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )


def _objects_in(block: bytes) -> int | None:
    """Return how many lines begin with `{`; None: others are not empty, or something else may stand behind a `}`.

    Arrow 26 ends the process when it finds a null that is no value of an object: before one, or behind one.
    """
    import numpy

    text = numpy.frombuffer(block if block.endswith(b"\n") else block + b"\n", numpy.uint8)
    begins = text[numpy.flatnonzero(text == _NEWLINE)[:-1] + 1]
    empty = int((begins == _NEWLINE).sum()) + int(text[0] == _NEWLINE)
    objects = int((begins == _OPEN).sum()) + int(text[0] == _OPEN)
    if objects + empty != len(begins) + 1:
        return None
    if b"\r" in block and block.count(b"\r\n") != block.count(b"\r"):
        return None
    behind = text[numpy.flatnonzero(text == _CLOSE) + 1]
    return None if ((behind == 0x20) | (behind == 0x09) | (behind == 0x6E)).any() else objects
