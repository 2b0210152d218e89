"""The strings that Flink 2.1's CSV and JSON formats of files write, type by type."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow
import pytest

from rayflink.common.records.csv_by_columns import quoted
from rayflink.common.records.csv_marks import CsvMarks
from rayflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from rayflink.table.connectors.csv_columns import CsvColumns
from rayflink.table.connectors.json_strings import JsonColumns
from rayflink.table.plan.logical import Attribute

STAMP = datetime(2015, 7, 14, 23, 59, 55)


@pytest.mark.parametrize(
    ("value", "kind", "csv", "json"),
    [
        (Decimal("1.10"), DataTypes.DECIMAL(10, 2), "1.1", "1.1"),
        (Decimal("227.000"), DataTypes.DECIMAL(10, 3), "227", "227"),
        (Decimal("100"), DataTypes.DECIMAL(10, 0), "1E+2", "1E+2"),
        (Decimal("-120.00"), DataTypes.DECIMAL(10, 2), "-1.2E+2", "-1.2E+2"),
        (Decimal("0.000"), DataTypes.DECIMAL(10, 3), "0", "0"),
        (Decimal("10.01"), DataTypes.DECIMAL(10, 2), "10.01", "10.01"),
        (Decimal("1E-8"), DataTypes.DECIMAL(38, 8), "1E-8", "1E-8"),
        (Decimal("2.70E-8"), DataTypes.DECIMAL(38, 10), "2.7E-8", "2.7E-8"),
        (1.1, DataTypes.FLOAT(), "1.1", "1.1"),
        (1e10, DataTypes.FLOAT(), "1.0E10", "1.0E10"),
        (1e-5, DataTypes.DOUBLE(), "1.0E-5", "1.0E-5"),
        (float("nan"), DataTypes.FLOAT(), "NaN", '"NaN"'),
        (STAMP, DataTypes.TIMESTAMP(6), '"2015-07-14 23:59:55"', '"2015-07-14 23:59:55"'),
        (
            STAMP.replace(microsecond=120_000),
            DataTypes.TIMESTAMP(6),
            '"2015-07-14 23:59:55.12"',
            '"2015-07-14 23:59:55.12"',
        ),
        (STAMP, DataTypes.TIMESTAMP_LTZ(3), '"2015-07-14 23:59:55Z"', '"2015-07-14 23:59:55Z"'),
        (date(1997, 5, 19), DataTypes.DATE(), "1997-05-19", '"1997-05-19"'),
        (time(12), DataTypes.TIME(), "12:00:00", '"12:00:00"'),
        (True, DataTypes.BOOLEAN(), "true", "true"),
        ("two words", DataTypes.STRING(), '"two words"', '"two words"'),
        ("a-b", DataTypes.STRING(), "a-b", '"a-b"'),
        ('"', DataTypes.STRING(), '""""', '"\\""'),
        (None, DataTypes.STRING(), "", "null"),
    ],
)
def test_a_value_has_the_text_that_flink_writes(value: Any, kind: Any, csv: str, json: str) -> None:
    data = pyarrow.RecordBatch.from_arrays(
        [pyarrow.array([value], kind.to_arrow()), pyarrow.array([7], pyarrow.int32())], names=["a", "b"]
    )
    assert CsvColumns().lines(data).to_pylist() == [f"{csv},7\n"]
    schema = (Attribute("a", kind), Attribute("b", DataTypes.INT()))
    assert JsonColumns(schema).strings(data).to_pylist() == [f'{{"a":{json},"b":7}}']


@pytest.mark.parametrize(
    "marks", [CsvMarks(), CsvMarks("\t"), CsvMarks(";", "'"), CsvMarks(escape="\\"), CsvMarks(escape="|", quote="'")]
)
def test_a_column_of_strings_is_quoted_as_each_text_is(marks: CsvMarks) -> None:
    plain = ["", "a", "a-b", "é", "null", "x" * 24, "\U0001f600" * 12]
    special = ["a b", "a,b", 'a"b', "it's", "a\\b", "a|b", "a\nb", "a\tb", "\0", "x" * 25, "\U0001f600" * 13]
    strings = [*plain, *special, None]
    assert quoted(pyarrow.array(strings), marks).to_pylist() == [text and marks.quoted(text) for text in strings]


def test_decimals_are_plain_where_that_is_asked_for() -> None:
    column = pyarrow.array([Decimal("100"), Decimal("1E-8")], pyarrow.decimal128(20, 8))
    data = pyarrow.RecordBatch.from_arrays([column], names=["a"])
    assert CsvColumns(plain_decimals=True).lines(data).to_pylist() == ["100.00000000\n", "0.00000001\n"]


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ("", 'a,"it\'s ""5\\6""",1E+2'),
        (", 'csv.escape-character' = '\\'", 'a,"it\'s ""5\\\\6""",1E+2'),
        (", 'csv.quote-character' = ''''", "a,'it''s \"5\\6\"',1E+2"),
        (", 'csv.disable-quote-character' = 'true'", 'a,it\'s "5\\6",1E+2'),
        (", 'csv.write-bigdecimal-in-scientific-notation' = 'false'", 'a,"it\'s ""5\\6""",100'),
    ],
)
def test_options_of_csv_say_how_rows_are_written(tmp_path: Any, more: str, line: str) -> None:
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    t_env.get_config().set_string("execution.target", "local")
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv'{more}"
    t_env.execute_sql(f"CREATE TABLE t (a STRING, b STRING, c DECIMAL(9, 0)) WITH ({options})")
    t_env.execute_sql("INSERT INTO t SELECT 'a', 'it''s \"5\\6\"', CAST(100 AS DECIMAL(9, 0))").wait()
    (part,) = tmp_path.glob("part-*")
    assert part.read_text() == f"{line}\n"
    assert t_env.from_path("t").to_arrow().to_pydict() == {"a": ["a"], "b": ['it\'s "5\\6"'], "c": [Decimal(100)]}
