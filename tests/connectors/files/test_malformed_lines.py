"""Lines of files that cannot be read fail the job, are left out, or go to a side output, each once."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from rayflink.common import OutputTag, Row, Types
from rayflink.common.connector_base.malformed_records import MalformedRecord, MalformedRecords
from rayflink.common.errors import JobFailed, PlanError
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import Tagged, rows_of
from rayflink.connectors.files.file_blocks import FileSplit
from rayflink.connectors.files.file_source import FileFormat, FileSource, StreamFormat
from rayflink.connectors.formats.csv_dialect import CsvDialect
from rayflink.connectors.formats.csv_files import CsvFormat
from rayflink.connectors.formats.json_files import JsonLinesFormat
from rayflink.connectors.formats.parquet_files import ParquetFormat
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.table import EnvironmentSettings, TableEnvironment

TAG: OutputTag[MalformedRecord] = OutputTag("malformed")
SCHEMA = pyarrow.schema([("n", pyarrow.int64())])
FORMATS: dict[str, tuple[FileFormat, bytes, bytes]] = {
    "text": (StreamFormat.text_line_format(), b"%d", b"\xff%d"),
    "json": (JsonLinesFormat(), b'{"n": %d}', b'{"n": %d'),
    "json rows": (JsonLinesFormat(Types.ROW_NAMED(["n"], [Types.INT()])), b'{"n": %d}', b'{"n": "%dx"}'),
    "json columns": (JsonLinesFormat(SCHEMA), b'{"n": %d}', b'{"n": "%dx"}'),
    "csv": (CsvFormat(SCHEMA, header="none"), b"%d", b"%d,7"),
}
"""Name -> a format, a line of a number, and one that cannot be read."""
MALFORMED = (0, 3, 4, 11)


def lines_of(good: bytes, bad: bytes, count: int = 12) -> bytes:
    return b"\r\n".join((bad if number in MALFORMED else good) % number for number in range(count)) + b"\n"


def number_of(record: Any) -> int:
    return int(record["n"] if isinstance(record, dict) else record.n if isinstance(record, Row) else record)


Read = tuple[list[int], list[MalformedRecord], "FileSplit | None"]


def read(form: FileFormat, split: FileSplit, most: int, steps: int) -> Read:
    """Numbers, malformed lines, and the position after some steps; None: it is read to the end."""
    cursor, numbers, lines = form.open_split(split), list[int](), list[MalformedRecord]()
    try:
        for _ in range(steps):
            answer = cursor.read(most)
            if answer is None:
                return numbers, lines, None
            if isinstance(answer, Tagged):
                assert answer.tag_id == TAG.tag_id
                lines += rows_of(answer.batch)
            else:
                numbers += map(number_of, rows_of(answer))
        return numbers, lines, cursor.position()
    finally:
        cursor.close()


@pytest.mark.parametrize("name", FORMATS)
def test_each_line_comes_once_wherever_the_reading_stops(name: str, tmp_path: Path) -> None:
    form, good, bad = FORMATS[name]
    path = tmp_path / "lines"
    path.write_bytes(lines_of(good, bad))
    metrics = MetricGroup()
    aside = form.with_malformed_records(MalformedRecords.side_output(TAG)).counting(metrics)
    whole = FileSplit(str(path), 0, path.stat().st_size)
    numbers, lines, _ = read(aside, whole, 100, 100)
    assert numbers == [number for number in range(12) if number not in MALFORMED]
    assert [line.message for line in lines] == [bad % number for number in MALFORMED]
    assert [line.place for line in lines] == [f"{str(path)!r}, line {number + 1}" for number in MALFORMED]
    assert all(line.error for line in lines) and metrics.counter("numRecordsInErrors").get_count() == 4
    for steps in range(1, 12):
        first, first_lines, position = read(aside, whole, 1, steps)
        if position is None:
            assert (first, first_lines) == (numbers, lines)
            break
        rest, rest_lines, _ = read(aside, position, 3, 100)
        assert (first + rest, first_lines + rest_lines) == (numbers, lines), f"stopped after {steps} steps"


@pytest.mark.parametrize("name", FORMATS)
def test_lines_are_left_out_or_fail(name: str, tmp_path: Path) -> None:
    form, good, bad = FORMATS[name]
    path = tmp_path / "lines"
    path.write_bytes(lines_of(good, bad))
    whole = FileSplit(str(path), 0, path.stat().st_size)
    assert read(form.with_malformed_records(MalformedRecords.skip()), whole, 5, 100)[1:] == ([], None)
    with pytest.raises(ValueError, match="line 1"):
        read(form.with_malformed_records(MalformedRecords.fail()), whole, 5, 100)
    path.write_bytes(bad % 1 + b"\n")
    only = FileSplit(str(path), 0, path.stat().st_size)
    numbers, lines, _ = read(form.with_malformed_records(MalformedRecords.side_output(TAG)), only, 5, 100)
    assert (numbers, len(lines)) == ([], 1)


def test_formats_without_lines_refuse_the_policy() -> None:
    builder = FileSource.for_bulk_file_format(ParquetFormat(), "x")
    assert builder.set_malformed_records(MalformedRecords.fail()) is builder
    with pytest.raises(PlanError, match="ParquetFormat cannot pass over.*text, JSON and CSV"):
        builder.set_malformed_records(MalformedRecords.skip())
    several = CsvFormat(SCHEMA, CsvDialect(newlines_in_values=True))
    with pytest.raises(PlanError, match="CsvFormat cannot pass over"):
        several.with_malformed_records(MalformedRecords.skip())


@pytest.mark.slow
def test_a_job_sends_lines_of_packed_files_aside(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(lines_of(b'{"n": %d}', b'{"n": %d')))
    env = StreamExecutionEnvironment({"execution.target": "local"})
    source = FileSource.for_record_stream_format(JsonLinesFormat(), str(tmp_path))
    stream = env.from_source(source.set_malformed_records(MalformedRecords.side_output(TAG)).build(), None, "lines")
    aside = stream.get_side_output(TAG).map(lambda record: record.message.decode())
    with aside.execute_and_collect() as found:
        assert list(found) == [f'{{"n": {number}' for number in MALFORMED]


def tables(**more: str) -> TableEnvironment:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {"execution.target": "local", "parallelism.default": "1", **more}.items():
        t_env.get_config().set(key, value)
    return t_env


@pytest.mark.slow
@pytest.mark.parametrize(("form", "good", "bad"), [("json", b'{"n": %d}', b'{"n": %d'), ("csv", b"%d", b"%d,7")])
def test_sql_fails_skips_or_writes_dead_letters(form: str, good: bytes, bad: bytes, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / f"a.{form}").write_bytes(lines_of(good, bad))
    shared = f"'connector' = 'filesystem', 'path' = '{tmp_path}/in', 'format' = '{form}'"
    t_env = tables()
    for name, options in {
        "failing": "", "skipping": ", 'malformed-records' = 'skip'",
        "aside": f", 'malformed-records' = 'dead-letter', 'dead-letter.path' = '{tmp_path}/dead'",
    }.items():  # fmt: skip
        t_env.execute_sql(f"CREATE TABLE {name} (n INT, `file.name` STRING METADATA) WITH ({shared}{options})")
    wanted = [(number, f"a.{form}") for number in range(12) if number not in MALFORMED]
    for name in ("skipping", "aside"):
        assert [tuple(row) for row in t_env.execute_sql(f"SELECT * FROM {name}").collect()] == wanted
    with pytest.raises(JobFailed, match="line 1"):
        list(t_env.execute_sql("SELECT n FROM failing").collect())
    t_env.execute_sql(f"""CREATE TABLE dead (message BYTES, error STRING, place STRING) WITH (
        'connector' = 'filesystem', 'path' = '{tmp_path}/dead', 'format' = 'json')""")
    letters = list(t_env.execute_sql("SELECT message, error, place FROM dead").collect())
    assert [bytes(message) for message, _, _ in letters] == [bad % number for number in MALFORMED]
    assert all(error and f"a.{form}', line" in place for _, error, place in letters)
    assert {*json.loads(next((tmp_path / "dead").glob("part-*")).read_text().splitlines()[0])} == {
        "message", "error", "place"
    }  # fmt: skip


@pytest.mark.parametrize(("options", "said"), [
    ("'format' = 'json', 'malformed-records' = 'dead-letter'", "no option 'dead-letter.path'"),
    ("'format' = 'json', 'dead-letter.path' = '/x'", "has 'dead-letter.path', and 'malformed-records' is 'fail'"),
    ("'format' = 'parquet', 'malformed-records' = 'skip'", "ParquetFormat cannot pass over.*csv"),
    ("'format' = 'csv', 'csv.newlines-in-values' = 'true', 'malformed-records' = 'skip'", "CsvFormat cannot pass over"),
])  # fmt: skip
def test_options_that_do_not_go_together_are_refused(options: str, said: str, tmp_path: Path) -> None:
    t_env = tables()
    t_env.execute_sql(f"CREATE TABLE t (n INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', {options})")
    with pytest.raises(Exception, match=said):
        t_env.execute_sql("SELECT n FROM t")
