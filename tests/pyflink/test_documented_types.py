"""What the page of Flink 2.3 on data types of Python says: the classes of the values of each type."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal

import pytest

from rayflink.common import Row
from rayflink.table import DataTypes
from rayflink.table.expressions import col
from rayflink.table.udf import udf
from tests.pyflink.documented_programs import environment

MOMENT = datetime(2020, 1, 2, 3, 4, 5, 6000)
TYPES = {
    "boolean": (DataTypes.BOOLEAN(), True, "bool"),
    "tinyint": (DataTypes.TINYINT(), 1, "int8"),
    "smallint": (DataTypes.SMALLINT(), 1, "int16"),
    "int": (DataTypes.INT(), 1, "int32"),
    "bigint": (DataTypes.BIGINT(), 1, "int64"),
    "float": (DataTypes.FLOAT(), 1.5, "float32"),
    "double": (DataTypes.DOUBLE(), 1.5, "float64"),
    "varchar": (DataTypes.VARCHAR(2147483647), "a", "str"),
    "string": (DataTypes.STRING(), "a", "str"),
    "varbinary": (DataTypes.VARBINARY(2147483647), b"a", "bytes"),
    "bytes": (DataTypes.BYTES(), b"a", "bytes"),
    "decimal": (DataTypes.DECIMAL(38, 18), Decimal("1.5"), "Decimal"),
    "date": (DataTypes.DATE(), date(2020, 1, 2), "date"),
    "time": (DataTypes.TIME(), time(1, 2, 3), "time"),
    "timestamp": (DataTypes.TIMESTAMP(3), MOMENT, "Timestamp"),
    "timestamp_ltz": (DataTypes.TIMESTAMP_LTZ(3), MOMENT.replace(tzinfo=timezone.utc), "Timestamp"),
    "months": (DataTypes.INTERVAL(DataTypes.YEAR(), DataTypes.MONTH()), 14, "int32"),
    "seconds": (DataTypes.INTERVAL(DataTypes.DAY(), DataTypes.SECOND(3)), timedelta(1, 2), "Timedelta"),
    "array": (DataTypes.ARRAY(DataTypes.INT()), [1, 2], "ndarray"),
    "multiset": (DataTypes.MULTISET(DataTypes.STRING()), {"a": 2, "b": 1}, "dict"),
    "map": (DataTypes.MAP(DataTypes.STRING(), DataTypes.INT()), {"a": 1}, "dict"),
    "row": (DataTypes.ROW([DataTypes.FIELD("x", DataTypes.INT())]), Row(x=1), "dict"),
}
ROW = DataTypes.ROW([DataTypes.FIELD(name, kind) for name, (kind, _, _) in TYPES.items()])


VALUES = [value for _, value, _ in TYPES.values()]
RESULTS = [*VALUES[:-1], Row(1)]
"""Rows in collected rows have no names, as in PyFlink."""


def table_of(*values):
    t_env = environment()
    t_env.get_config().set_local_timezone("UTC")
    return t_env.from_elements([values], ROW)


def collected(table):
    with table.execute().collect() as rows:
        return [list(row) for row in rows]


@pytest.mark.slow
def test_values_have_the_documented_classes_in_functions_and_results():
    table = table_of(*VALUES)

    def class_of(*arguments):
        return [type(argument).__name__ for argument in arguments]

    columns = [col(name) for name in TYPES]
    names = udf(class_of, result_type=DataTypes.ARRAY(DataTypes.STRING()))
    classes = [type(value).__name__ for value in VALUES]
    assert collected(table.select(names(*columns))) == [[classes]]
    returned = [udf(lambda value: value, result_type=kind)(col(name)) for name, (kind, _, _) in TYPES.items()]
    for row in (*collected(table), *collected(table.select(*returned))):
        assert row == RESULTS and [type(value).__name__ for value in row] == classes


@pytest.mark.slow
def test_pandas_has_the_documented_classes():
    pytest.importorskip("pandas")
    table = table_of(*VALUES)
    frame = table.to_pandas()
    classes = {name: type(frame[name][0]).__name__.rstrip("_") for name in TYPES}
    assert classes == {name: pandas_class for name, (_, _, pandas_class) in TYPES.items()}
    returned = [udf(lambda series: series, result_type=kind, func_type="pandas")(col(name))
                for name, (kind, _, _) in TYPES.items()]  # fmt: skip
    assert collected(table.select(*returned)) == [RESULTS]


def test_a_list_is_a_multiset_of_its_elements():
    kind = DataTypes.MULTISET(DataTypes.STRING())
    table = environment().from_elements([(["a", "b", "a"],), (None,)], DataTypes.ROW([DataTypes.FIELD("m", kind)]))
    again = udf(lambda value: None if value is None else ["c", *value, "c"], result_type=kind)
    assert collected(table.select(col("m"), again(col("m")))) == [
        [{"a": 2, "b": 1}, {"c": 2, "a": 1, "b": 1}], [None, None],
    ]  # fmt: skip
