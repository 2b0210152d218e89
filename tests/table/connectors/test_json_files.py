"""Tables in JSON files: what is written is read again, by Flink's rules; what is broken is an error with its line."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.connector_base.malformed_records import MalformedRecords
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.output_tag import OutputTag
from rayflink.common.records.batches import ArrowBatch
from rayflink.connectors.files.file_blocks import splits_of
from rayflink.table import DataTypes, EnvironmentSettings, SqlError, TableEnvironment
from rayflink.table.connectors import json_format
from rayflink.table.connectors.json_format import JsonFormat
from rayflink.table.connectors.json_strings import JsonColumns
from rayflink.table.plan.logical import Attribute, Schema
from rayflink.table.types import DataType


@pytest.fixture
def t_env() -> TableEnvironment:
    found = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    found.get_config().set_string("execution.target", "local")
    found.get_config().set_string("table.local-time-zone", "UTC")
    return found


def columns(*types: DataType) -> Schema:
    return tuple(Attribute(f"f{at}", kind) for at, kind in enumerate(types))


def read(text: str | bytes, schema: Schema, tmp_path: Path, **options: Any) -> list[tuple[Any, ...]]:
    path = tmp_path / "t.json"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    form = JsonFormat(schema, **options)
    rows: list[tuple[Any, ...]] = []
    for split in splits_of([str(path)], 1):
        cursor = form.open_split(split)
        while (batch := cursor.read(1000)) is not None:
            assert isinstance(batch, ArrowBatch)
            rows += [tuple(row.values()) for row in batch.data.to_pylist(maps_as_pydicts="strict")]
        cursor.close()
    return rows


def written(values: list[Any], kind: DataType, **options: Any) -> list[str]:
    data = pyarrow.RecordBatch.from_arrays([pyarrow.array(values, kind.to_arrow())], ["a"])
    strings: list[str] = JsonColumns((Attribute("a", kind),), **options).strings(data).to_pylist()
    return strings


T = DataTypes
ROW = T.ROW([("x", T.INT()), ("at", T.TIMESTAMP(3)), ("list", T.ARRAY(T.BYTES()))])
TYPES = [T.BOOLEAN(), T.TINYINT(), T.SMALLINT(), T.INT(), T.BIGINT(), T.FLOAT(), T.DOUBLE(), T.DECIMAL(20, 4),
         T.STRING(), T.CHAR(3), T.BYTES(), T.DATE(), T.TIME(0), T.TIME(3), T.TIMESTAMP(0), T.TIMESTAMP(3),
         T.TIMESTAMP(6), T.TIMESTAMP(9), T.TIMESTAMP_LTZ(3), T.ARRAY(T.STRING()), T.ARRAY(T.ARRAY(T.DATE())),
         T.MAP(T.STRING(), T.DECIMAL(5, 2)), T.MULTISET(T.STRING()), ROW,
         T.ARRAY(ROW), T.MAP(T.STRING(), ROW)]  # fmt: skip


def values_of(kind: DataType) -> st.SearchStrategy[Any]:
    """Values that pyarrow takes for a type, null among them."""
    root = kind.root.value
    bits = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}
    steps = 10 ** (6 - min(kind.precision, 6))
    moments = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1)).map(
        lambda one: one.replace(microsecond=one.microsecond // steps * steps)
    )
    found: st.SearchStrategy[Any]
    if root in bits:
        found = st.integers(-(1 << bits[root]), (1 << bits[root]) - 1)
    elif root in ("FLOAT", "DOUBLE"):
        found = st.floats(width=32 if root == "FLOAT" else 64, allow_nan=False)
    elif root == "DECIMAL":
        limit = Decimal(10) ** (kind.precision - kind.scale) - 1
        found = st.decimals(-limit, limit, places=kind.scale)
    elif root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        found = moments
    elif root == "TIME":
        found = moments.map(lambda one: one.time())
    elif root == "ARRAY":
        found = st.lists(values_of(kind.items[0]), max_size=3)
    elif root == "MAP":
        found = st.dictionaries(st.text(max_size=4), values_of(kind.items[1]), max_size=3).map(
            lambda one: list(one.items())
        )
    elif root == "MULTISET":
        found = st.dictionaries(st.text(max_size=4), st.integers(1, 9), max_size=3).map(lambda one: list(one.items()))
    elif root == "ROW":
        found = st.fixed_dictionaries({field.name: values_of(field.type) for field in kind.fields})
    else:
        found = {"BOOLEAN": st.booleans(), "VARCHAR": st.text(max_size=8), "CHAR": st.text(max_size=3),
                 "VARBINARY": st.binary(max_size=8), "DATE": st.dates(datetime.date(1, 1, 1))}[root]  # fmt: skip
    return st.none() | found


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.data(), st.booleans(), st.booleans())
def test_what_is_written_is_read_again(tmp_path_factory, data, iso, ignores):
    kinds = data.draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    schema = columns(*kinds)
    rows = data.draw(st.lists(st.tuples(*map(values_of, kinds)), max_size=5))
    fields = [(one.name, one.type.to_arrow()) for one in schema]
    arrays = [pyarrow.array([row[at] for row in rows], kind) for at, (_, kind) in enumerate(fields)]
    batch = pyarrow.RecordBatch.from_arrays(arrays, schema=pyarrow.schema(fields))
    strings = JsonColumns(schema, iso, ignores).strings(batch).to_pylist()
    for text in strings:
        json.loads(text)
    found = read("".join(f"{text}\n" for text in strings), schema, tmp_path_factory.mktemp("json"), iso=iso)
    assert found == [tuple(row.values()) for row in batch.to_pylist(maps_as_pydicts="strict")]


def test_rows_are_written_as_flink_does():
    assert written([1, None], T.INT()) == ['{"a":1}', '{"a":null}']
    assert written([1, None], T.INT(), ignore_null_fields=True) == ['{"a":1}', "{}"]
    assert written(['"\\\n\x01é/'], T.STRING()) == ['{"a":"\\"\\\\\\n\\u0001é/"}']
    assert written([1.0, 1e10, float("nan")], T.DOUBLE()) == ['{"a":1.0}', '{"a":1.0E10}', '{"a":"NaN"}']
    small = [Decimal("0.0000000012"), Decimal("1.5000000000")]
    assert written(small, T.DECIMAL(20, 10)) == ['{"a":1.2E-9}', '{"a":1.5}']
    assert written(small, T.DECIMAL(20, 10), plain_decimals=True) == ['{"a":0.0000000012}', '{"a":1.5000000000}']
    moment = [datetime.datetime(2020, 1, 2, 3, 4, 5, 600000), datetime.datetime(2020, 1, 2)]
    assert written(moment, T.TIMESTAMP(3)) == ['{"a":"2020-01-02 03:04:05.6"}', '{"a":"2020-01-02 00:00:00"}']
    assert written(moment[:1], T.TIMESTAMP_LTZ(3), iso=True) == ['{"a":"2020-01-02T03:04:05.6Z"}']
    assert written([b"\x00\xff"], T.BYTES()) == ['{"a":"AP8="}']
    assert written([[("k", None)], []], T.MAP(T.STRING(), T.INT())) == ['{"a":{"k":null}}', '{"a":{}}']


TAKEN = [
    ('"12"', T.INT(), 12), ("1.9", T.INT(), 1), ("12", T.STRING(), "12"), ("1.50", T.STRING(), "1.50"),
    ('{"x": [1.50, "y"]}', T.STRING(), '{"x":[1.5,"y"]}'), ('"1.5"', T.DOUBLE(), 1.5),
    ("2.345", T.DECIMAL(5, 2), Decimal("2.35")),
    ("1e9", T.DECIMAL(5, 2), None), ('"true"', T.BOOLEAN(), True), ('"x"', T.BOOLEAN(), False),
    ('"NaN"', T.STRING(), "NaN"),
    ('"2020-01-02 03:04:05.123456"', T.TIMESTAMP(3), datetime.datetime(2020, 1, 2, 3, 4, 5, 123000)),
    ('"1000-01-02 03:04:05"', T.TIMESTAMP(3), datetime.datetime(1000, 1, 2, 3, 4, 5)), ("true", T.STRING(), "true"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "kind", "expected"), TAKEN)
def test_values_of_other_forms_are_taken_as_flink_takes_them(value, kind, expected, tmp_path):
    assert read(f'{{"f0": {value}}}\n', columns(kind), tmp_path) == [(expected,)]


BROKEN = [
    (b'{"f0": 1}\n{"f0": \n', "line 2: .*Expecting value"),
    (b'{"f0": 1}\nnull\n', "line 2: None is found, an object is wanted"),
    (b'{"f0": 1}null\n', "line 1: .*Extra data"), (b'{"f0": 1}{"f0": 2}\n', "line 1: .*Extra data"),
    (b'\n\n{"f0": "x"}\n', "line 3: field 'f0': .*wanted"),
    (b'{"f0": 99999999999}\n', "line 1: field 'f0': .* INT does not hold"),
    (b'{"f0": 1, "f1": "\xff"}\n', "line 1: .*utf-8"), (b'{"f0": {"x": 1}}\n', "line 1: field 'f0'"),
    (b'{"f1": ' + b"[" * 100_000 + b"\n", "line 1: "),
    (b'{"f2": "2020-01-02T00:00:00"}\n', "line 1: field 'f2'.*TIMESTAMP"),
    (b'{"f2": "2020-13-02 00:00:00"}\n', "line 1: field 'f2'"), (b'{"f0": true}\n', "line 1: field 'f0'"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_a_broken_line_is_an_error_with_its_place_or_skipped_and_counted(text, message, tmp_path):
    schema = columns(T.INT(), T.STRING(), T.TIMESTAMP(3))
    with pytest.raises(ValueError, match=f"t.json', {message}"):
        read(text, schema, tmp_path)
    metrics = MetricGroup()
    (tmp_path / "t.json").write_bytes(b'{"f0": 7}\n' + text)
    form = JsonFormat(schema, skips=True).counting(metrics)
    cursor = form.open_split(splits_of([str(tmp_path / "t.json")], 1)[0])
    batch = cursor.read(100)
    assert isinstance(batch, ArrowBatch)
    assert batch.data.column(0)[0].as_py() == 7 and metrics.counter("numRecordsInErrors").get_count() >= 1


def test_a_broken_line_of_a_later_part_has_its_place(tmp_path, monkeypatch):
    monkeypatch.setattr(json_format, "_PART_BYTES", 20)
    schema, good = columns(T.INT()), '{"f0": 1}\n' * 5
    with pytest.raises(ValueError, match="line 6: "):
        read(f"{good}{{\n{good}", schema, tmp_path)
    form = JsonFormat(schema).with_malformed_records(MalformedRecords.side_output(OutputTag("malformed")))
    cursor = form.open_split(splits_of([str(tmp_path / "t.json")], 1)[0])
    assert len(cursor.read(100)) == 10
    [malformed] = cursor.read(100).batch.values
    assert malformed.place.endswith("line 6")
    assert cursor.read(100) is None


def test_a_missing_field_is_null_or_an_error(tmp_path):
    schema = columns(T.INT(), T.STRING())
    text = '{"f0": 1, "f1": null}\n{"f0": 2}\n'
    assert read(text, schema, tmp_path) == [(1, None), (2, None)]
    with pytest.raises(ValueError, match="line 2: field 'f1' is missing"):
        read(text, schema, tmp_path, fails_on_missing=True)


def test_a_large_file_is_read_in_parts_that_replay(tmp_path):
    path = tmp_path / "t.json"
    path.write_text("".join(f'{{"f0": {n}, "f1": "{"x" * 50}"}}\n' for n in range(60_000)))
    form = JsonFormat(columns(T.INT()))
    splits = splits_of([str(path)], 3)
    assert len(splits) == 3
    found: list[int] = []
    for split in splits:
        cursor = form.open_split(split)
        while (batch := cursor.read(7_001)) is not None:
            found += batch.data.column(0).to_pylist()  # type: ignore[union-attr]
            split = cursor.position()
            cursor.close()
            cursor = form.open_split(split)
    assert found == list(range(60_000))


def test_a_table_is_written_and_read_by_sql(t_env, tmp_path):
    (tmp_path / "t").mkdir()
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path / 't'}', 'format' = 'json'"
    t_env.execute_sql(
        f"CREATE TABLE t (n BIGINT, w STRING, m MAP<STRING, INT>, r ROW<a INT, b ARRAY<STRING>>) WITH ({options})"
    )
    t_env.execute_sql("INSERT INTO t SELECT 1, 'x', MAP['k', 2], ROW(3, ARRAY['y', 'z'])").wait()
    (file,) = (tmp_path / "t").glob("part-*.json")
    assert file.read_text() == '{"n":1,"w":"x","m":{"k":2},"r":{"a":3,"b":["y","z"]}}\n'
    assert t_env.sql_query("SELECT r, n FROM t").to_arrow().to_pylist() == [{"r": {"a": 3, "b": ["y", "z"]}, "n": 1}]


@pytest.mark.parametrize(("more", "message"), [
    ("'json.timestamp-format.standard' = 'RFC'", "expected SQL or ISO-8601"),
    ("'json.ignore-parse-errors' = 'maybe'", "expected true or false"),
    ("'json.fail-on-missing-field' = 'true', 'json.ignore-parse-errors' = 'true'", "are both true"),
    ("'json.fail-on-missing' = 'true'", "did you mean fail-on-missing-field"),
])  # fmt: skip
def test_wrong_options_are_reported_before_anything_starts(t_env, more, message, tmp_path):
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'json', {more}"
    t_env.execute_sql(f"CREATE TABLE t (a INT) WITH ({options})")
    with pytest.raises(SqlError, match=message):
        t_env.execute_sql("SELECT a FROM t")


def test_what_flink_makes_of_odd_lines(tmp_path):
    """The rows are those that Flink 2.3 gives with json.ignore-parse-errors."""
    lines = """{"n":"12","w":12,"e":2.345,"ts":"2020-01-02 03:04:05.123456","d":"1.5","b":"true"}
{"n":1.9,"w":1.50,"e":99999,"ts":"2020-01-02T03:04:05","d":"NaN","b":"x"}
{"n":true,"w":{"x": [1.50, "y"]},"e":"x","ts":"2020-01-02 03:04","d":1,"b":1}
nothing
{"n":99999999999,"w":null,"e":"1e1","ts":5,"d":true,"b":null}
[{"n":7},{"n":8}]

