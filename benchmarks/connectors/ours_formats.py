"""Formats of messages, one core: rows a second from messages to columns, beside loops over the bare libraries."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

BATCH = 2_000
"""Messages that are decoded at once, as a source gets them."""
Messages = Sequence[bytes]


def run(data_path: str = "", messages: int = 60_000, rounds: int = 3) -> dict[str, Any]:
    """Thousands of messages a second of processor time by case, the best of the rounds, which take them in turns.

    Args:
        data_path: not used; messages are made.
        messages: of each case.
    """
    os.environ.update(POLARS_MAX_THREADS="1", OMP_NUM_THREADS="1")  # before they are imported
    cases = _cases(messages)
    for decode, batches in cases.values():
        decode(batches[0])  # which loads the libraries
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, (decode, batches) in cases.items():
            began = time.process_time()
            for batch in batches:
                decode(batch)
            rate = sum(map(len, batches)) / 1e3 / (time.process_time() - began)
            best[name] = max(best.get(name, 0.0), rate)
    return {name: round(rate, 1) for name, rate in best.items()}


def _cases(count: int) -> dict[str, tuple[Callable[[Messages], object], Sequence[Messages]]]:
    import fastavro
    import orjson

    from rayflink.connectors.avro.registry_messages import header_of
    from rayflink.table import DataTypes
    from rayflink.table.connectors.avro_types import avro_schema_of
    from rayflink.table.connectors.messages.known_formats import message_format
    from rayflink.table.plan.logical import Attribute

    schema = tuple(
        Attribute(name, kind) for name, kind in {
            "auction": DataTypes.BIGINT(), "bidder": DataTypes.BIGINT(), "price": DataTypes.DOUBLE(),
            "channel": DataTypes.STRING(), "at": DataTypes.TIMESTAMP(3),
        }.items()
    )  # fmt: skip
    names = [column.name for column in schema]
    avro_schema = avro_schema_of(schema)
    parsed = fastavro.parse_schema(avro_schema.definition)
    at = 1_700_000_000_000
    rows = [(n, n * 7, n / 3, f"channel {n % 10}", at + n) for n in range(count)]
    datums = [_datum(fastavro, parsed, dict(zip(names, row, strict=True))) for row in rows]
    registered = [header_of(1) + datum for datum in datums]
    changes = [json.dumps(_envelope(row)).encode() for row in rows]

    def decoder(name: str, **given: object) -> Any:
        form = message_format(name, "t")
        options = {key: option.default for key, option in form.options.items()}
        return form.decoder(schema, names, {**options, **given})

    def by_fastavro(batch: Messages) -> object:
        return [fastavro.schemaless_reader(io.BytesIO(message), parsed) for message in batch]

    confluent = decoder("avro-confluent", url=("http://127.0.0.1:1",))
    confluent._columns._registry._schemas[1] = avro_schema  # as if it had been fetched
    cases: dict[str, tuple[Callable[[Messages], object], Messages]] = {
        "avro: rayflink, columns": (decoder("avro").deserialize_batch, datums),
        "avro: fastavro, dicts": (by_fastavro, datums),
        "avro-confluent: rayflink, columns": (confluent.deserialize_batch, registered),
        "debezium-json: rayflink, columns and kinds": (decoder("debezium-json").deserialize_batch, changes),
        "debezium-json: json, dicts": (lambda batch: list(map(json.loads, batch)), changes),
        "debezium-json: orjson, dicts": (lambda batch: list(map(orjson.loads, batch)), changes),
    }
    return {
        name: (decode, [found[start : start + BATCH] for start in range(0, count, BATCH)])
        for name, (decode, found) in cases.items()
    }


def _datum(fastavro: Any, schema: Any, record: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, record)
    return stream.getvalue()


def _envelope(row: tuple[Any, ...]) -> dict[str, Any]:
    """Return an insertion, update or deletion with the source that Debezium describes."""
    auction, bidder, price, channel, _ = row
    values = {"auction": auction, "bidder": bidder, "price": price, "channel": channel, "at": "2026-01-02 03:04:05.678"}
    source = {
        "version": "3.0.0.Final", "connector": "postgresql", "name": "shop", "ts_ms": 1_700_000_000_000,
        "snapshot": "false", "db": "shop", "sequence": "[null,\"24023128\"]", "schema": "public", "table": "bids",
        "txId": 555, "lsn": 24023128, "xmin": None,
    }  # fmt: skip
    op = "cud"[auction % 3]
    before, after = (None if op == "c" else {**values, "price": 1.0}), (None if op == "d" else values)
    return {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1_700_000_000_001}
