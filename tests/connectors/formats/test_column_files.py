"""Parquet, Arrow and ORC files as columns, JSON lines, and CSV by PyFlink's schema."""

from __future__ import annotations

import json
import pickle
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rayflink.common import Row, Types
from rayflink.common.configuration import Configuration
from rayflink.common.errors import InvalidTypesError
from rayflink.common.records.arrow_rows import rows_to_arrow
from rayflink.common.records.batches import ArrowBatch, RowBatch
from rayflink.common.records.json_rows import JsonRowSerializationSchema
from rayflink.common.time import Instant
from rayflink.connectors.files import file_blocks
from rayflink.connectors.files.buckets import BucketAssigner
from rayflink.connectors.files.file_blocks import LineBlocks
from rayflink.connectors.files.file_sink import FileSink
from rayflink.connectors.files.file_source import FileSource, StreamFormat
from rayflink.connectors.formats import column_blocks
from rayflink.connectors.formats.arrow_files import ArrowBulkWriters, ArrowFormat
from rayflink.connectors.formats.csv_schema import CsvBulkWriters, CsvReaderFormat, CsvSchema
from rayflink.connectors.formats.json_files import JsonLinesFormat, json_lines_encoder
from rayflink.connectors.formats.orc_files import OrcBulkWriters, OrcFormat
from rayflink.connectors.formats.parquet_files import ParquetBulkWriters, ParquetColumnarRowInputFormat, ParquetFormat
from rayflink.operators.base import UserCodeError
from rayflink.operators.sinks import SinkOperator
from rayflink.table import DataTypes
from tests.connectors.reading import Coordinator, read, read_with_restores
from tests.operators.running import opened

pyarrow = pytest.importorskip("pyarrow")

OF = Types.ROW_NAMED(
    ["n", "t", "day", "many"], [Types.INT(), Types.STRING(), Types.SQL_DATE(), Types.LIST(Types.LONG())]
)
ROWS = [Row(n=at, t=f"t{at}" if at % 3 else None, day=date(2024, 1, 1 + at % 28), many=[at, 1]) for at in range(100)]
KINDS = {
    "parquet": (ParquetBulkWriters.for_row_type(OF), ParquetFormat),
    "arrow": (ArrowBulkWriters.for_row_type(OF), ArrowFormat),
    "orc": (OrcBulkWriters.for_row_type(OF, {"orc.compress": "zstd"}), OrcFormat),
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_blocks, "BLOCK_ROWS", 16)


def _write(folder: Path, factory: Any, *batches: Any) -> Path:
    sink = FileSink.for_bulk_format(str(folder), factory)
    sink = sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    operator = opened(SinkOperator(pickle.loads(pickle.dumps(sink))))
    for batch in batches:
        assert list(operator.process(batch, 0)) == []
    list(operator.finish())
    operator.close()
    (path,) = folder.iterdir()
    return path


def _source(form: Any, *paths: Any) -> FileSource:
    streams = isinstance(form, StreamFormat)
    made: Any = FileSource.for_record_stream_format if streams else FileSource.for_bulk_file_format
    return pickle.loads(pickle.dumps(made(form, *map(str, paths)).build()))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_written_as_columns_and_read_as_columns_in_order(tmp_path: Path, kind: str) -> None:
    factory, form = KINDS[kind]
    path = _write(tmp_path, factory, RowBatch(ROWS[:7]), RowBatch(ROWS[7:]))
    assert isinstance(Coordinator(_source(form(), path)).poll(), ArrowBatch)
    assert isinstance(Coordinator(_source(form(rows=True), path)).poll(), RowBatch)
    assert read(_source(form(), path)) == read(_source(form(rows=True), path)) == ROWS
    assert factory.get_row_type().names == ["n", "t", "day", "many"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("after", "max_records"), [(1, 5), (2, 16), (3, 1)])
def test_files_of_columns_are_resumed_within_their_blocks(
    tmp_path: Path, kind: str, after: int, max_records: int
) -> None:
    factory, form = KINDS[kind]
    path = _write(tmp_path, factory, *[RowBatch(ROWS[at : at + 10]) for at in range(0, 100, 10)])
    assert read_with_restores(_source(form(), path), after, max_records) == ROWS