null
{"n":3,"n":4,"unknown":1}
"""
    kinds = [T.INT(), T.STRING(), T.DECIMAL(5, 2), T.TIMESTAMP(3), T.DOUBLE(), T.BOOLEAN()]
    schema = tuple(Attribute(name, kind) for name, kind in zip(["n", "w", "e", "ts", "d", "b"], kinds, strict=True))
    found = read(lines, schema, tmp_path, skips=True)
    moment = datetime.datetime(2020, 1, 2, 3, 4, 5, 123000)
    assert repr(found) == repr([
        (12, "12", Decimal("2.35"), moment, 1.5, True), (1, "1.50", None, None, float("nan"), False),
        (None, '{"x":[1.5,"y"]}', None, None, 1.0, False), (None, None, Decimal("10.00"), None, None, None),
        (7, None, None, None, None, None), (8, None, None, None, None, None), (4, None, None, None, None, None),
    ])  # fmt: skip


def test_strings_with_half_a_surrogate_pair_and_numbers_beyond_a_decimal(tmp_path):
    schema = columns(T.STRING(), T.DECIMAL(38, 18))
    names = [one.name for one in schema]
    lines = [('"x\\ud800y"', "1"), ('{"k": "\\udc00"}', "1E+2"), ('"z"', "1E+30")]
    text = "".join(f'{{"{names[0]}": {one}, "{names[1]}": {other}}}\n' for one, other in lines)
    found = read(text, schema, tmp_path)
    assert found == [("x?y", Decimal(1)), ('{"k":"?"}', Decimal(100)), ("z", None)]
