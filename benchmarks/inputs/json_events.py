"""JSON events as bytes: those of Nexmark, persons, auctions and bids in each other's fields, and flat ones."""

from __future__ import annotations

import json

import numpy
import pyarrow

from rayflink.connectors.nexmark import AUCTION, BID, PERSON, Nexmark

_SIZES = (690, 690, 640)
"""Of persons, auctions and bids, so that an event with names and marks has about 840 bytes."""
_TEXT, _LONG = pyarrow.string(), pyarrow.int64()
KINDS = {
    "person": {"id": _LONG, "name": _TEXT, "emailAddress": _TEXT, "creditCard": _TEXT, "city": _TEXT, "state": _TEXT,
               "dateTime": _TEXT, "extra": _TEXT},
    "auction": {"id": _LONG, "itemName": _TEXT, "description": _TEXT, "initialBid": _LONG, "reserve": _LONG,
                "dateTime": _TEXT, "expires": _TEXT, "seller": _LONG, "category": _LONG, "extra": _TEXT},
    "bid": {"auction": _LONG, "bidder": _LONG, "price": _LONG, "channel": _TEXT, "url": _TEXT, "dateTime": _TEXT,
            "extra": _TEXT},
}  # fmt: skip
"""Field of an event -> the fields within it."""
FLAT = {**{f"n{number}": _LONG for number in range(10)}, **{f"s{number}": _TEXT for number in range(10)}}


def nexmark_lines(events: int) -> list[bytes]:
    """Return events of Nexmark, each an object of which two of three fields are null."""
    rules = Nexmark(sizes=_SIZES)
    lines = [b""] * events
    columns = {PERSON: rules.persons, AUCTION: rules.auctions, BID: rules.bids}
    for (kind, columns_of), name in zip(columns.items(), KINDS, strict=True):
        numbers = rules.numbers(kind, 0, events)
        fields = {
            field: column.cast(_TEXT) if pyarrow.types.is_timestamp(column.type) else column
            for field, column in columns_of(numbers).items()
        }
        for number, row in zip(numbers.tolist(), pyarrow.table(fields).to_pylist(), strict=True):
            event = {"event_type": kind, **dict.fromkeys(KINDS), name: row}
            lines[number] = json.dumps(event, separators=(",", ":")).encode()
    return lines


def flat_lines(events: int) -> list[bytes]:
    """Return objects of ten numbers and ten short strings, about 200 bytes each."""
    draw = numpy.random.default_rng(0)
    numbers, lengths = draw.integers(0, 100_000, (events, 10)).tolist(), draw.integers(0, 4, (events, 10)).tolist()
    names = list(FLAT)
    return [
        json.dumps(
            dict(zip(names, [*row, *("abcd"[:size] for size in sizes)], strict=True)), separators=(",", ":")
        ).encode()
        for row, sizes in zip(numbers, lengths, strict=True)
    ]


def fields_of(name: str, *fields: str) -> pyarrow.Schema:
    """Return the schema of one nested object with some of its fields."""
    return pyarrow.schema([(name, pyarrow.struct([(field, KINDS[name][field]) for field in fields]))])


CASES = {
    "2 fields of bid": fields_of("bid", "auction", "price"),
    "4 fields of bid": fields_of("bid", "auction", "bidder", "price", "dateTime"),
    "5 fields of bid (q0)": fields_of("bid", "auction", "bidder", "price", "dateTime", "extra"),
    "all nested": pyarrow.schema([(name, pyarrow.struct(list(fields.items()))) for name, fields in KINDS.items()]),
    "3 of 20 flat": pyarrow.schema([(name, FLAT[name]) for name in ("n1", "n7", "s3")]),
    "20 of 20 flat": pyarrow.schema(list(FLAT.items())),
}
"""What is read -> the schema; of flat events where it says so."""
