"""Nexmark's events as files, and the tables that read them.

Each kind of event has files of its own, in CSV or Parquet, so that a query reads what it asks for and no engine spends
its time on parting kinds. As JSON they are those of the official generator: all kinds in one table, each event an
object of which two of three fields are null, and a view for each kind.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import BinaryIO

import numpy
import polars
import pyarrow as pa
from pyarrow import compute, csv, parquet

from rayflink.connectors.nexmark import AUCTION, BID, PERSON, Nexmark

FORMATS = ("csv", "parquet", "json")
_CHUNK = 1 << 20
_RULES = Nexmark()
_TURN = 1_000
"""Events after which the next file has its turn, where a kind has several."""
_SIDE_ROWS = 10_000
_KINDS = {"person": PERSON, "auction": AUCTION, "bid": BID}
_COLUMNS = {
    "person": "id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, "
    "`dateTime` TIMESTAMP(3), extra STRING",
    "auction": "id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, "
    "`dateTime` TIMESTAMP(3), expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra STRING",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), "
    "extra STRING",
}
_WATERMARK = "WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND"
_TIME_OF_EVENT = """`dateTime` AS CASE
    WHEN event_type = 0 THEN person.`dateTime` WHEN event_type = 1 THEN auction.`dateTime` ELSE bid.`dateTime` END"""
SIDE_OPTIONS = "'connector' = 'filesystem', 'path' = '{path}/side_input', 'format' = 'csv'"
FLINK_SIDE_OPTIONS = "'connector' = 'side-input', 'path' = '{path}/side_input/part-0.csv'"
"""Of Flink, whose own table of files has no lookups any more; see `flink/SqlSession.java`."""


def tables(file_format: str = "csv", side_options: str = SIDE_OPTIONS) -> str:
    """Return the statements that create the tables, divided by semicolons, with {path} in them.

    Args:
        file_format: one of `FORMATS`.
        side_options: of the table `side_input`.

    >>> tables("parquet").split(";")[3][-37:]
    "'{path}/bid', 'format' = 'parquet')"
    """
    side = f"CREATE TABLE side_input (key BIGINT, `value` STRING) WITH ({side_options})"
    if file_format != "json":
        kinds = (
            f"CREATE TABLE {kind} ({columns}, {_WATERMARK})\n  "
            f"WITH ('connector' = 'filesystem', 'path' = '{{path}}/{kind}', 'format' = '{file_format}')"
            for kind, columns in _COLUMNS.items()
        )
        return ";\n".join([side, *kinds])
    rows = ", ".join(f"{kind} ROW<{columns}>" for kind, columns in _COLUMNS.items())
    events = (
        f"CREATE TABLE datagen (event_type INT, {rows}, {_TIME_OF_EVENT}, {_WATERMARK})\n  "
        "WITH ('connector' = 'filesystem', 'path' = '{path}/datagen', 'format' = 'json')"
    )
    views = [
        f"CREATE VIEW {kind} AS SELECT {_columns_of(kind)} FROM datagen WHERE event_type = {number}"
        for kind, number in _KINDS.items()
    ]
    return ";\n".join([side, events, *views])


def _columns_of(kind: str) -> str:
    names = [column.split(" ")[0] for column in _COLUMNS[kind].split(", ")]
    return ", ".join(name if name == "`dateTime`" else f"{kind}.{name}" for name in names)


TABLES = tables()
"""Those of CSV files."""


def event_files(
    directory: Path, events: int, parts: int = 1, rules: Nexmark = _RULES, file_format: str = "csv"
) -> Path:
    """Return the folder with the first `events` events, made unless it is there, and the side input of q13.

    Args:
        parts: files for each table, which have events in turns; a source that gives a file to one reader needs several.
        file_format: one of `FORMATS`.
    """
    name = f"nexmark-{events}-{rules.events_per_second}-seed-{rules.seed}-parts-{parts}"
    folder = directory / (name if file_format == "csv" else f"{name}-{file_format}")
    if not folder.exists():
        partial = folder.with_name(f"{folder.name}.{os.getpid()}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        for table in ("datagen",) if file_format == "json" else _KINDS:
            (partial / table).mkdir(parents=True)
            _write(partial / table, events, parts, rules, file_format)
        partial.replace(folder)
    side = folder / "side_input" / "part-0.csv"
    if not side.exists():
        side.parent.mkdir(exist_ok=True)
        side.write_text("".join(f"{number},{number}\n" for number in range(_SIDE_ROWS)))
    return folder


def _write(folder: Path, events: int, parts: int, rules: Nexmark, file_format: str) -> None:
    files = [(folder / f"part-{part}.{file_format}").open("wb") for part in range(parts)]
    writers: dict[int, parquet.ParquetWriter] = {}
    for start in range(0, events, _CHUNK):
        stop = min(start + _CHUNK, events)
        numbers = numpy.arange(start, stop)
        if file_format != "json":
            numbers = rules.numbers(_KINDS[folder.name], start, stop)
        turns = numbers // _TURN % parts
        for part, file in enumerate(files):
            mine = numbers[turns == part] if parts > 1 else numbers
            table = _nested(mine, rules) if file_format == "json" else pa.table(_made(folder.name, mine, rules))
            if file_format == "parquet":
                writer = writers.setdefault(part, parquet.ParquetWriter(file, table.schema))
                writer.write_table(table)
            else:
                _write_lines(table, file, file_format)
    for writer in writers.values():
        writer.close()
    for file in files:
        file.close()


def _write_lines(table: pa.Table, file: BinaryIO, file_format: str) -> None:
    if file_format == "csv":
        csv.write_csv(table, file, csv.WriteOptions(include_header=False, quoting_style="none"))
    else:
        frame = polars.from_arrow(table)
        assert isinstance(frame, polars.DataFrame)
        frame.write_ndjson(file)


def _made(kind: str, numbers: numpy.ndarray, rules: Nexmark) -> dict[str, pa.Array]:
    return {"person": rules.persons, "auction": rules.auctions, "bid": rules.bids}[kind](numbers)


def _nested(numbers: numpy.ndarray, rules: Nexmark) -> pa.Table:
    """Return one row for each event, of which the fields of the other kinds are null, with times as strings."""
    kinds = rules.kinds(numbers)
    columns: dict[str, pa.Array] = {"event_type": pa.array(kinds, pa.int32())}
    for kind, number in _KINDS.items():
        is_this = kinds == number
        made = _made(kind, numbers[is_this], rules)
        strings = {
            name: compute.strftime(column, "%Y-%m-%d %H:%M:%S") if pa.types.is_timestamp(column.type) else column
            for name, column in made.items()
        }
        rows = pa.StructArray.from_arrays(list(strings.values()), list(strings))
        columns[kind] = rows.take(pa.array(numpy.cumsum(is_this) - 1, mask=~is_this))
    return pa.table(columns)


__all__ = ["FLINK_SIDE_OPTIONS", "FORMATS", "SIDE_OPTIONS", "TABLES", "event_files", "tables"]
