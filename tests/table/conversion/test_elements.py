"""from_elements: the types that values have, the values that a schema takes, and the errors of the others."""

from __future__ import annotations

import datetime
import enum
from array import array
from collections import Counter, namedtuple
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pytest

from rayflink.common import Instant, Row
from rayflink.table import DataTypes as D
from rayflink.table import EnvironmentSettings, TableEnvironment, UserDefinedType
from rayflink.table.conversion.element_columns import ElementColumns
from rayflink.table.conversion.inferred_types import declared_row_type, infer_row_type
from rayflink.table.types import LocalZonedTimestampType, RowType

Point = namedtuple("Point", "x y")


class PlaceType(UserDefinedType):
    @classmethod
    def sql_type(cls):
        return D.ROW([("x", D.DOUBLE()), ("y", D.DOUBLE())])

    def serialize(self, obj):
        return (obj.x, obj.y)

    def deserialize(self, datum):
        return Place(*datum)


class Place:
    __UDT__ = PlaceType()

    def __init__(self, x, y):
        self.x, self.y = x, y


class Order:
    def __init__(self, what, amount):
        self.what, self.amount = what, amount


@dataclass
class Sale:
    what: str
    price: float


@dataclass(frozen=True)
class Key:
    __slots__ = ("id",)
    id: int


class Color(enum.Enum):
    RED = 1


MOMENT = datetime.datetime(2026, 1, 2, 3, 4, 5, 6)
PLACE_ROW = PlaceType.sql_type()
INFERRED = [
    (True, D.BOOLEAN()), (np.bool_(True), D.BOOLEAN()), (1, D.BIGINT()), (np.int8(1), D.BIGINT()), (1.0, D.DOUBLE()),
    (np.float32(1), D.DOUBLE()), ("a", D.STRING()), (b"a", D.BYTES()), (bytearray(1), D.BYTES()),
    (Decimal(1), D.DECIMAL(38, 18)), (MOMENT, D.TIMESTAMP_LTZ(6)), (Instant(1, 5), D.TIMESTAMP_LTZ(9)),
    (MOMENT.date(), D.DATE()), (datetime.time(1), D.TIME()), (datetime.time(1, 0, 0, 5), D.TIME(6)),
    (datetime.timedelta(1), D.INTERVAL_DAY_TIME()), (array("d", [1]), D.ARRAY(D.DOUBLE(False))),
    (array("B", [1]), D.ARRAY(D.SMALLINT(False))), (array("f", [1]), D.ARRAY(D.FLOAT(False))),
    ([None, 1], D.ARRAY(D.BIGINT())), ((1,), D.ROW([("_1", D.BIGINT())])),
    (Point(1.0, "a"), D.ROW([("x", D.DOUBLE()), ("y", D.STRING())])), (Row(b=1), D.ROW([("b", D.BIGINT())])),
    (Row("b", "a")(1, "x"), D.ROW([("b", D.BIGINT()), ("a", D.STRING())])), (Row(1), D.ROW([("_1", D.BIGINT())])),
    (Order("tea", 2), D.ROW([("amount", D.BIGINT()), ("what", D.STRING())])), (Key(1), D.ROW([("id", D.BIGINT())])),
    ({"a": 1}, D.MAP(D.STRING(False), D.BIGINT())),
    ({1: [Row(c=1.0)]}, D.MAP(D.BIGINT(False), D.ARRAY(D.ROW([("c", D.DOUBLE())])))),
    (Place(1, 2), PlaceType()), ([Place(1, 2)], D.ARRAY(PlaceType())),
]  # fmt: skip


@pytest.mark.parametrize(("value", "kind"), INFERRED, ids=lambda value: f"{type(value).__name__}")
def test_the_type_of_a_value_is_that_of_pyflink(value, kind):
    assert infer_row_type([(None,), (value,)], ["f"]) == D.ROW([("f", kind)])


def test_the_types_of_several_values_are_one():
    rows = [Row(c1=[], c2={}, c3=None), Row(c1=[Row(a=1, b=None)], c2={"key": None}, c3=""), Row([Row(2, "s")], {}, "")]
    rows[2].set_field_names(["c1", "c2", "c3"])
    rows[2]["c1"][0].set_field_names(["a", "b"])
    rows[2]["c2"]["key"] = 1.5
    inner = D.ROW([("a", D.BIGINT()), ("b", D.STRING())])
    parts = [("c1", D.ARRAY(inner)), ("c2", D.MAP(D.STRING(False), D.DOUBLE())), ("c3", D.STRING())]
    assert infer_row_type(rows) == D.ROW(parts)


