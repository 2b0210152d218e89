"""Lines and values that a reader cannot take: each error names file and line, wherever in the block they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rayflink.common import Types
from rayflink.connectors.files.file_source import FileSource
from rayflink.connectors.formats.csv_files import CsvFileSource
from rayflink.connectors.formats.csv_schema import CsvReaderFormat, CsvSchema
from rayflink.connectors.formats.json_files import JsonLinesFormat
from rayflink.connectors.formats.misfits import may_be_large
from tests.connectors.reading import read

pyarrow = pytest.importorskip("pyarrow")

LISTS = CsvSchema.builder().add_string_column("a").add_array_column("n", "#", Types.INT()).set_column_separator("|")


def _csv(path: Path, kind: Any) -> CsvFileSource:
    return CsvFileSource(path, schema=pyarrow.schema([("a", kind), ("n", pyarrow.int64())]))


@pytest.mark.parametrize(
    ("content", "source", "message"),
    [
        (
            b"\xff,n\nx,1\n",
            lambda p: _csv(p, pyarrow.string()),
            r"line 1: byte 0 is no UTF-8 text .*; write the file in",
        ),
        (b"\xff,n\nx,1\n", CsvFileSource, "line 1: byte 0 is no UTF-8 text"),
        (b"a,n\nx,1\n\xff,2\nz,3\n", lambda p: _csv(p, pyarrow.string()), "line 3: .*invalid UTF8"),
        (b"a,n\n1,1\n\n1E+30,2\n", lambda p: _csv(p, pyarrow.decimal128(10, 2)), "line 4: .*'1E.30'"),
        (
            b"a,n\n1,1\n\n1E+30,2\n3,3\n",
            lambda p: _csv(p, pyarrow.decimal128(38, 18)),
            r"line 4: in column 'a': 1e\+30 is too large for decimal128\(38, 18\); correct the line",
        ),
        (
            b"1|1\n2|2\n1|1#x\n1|2\n",
            lambda p: FileSource(CsvReaderFormat.for_schema(LISTS.build()), [p]),
            "line 3: in column 'n': .*'x' as a scalar of type int32",
        ),
        (
            b'{"a": 1}\n{"a": 2}\n\n{"a": 1e30}\n{"a": 3}\n',
            lambda p: FileSource(JsonLinesFormat(pyarrow.schema([("a", pyarrow.decimal128(38, 18))])), [p]),
            "line 4: .*is too large for decimal128",
        ),
        (
            b'{"a": "x"}\n{"a": "\\ud800"}\n',
            lambda p: FileSource(JsonLinesFormat(pyarrow.schema([("a", pyarrow.string())])), [p]),
            "line 2: .*surrogate",
        ),
    ],
)
def test_what_cannot_be_read_is_named_by_file_and_line(
    tmp_path: Path, content: bytes, source: Any, message: str
) -> None:
    (tmp_path / "hard").write_bytes(content)
    with pytest.raises(ValueError, match=rf"hard', {message}"):
        read(source(tmp_path / "hard"))


def test_decimals_with_exponents_that_fit_are_read(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a,n\n1E+2,1\n1.5E-2,2\n,3\n9e9,4\n")
    found = read(_csv(tmp_path / "f", pyarrow.decimal128(38, 18)))
    assert [None if row.a is None else float(row.a) for row in found] == [100.0, 0.015, None, 9e9]


def test_text_is_searched_for_exponents_only_where_decimals_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[bytes] = []
    monkeypatch.setattr("rayflink.connectors.formats.csv_dialect.may_be_large", searched.append)
    (tmp_path / "f").write_text("a,n\n1,1\n")
    read(_csv(tmp_path / "f", pyarrow.float64()))
    assert not searched
    read(_csv(tmp_path / "f", pyarrow.decimal128(38, 18)))
    assert searched


@pytest.mark.parametrize(
    ("text", "is_large"),
    [(b"", False), (b"e", False), (b"1e5", True), (b"1.E+5", True), (b"x1E-5,apple,2e", False), (b"a;7e+2\n", True)],
)
def test_exponents_in_text(text: bytes, is_large: bool) -> None:
    assert may_be_large(text) is is_large


def test_half_a_surrogate_pair_in_json_is_a_question_mark_as_in_flink(tmp_path: Path) -> None:
    (tmp_path / "f").write_text('{"a": "x\\ud800y"}\n{"a": "\\ud83d\\ude00"}\n')
    rows = read(FileSource(JsonLinesFormat(Types.ROW_NAMED(["a"], [Types.STRING()])), [tmp_path / "f"]))
    assert [row.a for row in rows] == ["x?y", "\U0001f600"]
