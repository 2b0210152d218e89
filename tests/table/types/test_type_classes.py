"""The classes of types: what programs construct, read and compare, and their forms in SQL, Arrow and PyFlink's repr."""

from __future__ import annotations

import datetime
import pickle

import pyarrow as pa
import pytest

from rayflink.common import Row, RowKind
from rayflink.common.errors import InvalidTypesError
from rayflink.table import types as t
from rayflink.table.types import DataTypes as D

DAY_TIME, YEAR_MONTH = t.DayTimeIntervalType.DayTimeResolution, t.YearMonthIntervalType.YearMonthResolution
TYPES = [
    # made by DataTypes, by its class, repr, SQL, Arrow
    (D.NULL(), t.NullType(), "NullType(true)", "NULL", pa.null()),
    (D.BOOLEAN(False), t.BooleanType(False), "BooleanType(false)", "BOOLEAN NOT NULL", pa.bool_()),
    (D.TINYINT(), t.TinyIntType(), "TinyIntType(true)", "TINYINT", pa.int8()),
    (D.SMALLINT(), t.SmallIntType(), "SmallIntType(true)", "SMALLINT", pa.int16()),
    (D.INT(), t.IntType(), "IntType(true)", "INT", pa.int32()),
    (D.BIGINT(), t.BigIntType(), "BigIntType(true)", "BIGINT", pa.int64()),
    (D.FLOAT(), t.FloatType(), "FloatType(true)", "FLOAT", pa.float32()),
    (D.DOUBLE(), t.DoubleType(), "DoubleType(true)", "DOUBLE", pa.float64()),
    (D.DECIMAL(5, 2), t.DecimalType(5, 2), "DecimalType(5, 2, true)", "DECIMAL(5, 2)", pa.decimal128(5, 2)),
    (D.CHAR(3), t.CharType(3), "CharType(3, true)", "CHAR(3)", pa.string()),
    (D.VARCHAR(3), t.VarCharType(3), "VarCharType(3, true)", "VARCHAR(3)", pa.string()),
    (D.STRING(), t.VarCharType(2147483647), "VarCharType(2147483647, true)", "STRING", pa.string()),
    (D.BINARY(3), t.BinaryType(3), "BinaryType(3, true)", "BINARY(3)", pa.binary()),
    (D.BYTES(), t.VarBinaryType(2147483647), "VarBinaryType(2147483647, true)", "BYTES", pa.binary()),
    (D.DATE(), t.DateType(), "DateType(true)", "DATE", pa.date32()),
    (D.TIME(), t.TimeType(), "TimeType(0, true)", "TIME(0)", pa.time32("ms")),
    (D.TIMESTAMP(9), t.TimestampType(9), "TimestampType(9, true)", "TIMESTAMP(9)", pa.timestamp("ns")),
    (
        D.TIMESTAMP_LTZ(3), t.LocalZonedTimestampType(3), "LocalZonedTimestampType(3, true)", "TIMESTAMP_LTZ(3)",
        pa.timestamp("ms", "UTC"),
    ),
    (
        D.INTERVAL(D.DAY(3), D.SECOND(3)), t.DayTimeIntervalType(DAY_TIME.DAY_TO_SECOND, 3, 3),
        "DayTimeIntervalType(true)", "INTERVAL DAY TO SECOND(3)", pa.duration("ms"),
    ),
    (
        D.INTERVAL(D.YEAR(4)), t.YearMonthIntervalType(YEAR_MONTH.YEAR, 4), "YearMonthIntervalType(true)",
        "INTERVAL YEAR TO MONTH", pa.int32(),
    ),
    (D.ARRAY(D.INT()), t.ArrayType(t.IntType()), "ArrayType(IntType(true), true)", "ARRAY<INT>", pa.list_(pa.int32())),
    (
        D.MAP(D.INT(), D.DATE()), t.MapType(t.IntType(), t.DateType()), "MapType(IntType(true), DateType(true), true)",
        "MAP<INT, DATE>", pa.map_(pa.int32(), pa.date32()),
    ),
    (
        D.MULTISET(D.INT()), t.MultisetType(t.IntType()), "MultisetType(IntType(true), true)", "MULTISET<INT>",
        pa.map_(pa.int32(), pa.int32()),
    ),
    (
        D.ROW([D.FIELD("n", D.INT(), "how many")]), t.RowType([t.RowField("n", t.IntType(), "how many")]),
        "RowType(RowField(n, IntType(true), how many))", "ROW<`n` INT 'how many'>", pa.struct([("n", pa.int32())]),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "twin", "shown", "sql", "arrow"), TYPES, ids=[str(case[0]) for case in TYPES])