def test_names_come_from_the_schema_the_rows_or_their_places():
    assert infer_row_type([(1, 2)]).names == ["_1", "_2"] and infer_row_type([(1, 2)], ["a"]).names == ["a", "_2"]
    assert infer_row_type([{"b": 1, "a": 2}, {"c": 2}]).names == ["a", "b", "c"]
    assert infer_row_type([Point(1, 2)]).names == ["x", "y"]
    assert infer_row_type([{"b": 1, "a": 2}], ["b", "a"]).names == ["b", "a"]
    assert infer_row_type([Sale("tea", 2.5)]).names == ["price", "what"] and infer_row_type([5]).names == ["value"]


@pytest.mark.parametrize(
    ("schema", "row_type"),
    [
        (None, D.ROW([("_1", D.BIGINT()), ("_2", D.STRING())])),
        (["n"], D.ROW([("n", D.BIGINT()), ("_2", D.STRING())])),
        ([D.INT(), D.CHAR(1)], D.ROW([("_1", D.INT()), ("_2", D.CHAR(1))])),
        ([("n", D.INT()), D.FIELD("c", D.CHAR(1))], D.ROW([("n", D.INT()), ("c", D.CHAR(1))])),
        ("ROW<n INT, c CHAR(1)>", D.ROW([("n", D.INT()), ("c", D.CHAR(1))])),
        (RowType().add("n", D.INT()).add("c", D.CHAR(1)), D.ROW([("n", D.INT()), ("c", D.CHAR(1))])),
        (D.STRING(), D.ROW([("value", D.STRING())])),
    ],
)
def test_a_schema_says_names_types_or_both(schema, row_type):
    assert declared_row_type(schema, [(1, "a")]) == row_type


TAKEN = [
    (-128, D.TINYINT()), (2**63 - 1, D.BIGINT()), (1, D.DOUBLE()), (b"\x01", D.BINARY(1)), (b"ab", D.VARBINARY(2)),
    (datetime.datetime(2000, 1, 2, 3), D.DATE()), ([], D.ARRAY(D.INT())), ((1, 2), D.ARRAY(D.INT())),
    (array("h", [1]), D.ARRAY(D.INT())), (np.array([1, 2]), D.ARRAY(D.INT())),
    ({"a": None}, D.MAP(D.STRING(), D.INT())),
    (Counter("aab"), D.MULTISET(D.STRING())), ({"x": 1.0, "z": 3}, PLACE_ROW), (Row(y=2.0, x=1.0), PLACE_ROW),
    ([1.0, None], PLACE_ROW), (Place(1.0, 2.0), PLACE_ROW), (Place(1.0, 2.0), PlaceType()),
    (7, D.INTERVAL_YEAR_MONTH()), (None, D.NULL()), (Instant(1, 5_000), D.TIMESTAMP(6)), (MOMENT, D.TIMESTAMP_LTZ(6)),
]  # fmt: skip


@pytest.mark.parametrize(("value", "kind"), TAKEN, ids=lambda value: f"{type(value).__name__}")
def test_a_type_takes_a_value_also_within_others(value, kind):
    deep = D.ROW([("f", D.ARRAY(D.ROW([("g", D.MAP(D.INT(), kind))])))])
    [row] = ElementColumns(deep).table([([None, ({1: value, 2: None},)],)]).to_pylist()
    assert row["f"][0] is None and [key for key, _ in row["f"][1]["g"]] == [1, 2]
    assert ElementColumns(D.ROW([("f", kind.nullable())])).table([(value,), (None,)]).num_rows == 2