@pytest.mark.parametrize("kind", KINDS)
def test_columns_go_into_files_and_out_of_them_by_name_and_type(tmp_path: Path, kind: str) -> None:
    factory, form = KINDS[kind]
    data = pyarrow.RecordBatch.from_pylist([row.as_dict() for row in ROWS[:3]], schema=factory.get_row_type())
    path = _write(tmp_path, factory, ArrowBatch(data.select(["many", "day", "t", "n"])))
    wanted = Types.ROW_NAMED(["t", "n"], [Types.STRING(), Types.LONG()])
    batch = Coordinator(_source(form(wanted), path)).poll()
    assert batch.data.schema == pyarrow.schema([("t", pyarrow.string()), ("n", pyarrow.int64())])
    assert read(_source(form(wanted), path)) == [Row(t=row.t, n=row.n) for row in ROWS[:3]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_columns_that_is_none_or_lacks_a_column_is_an_error(tmp_path: Path, kind: str) -> None:
    factory, form = KINDS[kind]
    path = _write(tmp_path, factory, RowBatch(ROWS))
    missing = Types.ROW_NAMED(["n", "x"], [Types.INT(), Types.INT()])
    with pytest.raises(ValueError, match=r"has no column x; leave them out of the row type; it has n, t, day, many"):
        read(_source(form(missing), path))
    wrong = Types.ROW_NAMED(["t"], [Types.INT()])
    with pytest.raises(ValueError, match="column 't' is string, int32 is wanted .*declare the type the file has"):
        read(_source(form(wrong), path))
    content = path.read_bytes()
    for bad in (b"no such file", content[: len(content) // 2]):
        path.write_bytes(bad)
        with pytest.raises(ValueError, match=rf"{path.name}' is no whole .*; write it anew"):
            read(_source(form(), path))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("magic", [b"PAR1", b"ARROW1", b"ORC"])
def test_a_file_of_columns_with_a_broken_end_is_named_with_the_remedy(tmp_path: Path, kind: str, magic: bytes) -> None:
    path = tmp_path / "broken"
    path.write_bytes(magic + bytes(100) + magic)
    with pytest.raises(ValueError, match=r"broken' is no whole \w+ file.*[^\n]\); write it anew"):
        read(_source(KINDS[kind][1](), path))


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_that_does_not_fit_is_named_and_the_file_is_taken_away(tmp_path: Path, kind: str) -> None:
    factory, _ = KINDS[kind]
    sink = FileSink.for_bulk_format(str(tmp_path / "out"), factory).build()
    operator = opened(SinkOperator(sink))
    list(operator.process(RowBatch(ROWS), 0))
    with pytest.raises(UserCodeError, match=r"record Row\(n='x'.*does not fit the sink .*make it so in a map\(\)"):
        operator.process(RowBatch([ROWS[0], Row(n="x", t="", day=None, many=[])]), 0)
    operator.close()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("kind", KINDS)
def test_none_is_refused_where_a_column_is_not_nullable(tmp_path: Path, kind: str) -> None:
    import pyarrow

    schema = pyarrow.schema([pyarrow.field("n", pyarrow.int32(), nullable=False)])
    factory = type(KINDS[kind][0])(schema, *(["ZSTD"] if kind == "orc" else []))
    path = _write(tmp_path / "fits", factory, RowBatch([Row(n=1)]), ArrowBatch(rows_to_arrow([Row(n=2)], schema)))
    assert [row.n for row in read(_source(KINDS[kind][1](rows=True), path))] == [1, 2]
    with pytest.raises(UserCodeError, match=r"record Row\(n=None\) .*\(n: found None, wanted int32 that is not null\)"):
        _write(tmp_path / "not", factory, RowBatch([Row(n=2), Row(n=None)]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("record", [(15.1, "t", None, []), Row(n=15.1, t="t", day=None, many=[])], ids=["tuple", "Row"])
def test_a_number_with_a_fraction_is_refused_where_a_whole_one_is_declared(
    tmp_path: Path, kind: str, record: Any
) -> None:
    sink = FileSink.for_bulk_format(str(tmp_path), KINDS[kind][0]).build()
    operator = opened(SinkOperator(sink))
    wanted = r"record .*15\.1.* does not fit the sink \(n: found float 15\.1, wanted int32; give .*make it so"
    with pytest.raises(UserCodeError, match=wanted):
        operator.process(RowBatch([record]), 0)
    operator.close()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


WHOLE = pyarrow.int64()
LOSSES = [
    (WHOLE, Decimal("1.5"), "v: found Decimal"),
    (pyarrow.list_(WHOLE), [1, 2.5], r"v\[\]: found float 2.5"),
    (pyarrow.struct([("a", WHOLE)]), {"a": 1.5}, "v.a: found float"),
    (pyarrow.struct([("a", WHOLE)]), (1.5,), "v.a: found float"),
    (pyarrow.map_(WHOLE, WHOLE), {1: 1.5}, r"v\[\]: found float"),
    (pyarrow.map_(WHOLE, WHOLE), [(1.5, 1)], "v.key: found float"),
    (pyarrow.timestamp("ms"), datetime(2024, 1, 1, 0, 0, 0, 1_500), "declare a finer unit"),
    (pyarrow.timestamp("us"), 1.5, "found float"),
    (pyarrow.time32("s"), time(1, 2, 3, 4), "declare a finer unit"),
    (pyarrow.date32(), datetime(2024, 1, 1, 5), "declare a type that has the time of day"),
]


@pytest.mark.parametrize(("kind", "value", "told"), LOSSES, ids=str)
def test_no_part_of_a_value_is_lost_in_a_column(kind: Any, value: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        rows_to_arrow([(value,)], pyarrow.schema([("v", kind)]))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (WHOLE, 2**40),
        (pyarrow.float32(), 1.1),
        (pyarrow.timestamp("ms"), datetime(2024, 1, 1, 0, 0, 0, 2_000)),
        (pyarrow.date32(), datetime(2024, 1, 1)),
        (pyarrow.map_(WHOLE, pyarrow.float64()), {1: 1.5}),
        (pyarrow.decimal128(5, 2), Decimal("1.25")),
    ],
    ids=str,
)
def test_values_that_fit_a_column_are_taken(kind: Any, value: Any) -> None:
    assert rows_to_arrow([(value,), (None,)], pyarrow.schema([("v", kind)])).num_rows == 2


def test_row_groups_are_shared_out_over_readers_and_each_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_blocks, "BLOCK_BYTES", 256)
    path = _write(tmp_path, KINDS["parquet"][0], *[RowBatch(ROWS[at : at + 20]) for at in range(0, 100, 20)])
    parts = Coordinator(_source(ParquetFormat(), path), 3).read_all(7)
    assert sorted(row.n for part in parts for row in part) == list(range(100))
    assert sum(map(bool, parts)) > 1


def test_parquet_under_pyflink_s_name(tmp_path: Path) -> None:
    path = _write(tmp_path, KINDS["parquet"][0], RowBatch(ROWS))
    form = ParquetColumnarRowInputFormat(
        row_type=Types.ROW_NAMED(["N"], [Types.INT()]), batch_size=10, is_utc_timestamp=True, is_case_sensitive=False
    )
    assert read(_source(form, path)) == [Row(N=at) for at in range(100)]
    assert len(Coordinator(_source(form, path)).poll()) == 10
    with pytest.raises(ValueError, match="has no column N"):
        read(_source(ParquetColumnarRowInputFormat(Types.ROW_NAMED(["N"], [Types.INT()])), path))
    with pytest.raises(ValueError, match="without Hadoop"):
        ParquetColumnarRowInputFormat(OF, hadoop_config=object())  # type: ignore[arg-type]
    said = Configuration()
    said.set_string("fs.x", "1")
    with pytest.raises(ValueError, match="hadoop_config has fs.x; .*without Hadoop: leave it out, or empty"):
        ParquetBulkWriters.for_row_type(OF, hadoop_config=said)
    with pytest.raises(InvalidTypesError, match="a row type is wanted"):
        ParquetBulkWriters.for_row_type(Types.INT())


def test_times_are_marked_as_utc_where_that_is_asked_for(tmp_path: Path) -> None:
    of = Types.ROW_NAMED(["at"], [Types.SQL_TIMESTAMP()])
    factory = ParquetBulkWriters.for_row_type(of, utc_timestamp=True)
    path = _write(tmp_path, factory, RowBatch([Row(datetime(2024, 1, 1))]))
    batch = Coordinator(_source(ParquetFormat(), path)).poll()
    assert batch.data.schema.field("at").type == pyarrow.timestamp("us", "UTC")


def test_orc_refuses_properties_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="orc.compress is known: NONE, SNAPPY, ZLIB, LZ4, ZSTD; leave others out"):
        OrcBulkWriters.for_row_type(OF, {"orc.stripe.size": "1"})


def test_a_stream_of_arrow_batches_and_a_packed_file_are_read_too(tmp_path: Path) -> None:
    data = pyarrow.RecordBatch.from_pydict({"n": [1, 2, 3]})
    with pyarrow.ipc.new_stream(str(tmp_path / "s"), data.schema) as writer:
        writer.write_batch(data)
        writer.write_batch(data)
    want = [Row(n=n) for n in (1, 2, 3, 1, 2, 3)]
    assert read_with_restores(_source(ArrowFormat(), tmp_path / "s"), 1, 2) == want
    import gzip

    (tmp_path / "p.gz").write_bytes(gzip.compress((tmp_path / "s").read_bytes()))
    assert read(_source(ArrowFormat(), tmp_path / "p.gz")) == want


# types of `DataTypes`


@pytest.mark.parametrize("kind", ["parquet", "orc", "arrow"])
def test_columns_are_declared_by_data_types(tmp_path: Path, kind: str) -> None:
    row_type = DataTypes.ROW([
        DataTypes.FIELD("n", DataTypes.INT()), DataTypes.FIELD("t", DataTypes.STRING()),
        DataTypes.FIELD("p", DataTypes.DECIMAL(10, 2)), DataTypes.FIELD("l", DataTypes.ARRAY(DataTypes.INT())),
    ])  # fmt: skip
    empty = Configuration()
    writers = {
        "parquet": lambda: ParquetBulkWriters.for_row_type(row_type, hadoop_config=empty, utc_timestamp=True),
        "orc": lambda: OrcBulkWriters.for_row_type(row_type, writer_properties=empty, hadoop_config=empty),
        "arrow": lambda: ArrowBulkWriters.for_row_type(row_type),
    }
    formats = {
        "parquet": lambda: ParquetColumnarRowInputFormat(
            hadoop_config=empty, row_type=row_type, batch_size=500, is_utc_timestamp=True, is_case_sensitive=True
        ),
        "orc": lambda: OrcFormat(row_type),
        "arrow": lambda: ArrowFormat(row_type),
    }
    rows = [Row(n=1, t="a", p=Decimal("1.50"), l=[1, None]), Row(n=None, t=None, p=None, l=None)]
    path = _write(tmp_path, writers[kind](), RowBatch(rows))
    assert read(_source(formats[kind](), path)) == rows


def test_a_data_type_that_is_no_row_is_refused() -> None:
    with pytest.raises(InvalidTypesError, match=r"a row type is wanted, found IntType.*; .*DataTypes.ROW"):
        ParquetBulkWriters.for_row_type(DataTypes.INT())


def test_instants_in_parquet_come_back_as_instants(tmp_path: Path) -> None:
    of = Types.ROW_NAMED(["at"], [Types.INSTANT()])
    rows = [Row(at=Instant(1, 5)), Row(at=None), Row(at=Instant(-1, 999_999_999)), Row(at=Instant(9_000_000_000, 0))]
    path = _write(tmp_path, ParquetBulkWriters.for_row_type(of), RowBatch(rows))
    for form in (ParquetColumnarRowInputFormat(of), ParquetFormat(), ParquetFormat(of, rows=True)):
        found = read(_source(form, path))
        assert found == rows and type(found[0].at) is Instant


# JSON lines


@pytest.mark.parametrize(
    ("content", "values"),
    [
        (b"", []),
        (b'{"a": 1}', [{"a": 1}]),
        (b'\xef\xbb\xbf{"a": 1}\r\n\r\n[2]\n\n"x"\n', [{"a": 1}, [2], "x"]),
    ],
)
def test_json_values_one_a_line(tmp_path: Path, content: bytes, values: list[Any]) -> None:
    (tmp_path / "f").write_bytes(content)
    assert read(_source(JsonLinesFormat(), tmp_path / "f")) == values


JSON_OF = Types.ROW_NAMED(["n", "t"], [Types.LONG(), Types.STRING()])


@pytest.mark.parametrize("row_type", [JSON_OF, "columns"])
def test_json_lines_as_rows_and_columns_in_splits_and_resumed(
    tmp_path: Path, row_type: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_blocks, "BLOCK_BYTES", 64)
    monkeypatch.setattr(file_blocks, "SPLIT_BYTES", 256)
    monkeypatch.setattr(LineBlocks.__init__, "__defaults__", (64,))
    if row_type == "columns":
        row_type = pyarrow.schema([("n", pyarrow.int64()), ("t", pyarrow.string())])
    lines = [json.dumps({"t": f"t{n}", "more": [n], "n": n}) for n in range(60)]
    (tmp_path / "f").write_text("\n".join(lines))
    want = [Row(n=n, t=f"t{n}") for n in range(60)]
    source = _source(JsonLinesFormat(row_type), tmp_path / "f")
    parts = Coordinator(source, 3).read_all(5)
    assert all(parts) and sorted((row for part in parts for row in part), key=lambda row: row.n) == want
    assert read_with_restores(source, 2, 3) == want


def test_a_line_that_is_no_json_is_an_error_with_its_number_or_left_out(tmp_path: Path) -> None:
    (tmp_path / "f").write_text('{"n": 1, "t": "a"}\n\n{"n": 2, "t"\n{"n": 3, "t": "c"}\n')
    schema = pyarrow.schema([("n", pyarrow.int64())])
    for row_type in (None, JSON_OF, schema):
        with pytest.raises(ValueError, match=r"f', line 3: .*; correct the line, or pass ignore_parse_errors=True"):
            read(_source(JsonLinesFormat(row_type), tmp_path / "f"))
    assert [row.n for row in read(_source(JsonLinesFormat(JSON_OF, True), tmp_path / "f"))] == [1, 3]
    with pytest.raises(ValueError, match="errors cannot be ignored"):
        JsonLinesFormat(schema, True)
    (tmp_path / "g").write_text('{"n": 1}\n' * 5 + '\n{"n": "x"}\n{"n": 2}\n{"n": "y"}\n')
    with pytest.raises(ValueError, match=r"g', line 7: '{\"n\": \"x\"}' .*; declare types"):
        read(_source(JsonLinesFormat(schema), tmp_path / "g"))


@pytest.mark.parametrize("row_type", [None, JSON_OF])
def test_json_that_lies_too_deep_is_an_error_with_its_line_or_left_out(tmp_path: Path, row_type: Any) -> None:
    (tmp_path / "f").write_text('{"n": 1, "t": "a"}\n' + "[" * 100_000 + '\n{"n": 3, "t": "c"}\n')
    with pytest.raises(ValueError, match=r"f', line 2: .*recursion.*; correct the line, or pass ignore_parse_errors"):
        read(_source(JsonLinesFormat(row_type), tmp_path / "f"))
    assert len(read(_source(JsonLinesFormat(row_type, True), tmp_path / "f"))) == 2


@pytest.mark.parametrize("line", [b"null", b'{"n": 1}null', b'{"n": 1} null', b'{"n": 1}{"n": 2}', b"[null]"])
def test_a_line_that_is_not_just_an_object_is_an_error_where_columns_are_read(tmp_path: Path, line: bytes) -> None:
    """Arrow's parser ends the process at some of these."""
    (tmp_path / "a.json").write_bytes(b'{"n": 1}\n' + line + b"\n")
    form = JsonLinesFormat(pyarrow.schema([("n", pyarrow.int64())]))
    with pytest.raises(Exception, match=r"a\.json', line 2"):
        read(FileSource(form, [tmp_path / "a.json"]))


def test_json_lines_are_written_with_and_without_a_type() -> None:
    assert json_lines_encoder(JSON_OF).encode(Row(1, "ä")) == '{"n":1,"t":"ä"}\n'.encode()
    assert json_lines_encoder().encode({"a": [Row(1, 2), date(2024, 1, 1)]}) == b'{"a":[[1,2],"2024-01-01"]}\n'
    assert json_lines_encoder().encode(float("nan")) == b'"NaN"\n'
    with pytest.raises(TypeError, match="cannot be JSON: set has no JSON; give the type of the records"):
        json_lines_encoder().encode({1})
    assert JsonRowSerializationSchema(JSON_OF).serialize(Row(1, None)) == b'{"n":1,"t":null}'


# CSV by PyFlink's schema


def _schema() -> Any:
    return (
        CsvSchema.builder()
        .add_number_column("id", Types.INT())
        .add_string_column("name")
        .add_boolean_column("yes")
        .add_array_column("many", "#", Types.INT())
        .set_column_separator("|")
    )


CSV_ROWS = [Row(id=1, name="a|b", yes=True, many=[1, 2]), Row(id=2, name="line\nend", yes=None, many=[3])]


def test_rows_become_csv_by_a_schema_and_are_read_again(tmp_path: Path) -> None:
    for name, schema in (
        ("plain", _schema().build()),
        ("header", _schema().set_use_header().set_strict_headers().build()),
        ("quote", _schema().set_quote_char("'").set_null_value("-").build()),
    ):
        path = _write(tmp_path / name, CsvBulkWriters.for_schema(schema), RowBatch(CSV_ROWS))
        assert path.read_text().startswith('"id"|"name"|"yes"|"many"\n1|' if name == "header" else "1|")
        assert read_with_restores(_source(CsvReaderFormat.for_schema(schema), path), 1, 1) == CSV_ROWS
        assert len(schema) == schema.size() == 4


@pytest.mark.parametrize(
    ("content", "change"),
    [
        ("1|x|true|1#2\n", lambda b: b),
        ("\ufeff1|x|true|1#2", lambda b: b),
        ("# a comment\r\n1|x|true|1#2\r\n#\r\n", lambda b: b.set_allow_comments()),
        ("what ever\n1|x|true|1#2\n", lambda b: b.set_skip_first_data_row()),
        ("other|names|here\n1|x|true|1#2\n", lambda b: b.set_use_header()),
        ("\ufeffid|name|yes|many\n1|x|true|1#2", lambda b: b.set_use_header().set_strict_headers()),
        ("1|\\x|true|1#2\n", lambda b: b.set_escape_char("\\")),
        ("1|x|true|1#2\n", lambda b: b.disable_quote_char()),
    ],
)
def test_forms_of_csv(tmp_path: Path, content: str, change: Any) -> None:
    (tmp_path / "f").write_bytes(content.encode())
    form = CsvReaderFormat.for_schema(change(_schema()).build())
    assert read(_source(form, tmp_path / "f")) == [Row(id=1, name="x", yes=True, many=[1, 2])]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('1|x|true|1\n\n2|"a\nb"|true|\n3|x|maybe|\n', "line 5: .*invalid value 'maybe'"),
        ("1|x|true|1\n2|x\n", "line 2: Expected 4 columns, got 2"),
        ('1|x|true|1\n2|"x|true|1\n', "line 2: a quoted value does not end; close or remove the quote"),
    ],
)
def test_malformed_csv_is_an_error_with_its_line(tmp_path: Path, content: str, problem: str) -> None:
    (tmp_path / "f").write_text(content)
    with pytest.raises(ValueError, match=f"f', {problem}"):
        read(_source(CsvReaderFormat.for_schema(_schema().build()), tmp_path / "f"))