def test_a_type_is_an_instance_of_its_class_and_equal_to_its_twin(kind, twin, shown, sql, arrow):
    assert type(kind) is type(twin) and isinstance(kind, t.DataType)
    assert kind == twin and hash(kind) == hash(twin) and pickle.loads(pickle.dumps(kind)) == kind
    assert (repr(kind), str(kind), kind.to_arrow()) == (shown, sql, arrow)
    assert kind.not_null() != kind.nullable() == kind.not_null().nullable()
    assert type(kind.not_null()) is type(kind) and not kind.not_null().is_nullable


def test_no_two_types_are_equal():
    assert len({case[0] for case in TYPES}) == len(TYPES)


@pytest.mark.parametrize("kind", [case[0] for case in TYPES if case[0].root not in (t.Root.MULTISET,)], ids=str)
def test_a_type_of_arrow_becomes_the_type_again(kind):
    again = t.from_arrow_type(t.to_arrow_type(kind), kind.is_nullable)
    assert again.to_arrow() == kind.to_arrow() and again.is_nullable is kind.is_nullable


def test_arrow_has_types_beside_those_of_columns():
    schema = t.create_arrow_schema(["a", "b"], [D.INT(False), D.ARRAY(D.STRING())])
    assert schema == pa.schema([pa.field("a", pa.int32(), False), ("b", pa.list_(pa.string()))])
    assert t.from_arrow_type(pa.binary(4), False) == D.BINARY(4, False)
    assert t.from_arrow_type(pa.timestamp("s")) == D.TIMESTAMP(0) and t.from_arrow_type(pa.time64("ns")) == D.TIME(9)
    nested = pa.struct([pa.field("r", pa.struct([pa.field("x", pa.int8(), False)]))])
    assert t.from_arrow_type(nested) == D.ROW([("r", D.ROW([("x", D.TINYINT(False))]))])
    with pytest.raises(InvalidTypesError, match="uint8 is none of a table; cast it"):
        t.from_arrow_type(pa.uint8())


def test_classes_are_those_of_pyflink_by_their_bases():
    assert issubclass(t.IntType, t.IntegralType) and issubclass(t.DecimalType, t.FractionalType)
    assert issubclass(t.IntegralType, t.NumericType) and issubclass(t.VarCharType, t.AtomicType)
    assert not issubclass(t.RowType, t.AtomicType)
    assert [kind.type_name() for kind in (t.IntType, t.VarCharType)] == ["INT", "VARCHAR"]


def test_parts_of_types_are_attributes():
    many = t.MapType(t.VarCharType(5), t.DecimalType(8, 3))
    assert (many.key_type.length, many.value_type.precision, many.value_type.scale) == (5, 8, 3)
    assert t.ArrayType(many).element_type is many and t.MultisetType(many).element_type is many
    view = D.MAP_VIEW(D.INT(), D.STRING())
    assert (view.key_type, view.value_type, D.LIST_VIEW(D.INT()).element_type) == (D.INT(), D.STRING(), D.INT())
    length = D.INTERVAL(D.DAY(4), D.SECOND(2))
    assert (length.resolution, length.day_precision, length.fractional_precision) == (DAY_TIME.DAY_TO_SECOND, 4, 2)
    assert (D.INTERVAL(D.YEAR(3)).resolution, D.INTERVAL(D.YEAR(3)).precision) == (YEAR_MONTH.YEAR, 3)


def test_fields_of_a_row_are_added_to_lists_as_pyflinks():
    fields = D.ROW([("id", D.INT())]).fields
    name = D.FIELD("name", D.STRING())
    assert fields + [name] == [*fields, name] and [name] + fields == [name, *fields] and fields.copy() == [*fields]
    assert fields + (name,) == (*fields, name) and pickle.loads(pickle.dumps(fields)) == fields == tuple(fields)
    assert hash(D.ROW(fields + [name])) == hash(D.ROW([*fields, name]))


