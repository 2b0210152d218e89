"""The format `raw`: the bytes of a message are the value of the only column."""

from __future__ import annotations

from typing import Any

import pyarrow
import pytest

from rayflink.common.records.batches import ArrowBatch
from rayflink.table import DataTypes, SqlError
from rayflink.table.connectors.messages.known_formats import message_format
from rayflink.table.plan.logical import Attribute
from rayflink.table.types import DataType

RAW = message_format("raw", "t")
T = DataTypes


def options(charset: str = "utf-8", endianness: str = "big-endian") -> dict[str, Any]:
    return {"charset": RAW.options["charset"].parse(charset), "endianness": endianness}


CASES = [
    (T.STRING(), options(), ["é", "", None], ["é".encode(), b"", None]),
    (T.STRING(), options("latin-1"), ["é", None], [b"\xe9", None]),
    (T.BYTES(), options(), [b"\xff", b"", None], [b"\xff", b"", None]),
    (T.BOOLEAN(), options(), [True, False, None], [b"\x01", b"\x00", None]),
    (T.TINYINT(), options(), [-1], [b"\xff"]),
    (T.SMALLINT(), options(), [1, None], [b"\x00\x01", None]),
    (T.INT(), options(endianness="little-endian"), [1], [b"\x01\x00\x00\x00"]),
    (T.BIGINT(), options(), [-2], [b"\xff" * 7 + b"\xfe"]),
    (T.FLOAT(), options(), [1.5], [b"\x3f\xc0\x00\x00"]),
    (T.DOUBLE(), options(endianness="little-endian"), [1.5, None], [b"\x00\x00\x00\x00\x00\x00\xf8\x3f", None]),
]


@pytest.mark.parametrize("kind, chosen, values, messages", CASES)
def test_values_and_their_bytes(kind: DataType, chosen: Any, values: list[Any], messages: list[Any]) -> None:
    schema = (Attribute("v", kind),)
    batch, indices = RAW.decoder(schema, ["v"], chosen).deserialize_batch(messages)
    assert isinstance(batch, ArrowBatch) and indices is None
    assert batch.data.schema.types == [kind.to_arrow()] and batch.data.to_pydict() == {"v": values}
    data = pyarrow.RecordBatch.from_arrays([pyarrow.array(values, kind.to_arrow())], ["v"])
    assert RAW.encoder(schema, chosen).serialize_batch(ArrowBatch(data)) == messages


@pytest.mark.parametrize("kind, message", [(T.INT(), b"123"), (T.STRING(), b"\xff"), (T.BOOLEAN(), b"")])
def test_malformed_messages_raise(kind: DataType, message: bytes) -> None:
    with pytest.raises(ValueError):
        RAW.decoder((Attribute("v", kind),), ["v"], options()).deserialize_batch([message])


def test_rows_without_columns_are_counted() -> None:
    batch, _ = RAW.decoder((Attribute("v", T.INT()),), [], options()).deserialize_batch([b"1234", b"1234"])
    assert len(batch) == 2


def test_several_columns_and_nested_ones_are_refused() -> None:
    with pytest.raises(SqlError, match="represents one column, and there are 2"):
        RAW.decoder((Attribute("a", T.INT()), Attribute("b", T.INT())), ["a"], options())
    with pytest.raises(SqlError, match="cannot represent column 'a'"):
        RAW.encoder((Attribute("a", T.ARRAY(T.INT())),), options())


def test_unknown_character_sets_are_refused() -> None:
    with pytest.raises(ValueError, match="did you mean"):
        RAW.options["charset"].parse("utf-9")
