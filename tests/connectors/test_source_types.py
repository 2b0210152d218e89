"""What sources know before they are read: the type of their records, and where their files are."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from rayflink.common import PlanError, Types, WatermarkStrategy
from rayflink.common.errors import InvalidTypesError
from rayflink.connectors.files.file_source import FileSource, StreamFormat
from rayflink.connectors.formats.csv_files import CsvFileSource
from rayflink.connectors.formats.csv_schema import CsvReaderFormat, CsvSchema
from rayflink.connectors.formats.json_files import JsonLinesFormat
from rayflink.connectors.formats.parquet_files import ParquetFormat
from rayflink.connectors.formats.text_files import TextFileSource
from rayflink.connectors.generator import NumberSequenceSource
from rayflink.connectors.hybrid_source import HybridSource
from rayflink.connectors.socket_text import SocketTextSource
from tests.connectors.reading import read
from tests.datastream.programs import environment

OF = Types.ROW_NAMED(["n"], [Types.LONG()])
TEXTS = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "f").build()
CSV = CsvReaderFormat.for_schema(CsvSchema.builder().add_number_column("n").build())


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (NumberSequenceSource(1, 2), Types.LONG()),
        (TextFileSource("f"), Types.STRING()),
        (TEXTS, Types.STRING()),
        (SocketTextSource("localhost", 1), Types.STRING()),
        (FileSource(CSV, ["f"]), OF),
        (FileSource(JsonLinesFormat(OF), ["f"]), OF),
        (HybridSource([NumberSequenceSource(1, 2), NumberSequenceSource(5, 6)]), Types.LONG()),
        (HybridSource([NumberSequenceSource(1, 2), TEXTS]), Types.PICKLED_BYTE_ARRAY()),
        (FileSource(JsonLinesFormat(), ["f"]), Types.PICKLED_BYTE_ARRAY()),
    ],
)
def test_a_stream_has_the_type_of_its_source(source: Any, kind: Any) -> None:
    stream = environment().from_source(source, WatermarkStrategy.no_watermarks(), "s")
    assert stream.get_type() == kind
    declared = environment().from_source(source, WatermarkStrategy.no_watermarks(), "s", Types.CHAR())
    assert declared.get_type() == Types.CHAR()


def test_a_declared_type_may_be_a_hint() -> None:
    source = environment().from_source(NumberSequenceSource(1, 2), None, "s", str)
    function = environment().add_source(lambda: iter(["a"]), type_info=list[int])
    assert (source.get_type(), function.get_type()) == (Types.STRING(), Types.LIST(Types.BIG_INT()))
    with pytest.raises(InvalidTypesError, match="'str' is not a type"):
        environment().from_source(NumberSequenceSource(1, 2), None, "s", "str")


def test_sequences_and_text_files_of_the_environment_have_their_types() -> None:
    env = environment()
    assert env.from_sequence(1, 3).get_type() == Types.LONG()
    assert env.read_text_file("f").get_type() == Types.STRING()
    with pytest.raises(PlanError):
        env.from_sequence(1, 3).union(env.from_collection(["a"], Types.STRING()))


@pytest.mark.parametrize("way", ["text", "csv", "parquet", "glob", "file:"])
def test_a_relative_path_begins_where_the_program_builds_the_source(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "f.csv").write_text("n\n1\n")
    parquet.write_table(pyarrow.table({"n": [1]}), tmp_path / "data" / "f.parquet")
    other = tmp_path / "other"  # where a file of the same name has something else
    (other / "data").mkdir(parents=True)
    (other / "data" / "f.csv").write_text("n\n2\n2\n")
    monkeypatch.chdir(tmp_path)
    sources: dict[str, Any] = {
        "text": lambda: TextFileSource("data/f.csv"),
        "csv": lambda: CsvFileSource("data/f.csv"),
        "parquet": lambda: FileSource.for_bulk_file_format(ParquetFormat(), "data/f.parquet").build(),
        "glob": lambda: TextFileSource("./data/*.csv"),
        "file:": lambda: TextFileSource("file:data/f.csv"),
    }
    source = pickle.dumps(sources[way]())
    monkeypatch.chdir(other)
    values = [str(record) if isinstance(record, str) else str(record.n) for record in read(pickle.loads(source))]
    assert [value for value in values if value != "n"] == ["1"]
