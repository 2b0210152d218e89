"""Parsers of JSON, one core: MB/s of events from which some fields become columns, or objects of Python."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable
from typing import Any

BLOCK_BYTES = 1 << 20
Parse = Callable[[list[bytes]], object]
"""Parses the blocks of lines of a case."""


def run(data_path: str = "", events: int = 40_000, rounds: int = 5) -> dict[str, Any]:
    """MB/s of processor time by parser and case, the best of the rounds, which take the parsers in turns.

    Args:
        data_path: not used; events are made.
        events: of Nexmark; of flat ones there are three times as many.
    """
    os.environ.update(POLARS_MAX_THREADS="1", OMP_NUM_THREADS="1")  # before they are imported
    from benchmarks.inputs.json_events import CASES, flat_lines, nexmark_lines

    inputs = {is_flat: _blocks(flat_lines(3 * events) if is_flat else nexmark_lines(events)) for is_flat in (0, 1)}
    cases: dict[str, tuple[Parse, list[bytes]]] = {}
    for case, schema in CASES.items():
        blocks = inputs[case.endswith("flat")]
        cases |= {f"{case}: {name}": (parse, blocks) for name, parse in _parsers(schema, blocks).items()}
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, (parse, blocks) in cases.items():
            began = time.process_time()
            parse(blocks)
            rate = sum(map(len, blocks)) / 1e6 / (time.process_time() - began)
            best[name] = max(best.get(name, 0.0), rate)
    return {name: round(rate, 1) for name, rate in best.items()}


def _blocks(lines: list[bytes]) -> list[bytes]:
    a_block = BLOCK_BYTES * len(lines) // sum(map(len, lines))
    return [b"\n".join(lines[start : start + a_block]) + b"\n" for start in range(0, len(lines), a_block)]


def _parsers(schema: Any, blocks: list[bytes]) -> dict[str, Parse]:
    """Return the parsers of a case by name."""
    import duckdb
    import orjson
    import polars
    import pyarrow
    import simdjson
    from pyarrow import json

    from rayflink.common.records.json_columns import JsonParser

    ours = JsonParser(schema)
    messages = {id(block): block.splitlines() for block in blocks}
    strings = {id(block): pyarrow.array(messages[id(block)], pyarrow.binary()).cast("string") for block in blocks}
    kinds = dict(polars.from_arrow(schema.empty_table()).schema)  # type: ignore[union-attr]
    connection = duckdb.connect(config={"threads": 1})
    plan = f"SELECT json_transform(j, '{_duckdb_type(pyarrow.struct(list(schema)))}') FROM lines"

    def arrow(block: bytes) -> object:
        options = json.ReadOptions(use_threads=False, block_size=len(block) + 1)
        known = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        return json.read_json(pyarrow.BufferReader(block), options, known)

    def duck(block: bytes) -> object:
        lines = pyarrow.table({"j": strings[id(block)]})
        connection.register("lines", lines)
        return connection.sql(plan).to_arrow_table()

    def decoded(block: bytes) -> object:
        return polars.Series(strings[id(block)]).str.json_decode(polars.Struct(kinds))

    each: dict[str, Callable[[bytes], object]] = {
        "rayflink, lines to columns": ours.lines,
        "rayflink, messages to columns": lambda block: ours.messages(messages[id(block)]),
        "pyarrow.json, to columns": arrow,
        "polars.read_ndjson, to columns": lambda block: polars.read_ndjson(io.BytesIO(block), schema=kinds),
        "polars json_decode, strings to columns": decoded,
        "DuckDB json_transform, strings to columns": duck,
        "pysimdjson, parsed only": lambda block: [simdjson.Parser().parse(line) and 0 for line in messages[id(block)]],
        "orjson, dicts": lambda block: list(map(orjson.loads, messages[id(block)])),
    }

    def of_all(parse: Callable[[bytes], object]) -> Parse:
        return lambda blocks: sum(parse(block) is None for block in blocks)

    return {name: of_all(parse) for name, parse in each.items()}


def _duckdb_type(kind: Any) -> str:
    """Return the structure that DuckDB's json_transform takes."""
    from pyarrow import types

    if types.is_struct(kind):
        return "{" + ",".join(f'"{field.name}":{_duckdb_type(field.type)}' for field in kind) + "}"
    return '"BIGINT"' if types.is_integer(kind) else '"VARCHAR"'