def test_headers_must_name_the_columns(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("id|name|many|yes\n")
    with pytest.raises(ValueError, match="has columns id, name, many, yes; wanted are id, name, yes, many; name"):
        schema = _schema().set_use_header().set_strict_headers().build()
        read(_source(CsvReaderFormat.for_schema(schema), tmp_path / "f"))


def test_a_csv_schema_of_data_types_has_decimals_of_their_digits(tmp_path: Path) -> None:
    schema = (
        CsvSchema.builder()
        .add_number_column("id", number_type=DataTypes.INT())
        .add_number_column("price", DataTypes.DECIMAL(10, 2))
        .add_number_column("ratio", DataTypes.FLOAT())
        .add_array_column("list", ",", element_type=DataTypes.DECIMAL(5, 1))
        .add_columns_from(CsvSchema.builder().add_number_column("any", Types.BIG_DEC()).build())
        .set_column_separator("|")
        .build()
    )
    assert schema.get_type_info() == Types.ROW_NAMED(
        ["id", "price", "ratio", "list", "any"],
        [Types.INT(), Types.BIG_DEC(), Types.FLOAT(), Types.LIST(Types.BIG_DEC()), Types.BIG_DEC()],
    )
    rows = [
        Row(id=1, price=Decimal("1.10"), ratio=1.1, list=[Decimal("1.0"), Decimal("20")], any=Decimal("1E-18")),
        Row(id=2, price=Decimal("100"), ratio=None, list=None, any=Decimal("227.000")),
    ]
    path = _write(tmp_path, CsvBulkWriters.for_schema(schema), RowBatch(rows))
    assert path.read_text() == '1|1.1|1.1|"1,2E+1"|1E-18\n2|1E+2|||227\n'
    found = read(_source(CsvReaderFormat.for_schema(schema), path))
    assert [(row.price, row.any, row.list) for row in found] == [(row.price, row.any, row.list) for row in rows]
    wide = RowBatch([Row(1, Decimal("1.234"), 1.0, [], None)])
    with pytest.raises(UserCodeError, match=r"field price: 1.234 does not fit decimal128\(10, 2\).*more digits"):
        _write(tmp_path / "more", CsvBulkWriters.for_schema(schema), wide)
    with pytest.raises(InvalidTypesError, match="a stream has no type for TIMESTAMP"):
        CsvSchema.builder().add_number_column("at", DataTypes.TIMESTAMP(3))


def test_a_csv_escape_character_doubles_itself_and_quotes_are_doubled_by_quotes(tmp_path: Path) -> None:
    schema = CsvSchema.builder().add_string_column("t").add_number_column("n").set_escape_char("\\").build()
    rows = [Row(t='say "a"', n=1), Row(t="a\\b", n=2), Row(t='\\"', n=3)]
    path = _write(tmp_path, CsvBulkWriters.for_schema(schema), RowBatch(rows))
    assert path.read_text() == '"say ""a""",1\n"a\\\\b",2\n"\\\\""",3\n'
    assert read(_source(CsvReaderFormat.for_schema(schema), path)) == rows


def test_a_csv_schema_is_built_column_by_column() -> None:
    base = _schema().build()
    builder = CsvSchema.builder().add_columns_from(base).remove_array_element_separator(3).add_number_column("n")
    assert builder.size() == len(builder) == 5 and builder.build().separator_of("many") == ""
    assert len(builder.clear_columns()) == 0
    with pytest.raises(ValueError, match="columns with different names are wanted"):
        builder.build()
    with pytest.raises(ValueError, match="Column separator must be a single char, found ::"):
        builder.set_column_separator("::")
    with pytest.raises(ValueError, match="add a column for each"):
        builder.set_any_property_name("rest")