def test_a_row_type_grows_by_fields_which_are_read_by_name_and_place():
    row = t.RowType().add("id", D.BIGINT()).add(t.RowField("name", D.STRING()))
    assert row == D.ROW([("id", D.BIGINT()), ("name", D.STRING())]) and len(row) == 2
    assert row.names == row.field_names() == ["id", "name"] == [field.name for field in row]
    assert row.field_types() == [D.BIGINT(), D.STRING()]
    assert row["id"] is row[0] is row.fields[0] and row[-1].data_type == D.STRING()
    assert row[0:1] == D.ROW([("id", D.BIGINT())]) and D.ROW() == t.RowType([]) and bool(D.ROW())
    for key, error in (("f9", KeyError), (9, IndexError), (9.9, TypeError)):
        with pytest.raises(error):
            row[key]
    with pytest.raises(ValueError, match="'age' has no type; write add"):
        row.add("age")


def test_adding_to_a_copy_leaves_the_type_as_it_is():
    row = D.ROW([("id", D.BIGINT())])
    row.not_null().add("name", D.STRING())
    assert row.names == ["id"]


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: t.DecimalType(39), r"the precision of a DECIMAL is 39; give a whole number within \[1, 38\]"),
        (lambda: t.DecimalType(3, 4), "the scale of a DECIMAL is 4"),
        (lambda: t.TimestampType(10), "the precision of a TIMESTAMP is 10"),
        (lambda: t.ArrayType("INT"), "'INT' is not a data type"),
        (lambda: t.RowType([("a", t.IntType())]), "is no field of a row; make it with DataTypes.FIELD"),
        (lambda: t.RowField(1, t.IntType()), "the name of a field is 1"),
        (lambda: t.DayTimeIntervalType(DAY_TIME.HOUR, 4), "an INTERVAL of HOUR has no digits of days"),
        (lambda: t.DayTimeIntervalType(DAY_TIME.DAY, 2, 3), "an INTERVAL of DAY has no fraction of a second"),
        (lambda: t.DayTimeIntervalType(10), "the resolution of an INTERVAL is 10"),
        (lambda: t.YearMonthIntervalType(YEAR_MONTH.MONTH, 3), "an INTERVAL of months has 3 digits of years"),
        (lambda: D.LIST_VIEW(D.INT()).to_arrow(), "no column of a table can be of type LIST_VIEW<INT> NOT NULL"),
        (lambda: t.ZonedTimestampType(3).to_arrow(), r"TIMESTAMP\(3\) WITH TIME ZONE; take DataTypes.TIMESTAMP_LTZ"),
    ],
)  # fmt: skip
def test_what_is_no_type_is_refused(make, problem):
    with pytest.raises(InvalidTypesError, match=problem):
        make()


def test_plain_forms_are_those_of_pyflink():
    day, second = datetime.date(1970, 1, 2), datetime.timedelta(seconds=1)
    tokyo = datetime.timezone(datetime.timedelta(hours=9))
    moment = datetime.datetime(1970, 1, 1, tzinfo=tokyo)
    local = datetime.datetime(2020, 6, 1, 12, 0, 0, 7)
    noon = datetime.time(12, 0, 0, 5)
    assert D.ARRAY(D.DATE()).to_sql_type([day]) == [1] and D.ARRAY(D.DATE()).from_sql_type([1]) == [day]
    assert D.MAP(D.DATE(), D.INT()).from_sql_type(D.MAP(D.DATE(), D.INT()).to_sql_type({day: 3})) == {day: 3}
    assert D.INTERVAL(D.SECOND()).to_sql_type(second) == 1_000_000
    assert t.ZonedTimestampType().to_sql_type(moment) == (0, 32400)
    assert t.ZonedTimestampType().from_sql_type((0, 32400)) == moment
    for kind, value in ((D.TIMESTAMP(), local), (D.TIMESTAMP_LTZ(), local), (D.TIME(6), noon), (D.DATE(), day)):
        assert kind.from_sql_type(kind.to_sql_type(value)) == value and kind.need_conversion()
        assert kind.to_sql_type(None) is None and kind.from_sql_type(None) is None
    assert D.TIME().to_sql_type(noon.replace(tzinfo=tokyo)) == 3 * 3600 * 1_000_000 + 5
    row = D.ROW([("n", D.INT()), ("d", D.DATE())])
    assert row.to_sql_type(Row.of_kind(RowKind.DELETE, d=day, n=7)) == (3, 7, 1)
    assert row.to_sql_type({"d": day}) == (0, None, 1) and row.from_sql_type((7, 1)) == Row(n=7, d=day)
    assert t.RawType().from_sql_type(pickle.dumps([1])) == [1]