@pytest.mark.parametrize(
    ("value", "kind", "error", "problem"),
    [
        (None, D.INT(False), ValueError, "field 'f': found None, wanted INT NOT NULL"),
        ("abc", D.VARCHAR(1), ValueError, r"'abc', which VARCHAR\(1\) does not have"),
        ("a", D.CHAR(2), ValueError, r"'a', which CHAR\(2\) does not have"),
        (b"ab", D.VARBINARY(1), ValueError, "which VARBINARY"),
        (128, D.TINYINT(), ValueError, "found 128, which TINYINT"),
        (2**31, D.INTERVAL_YEAR_MONTH(), ValueError, "found 2147483648"),
        (Decimal(100), D.DECIMAL(3, 1), ValueError, r"which DECIMAL\(3, 1\) does not"),
        (2**53 + 1, D.DOUBLE(), ValueError, "field 'f' of Arrow's type double"),
        (MOMENT, D.TIMESTAMP(3), ValueError, "field 'f': found datetime .*; round it, or declare a finer unit"),
        (datetime.timedelta(0, 0, 5), D.INTERVAL_DAY_TIME(), ValueError, "which INTERVAL DAY TO SECOND"),
        ({None: 1}, D.MAP(D.STRING(), D.INT()), ValueError, "found None as a key"),
        (Row(x=1.0), PLACE_ROW, ValueError, "field 'f': the Row has no field 'y'"),
        ([1.0], PLACE_ROW, ValueError, "found 1 fields in .* wanted 2"),
        ([1.0, 2.0], PlaceType(), ValueError, "wanted placetype; give an object whose class has that type"),
        (1, D.BOOLEAN(), TypeError, "found 1 of int, wanted BOOLEAN"),
        (True, D.INT(), TypeError, "found True of bool, wanted INT"),
        ("1", D.INT(), TypeError, "found '1' of str, wanted INT"),
        (1.0, D.INT(), TypeError, "found 1.0 of float, wanted INT"),
        (1.0, D.DECIMAL(10, 0), TypeError, "found 1.0 of float"),
        ("2000-01-02", D.DATE(), TypeError, "wanted DATE"),
        (946811040, D.TIMESTAMP(), TypeError, "wanted TIMESTAMP"),
        ("ab", D.ARRAY(D.STRING()), TypeError, "wanted ARRAY<STRING>"),
        ([1, "2"], D.ARRAY(D.INT()), TypeError, "element of field 'f': found '2' of str, wanted INT"),
        ({"a": 1}, D.MAP(D.INT(), D.INT()), TypeError, "key of field 'f': found 'a'"),
        ({"a": [None]}, D.MAP(D.STRING(), D.ARRAY(D.INT(False))), ValueError, "element of value of field 'f'"),
        ({"x": "a"}, PLACE_ROW, TypeError, "field 'x' of field 'f': found 'a' of str, wanted DOUBLE"),
        (5, PLACE_ROW, TypeError, r"found 5 of int, wanted a row of \['x', 'y'\]"),
    ],
)
def test_what_a_type_does_not_take_is_an_error_that_names_the_field(value, kind, error, problem):
    with pytest.raises(error, match=problem):
        ElementColumns(D.ROW([("f", kind)])).table([(value,)])


@pytest.mark.parametrize(
    ("rows", "error", "problem"),
    [
        ([], ValueError, "there are no elements"),
        ([(1, None)], ValueError, "the type of field '_2' is not known"),
        ([({"a": []},)], ValueError, "the type of element of value of field '_1' is not known"),
        ([(1,), ("a",)], TypeError, "field '_1': found int and str in one column"),
        ([([1, 2.0],)], TypeError, "element of field '_1': found int and float"),
        ([(1,), (1, 2)], TypeError, "found rows of 1 and of 2 fields"),
        ([(1,), Row(a=1)], TypeError, "found rows with names of fields and rows without"),
        ([(Color.RED,)], TypeError, "field '_1': found Color, whose values no type of tables has"),
        ([(array("Q", [1]),)], TypeError, "found array.array of 'Q'"),
    ],
)
def test_rows_without_one_type_are_an_error_that_names_the_field(rows, error, problem):
    with pytest.raises(error, match=problem):
        infer_row_type(rows)


def test_decimal_numbers_are_rounded_to_their_column_halves_away_from_zero():
    column = ElementColumns(D.ROW([("d", D.DECIMAL(4, 2))])).table([(Decimal("1.005"),), (Decimal("-1.005"),), (3,)])
    assert column["d"].to_pylist() == [Decimal("1.01"), Decimal("-1.01"), Decimal("3.00")]


def test_without_verification_arrow_converts_what_it_can():
    kind = D.ROW([("a", D.DOUBLE()), ("b", D.VARCHAR(1))])
    assert ElementColumns(kind, False).table([(1, "long")]).to_pylist() == [{"a": 1.0, "b": "long"}]
    with pytest.raises(ValueError, match="field 'a' of Arrow's type double"):
        ElementColumns(kind, False).table([("x", "y")])
    with pytest.raises(ValueError, match="found None, wanted INT NOT NULL"):
        ElementColumns(D.ROW([("a", D.INT(False))]), False).table([(None,)])


def test_elements_are_the_rows_of_a_table():
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("execution.target", "local")
    table = t_env.from_elements([(1, Place(1.0, 2.0), MOMENT, {"a": [1, None]}), (2, None, None, {})], ["id", "place"])
    types = [column.data_type for column in table.get_resolved_schema().get_columns()]
    assert types[1] == PLACE_ROW and isinstance(types[2], LocalZonedTimestampType)
    first, second = table.execute().collect()
    assert tuple(first)[:2] == (1, Row(1.0, 2.0)) and first[2].replace(tzinfo=None) == MOMENT
    assert first[3] == {"a": [1, None]} and tuple(second) == (2, None, None, {})
