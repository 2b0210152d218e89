"""Types check, convert, describe, compare, pickle and serialize values."""

import datetime
import math
import pickle
import struct
from decimal import Decimal
from types import SimpleNamespace

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.data_types.composite_types import ElementsTypeInfo
from rayflink.common.errors import InvalidTypesError, TypeMismatch
from rayflink.common.time import Instant
from rayflink.common.typeinfo import (
    BasicTypeInfo,
    LocalTimeTypeInfo,
    SqlTimeTypeInfo,
    TypeInformation,
    Types,
    infer_type,
)
from rayflink.common.types import Row, RowKind
from rayflink.state.errors import MalformedBytesError, SerializationError

few = settings(max_examples=settings.default.max_examples // 5)
LONG_64 = st.integers(-(2**63), 2**63 - 1)
BASIC = [
    (Types.STRING(), "String", st.text()),
    (Types.BYTE(), "Byte", st.integers(-128, 127)),
    (Types.BOOLEAN(), "Boolean", st.booleans()),
    (Types.SHORT(), "Short", st.integers(-(2**15), 2**15 - 1)),
    (Types.INT(), "Integer", st.integers(-(2**31), 2**31 - 1)),
    (Types.LONG(), "Long", LONG_64),
    (Types.FLOAT(), "Float", st.floats(width=32, allow_nan=False)),
    (Types.DOUBLE(), "Double", st.floats(allow_nan=False)),
    (Types.CHAR(), "Char", st.characters()),
    (Types.BIG_INT(), "BigInteger", st.integers()),
    (Types.BIG_DEC(), "BigDecimal", st.decimals(allow_nan=False)),
    (Types.INSTANT(), "Instant", st.integers(-(10**12), 10**12).map(Instant.of_epoch_milli)),
    (Types.VOID(), "Void", st.none()),
    (Types.SQL_DATE(), "DateTypeInfo", st.dates()),
    (Types.SQL_TIME(), "TimeTypeInfo", st.times()),
    (Types.SQL_TIMESTAMP(), "TimestampTypeInfo", st.datetimes()),
    (Types.PICKLED_BYTE_ARRAY(), "PickledByteArrayTypeInfo", st.sets(st.integers())),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), "PrimitiveArrayTypeInfo<Byte>", st.binary()),
]
basic_samples = st.sampled_from(BASIC).map(lambda sample: (sample[0], sample[2]))


def _composite(inner):
    def build(fields):
        kinds, values = [kind for kind, _ in fields], [value for _, value in fields]
        names = [f"n{i}" for i in range(len(kinds))]
        optional = [st.none() | value for value in values]
        first = optional[0]
        return st.sampled_from([
            (Types.TUPLE(kinds), st.tuples(*optional)),
            (Types.ROW_NAMED(names, kinds), st.tuples(*optional).map(
                lambda items: Row(**dict(zip(names, items, strict=True))))),
            (Types.LIST(kinds[0]), st.lists(first, max_size=3)),
            (Types.OBJECT_ARRAY(kinds[0]), st.lists(first, max_size=3)),
            (Types.MAP(Types.STRING(), kinds[0]), st.dictionaries(st.text(max_size=3), first, max_size=3)),
        ])  # fmt: skip

    return st.lists(inner, min_size=1, max_size=3).flatmap(build)


typed_values = st.recursive(basic_samples, _composite, max_leaves=5).flatmap(
    lambda sample: st.tuples(st.just(sample[0]), st.lists(sample[1], max_size=4))
)


@pytest.mark.spec("B06", "types", "B07", "equivalent")
@pytest.mark.parametrize(("kind", "text", "_values"), BASIC, ids=lambda value: value if isinstance(value, str) else "")
def test_types_print_as_in_pyflink(kind, text, _values):
    assert str(kind) == repr(kind) == text and isinstance(kind, TypeInformation)


@pytest.mark.spec("B06", "shortcuts")
@pytest.mark.spec("B06", "types")
@pytest.mark.parametrize(
    ("name", "text"),
    [("STRING", "String"), ("BOOLEAN", "Boolean"), ("BYTE", "Byte"), ("SHORT", "Short"), ("INT", "Integer"),
     ("LONG", "Long"), ("FLOAT", "Float"), ("DOUBLE", "Double"), ("CHAR", "Char")],
)  # fmt: skip
def test_basic_type_info_has_a_shortcut_of_each_name(name, text):
    shortcut = getattr(BasicTypeInfo, f"{name}_TYPE_INFO")()
    assert isinstance(shortcut, BasicTypeInfo) and str(shortcut) == text
    assert shortcut == getattr(Types, name)()


@pytest.mark.spec("B07", "equivalent")
def test_the_shortcuts_of_types_and_of_basic_type_info_are_equivalent():
    for name in ("STRING", "BYTE", "BOOLEAN", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "CHAR",
                 "BIG_INT", "BIG_DEC", "INSTANT"):  # fmt: skip
        assert getattr(Types, name)() == getattr(BasicTypeInfo, f"{name}_TYPE_INFO")()
    assert (SqlTimeTypeInfo.DATE(), SqlTimeTypeInfo.TIME()) == (Types.SQL_DATE(), Types.SQL_TIME())
    assert SqlTimeTypeInfo.TIMESTAMP() == Types.SQL_TIMESTAMP()


ONE_OF_EACH = [
    (Types.STRING(), "a"), (Types.INSTANT(), Instant.of_epoch_milli(5)), (Types.SQL_DATE(), datetime.date(2024, 1, 2)),
    (Types.SQL_TIME(), datetime.time(1, 2)), (Types.SQL_TIMESTAMP(), datetime.datetime(2024, 1, 2)),
    (LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_DATE), datetime.date(2024, 1, 2)),
    (Types.PICKLED_BYTE_ARRAY(), {1}), (Types.TUPLE([Types.INT()]), (1,)),
    (Types.ROW_NAMED(["n"], [Types.INT()]), Row(n=1)),
    (Types.LIST(Types.INT()), [1]), (Types.OBJECT_ARRAY(Types.INT()), [1]), (Types.BASIC_ARRAY(Types.INT()), [1]),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"a"), (Types.MAP(Types.INT(), Types.INT()), {1: 2}),
]  # fmt: skip
"""A type of each class, and a value of it."""


def _classes_below(base):
    for kind in base.__subclasses__():
        yield kind
        yield from _classes_below(kind)


@pytest.mark.spec("B01", "base", "serializable", "B15", "made", "B19")
def test_each_class_of_types_is_sent_to_other_processes_and_writes_its_values():
    written = {kind for kind in _classes_below(TypeInformation) if kind.__module__.startswith("rayflink.common.")}
    concrete = {kind for kind in written if not kind.__name__.startswith("_")} - {ElementsTypeInfo}
    assert {type(kind) for kind, _ in ONE_OF_EACH} == concrete
    for kind, value in ONE_OF_EACH:
        twin = pickle.loads(pickle.dumps(kind))
        assert twin == kind
        assert twin.create_serializer().from_bytes(kind.create_serializer().to_bytes(value)) == value


def test_composite_types_print_as_in_pyflink():
    row = Types.ROW_NAMED(["a", "b"], [Types.STRING(), Types.LIST(Types.INT())])
    assert str(row) == "RowTypeInfo(a: String, b: ListTypeInfo<Integer>)"
    assert str(Types.ROW([Types.INT(), Types.LONG()])) == "RowTypeInfo(Integer, Long)"
    assert str(Types.TUPLE([Types.INT(), Types.STRING()])) == "TupleTypeInfo(Integer, String)"
    assert str(Types.MAP(Types.STRING(), Types.DOUBLE())) == "MapTypeInfo<String, Double>"
    assert str(Types.OBJECT_ARRAY(Types.INT())) == "ObjectArrayTypeInfo<Integer>"
    assert str(Types.BASIC_ARRAY(Types.INT())) == "BasicArrayTypeInfo<Integer>"
    local = LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_DATE)
    assert str(local) == "LocalTimeTypeInfo<LOCAL_DATE>"
    local.check(datetime.date(2024, 1, 1))
    assert row.get_field_names() == ["a", "b"] and row.get_field_index("b") == 1 and row.get_field_index("c") == -1
    assert Types.ROW([Types.INT()]).get_field_names() == ["f0"]


@pytest.mark.spec("B01", "serializable", "B15", "made", "B19")
@few
@given(typed_values)
def test_every_type_pickles_accepts_its_values_and_serializes_them(sample):
    kind, values = sample
    twin = pickle.loads(pickle.dumps(kind))
    assert twin == kind and hash(twin) == hash(kind) and str(twin) == str(kind)
    kind.check_batch(values)
    serializer = twin.create_serializer()
    assert serializer == kind.serializer() and serializer.snapshot() == kind.serializer().snapshot()
    assert [serializer.from_bytes(kind.serializer().to_bytes(value)) for value in values] == values


@few
@given(typed_values, typed_values)
def test_a_batch_is_checked_and_converted_exactly_as_its_values_are(one, two):
    kind, values = one[0], one[1] + two[1]
    try:
        alone = [kind.convert(value) for value in values]
    except TypeMismatch as error:
        with pytest.raises(TypeMismatch) as caught:
            kind.convert_batch(values)
        assert str(caught.value) == str(error)
    else:
        batch = kind.convert_batch(values)
        assert list(batch) == alone and list(map(type, batch)) == list(map(type, alone))


def test_values_that_fit_exactly_are_not_copied():
    kind = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LIST(Types.DOUBLE())])
    values = [("a", 1, [1.0]), ("b", None, None)]
    assert kind.convert_batch(values) is values and kind.convert(values[0]) is values[0]
    rows = [Row(a=1), Row(a=2)]
    assert Types.ROW_NAMED(["a"], [Types.INT()]).convert_batch(rows) is rows


def test_float_rounds_to_32_bits():
    rounded = struct.unpack(">f", struct.pack(">f", 0.1))[0]
    assert Types.FLOAT().convert(0.1) == rounded != 0.1
    assert list(Types.FLOAT().convert_batch([0.1, 2])) == [rounded, 2.0]
    assert Types.FLOAT().convert(1e40) == math.inf
    assert list(Types.TUPLE([Types.FLOAT()]).convert_batch([(0.1,)])) == [(rounded,)]
    assert list(Types.TUPLE([Types.FLOAT()]).convert_batch([(0.1,), (None,)])) == [(rounded,), (None,)]


def test_values_take_the_form_of_their_type():
    row = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.DOUBLE()])
    expected = Row(a=1, b=2.0)
    for given_ in ((1, 2), [1, 2.0], {"b": 2, "a": 1}, Row(b=2.0, a=1), Row(1, 2.0), SimpleNamespace(a=1, b=2.0)):
        converted = row.convert(given_)
        assert repr(converted) == repr(expected) and list(row.convert_batch([given_])) == [expected]
    assert row.convert(Row.of_kind(RowKind.DELETE, 1, 2.0)).get_row_kind() is RowKind.DELETE
    assert repr(Types.ROW([Types.INT()]).convert((1,))) == "Row(f0=1)"
    assert Types.TUPLE([Types.INT(), Types.STRING()]).convert([1, "x"]) == (1, "x")
    assert Types.LIST(Types.LONG()).convert((1, True)) == [1, 1]
    assert Types.PRIMITIVE_ARRAY(Types.DOUBLE()).convert(numpy.array([1.5, 2])) == [1.5, 2.0]
    assert Types.PRIMITIVE_ARRAY(Types.BYTE()).convert(bytearray(b"ab")) == b"ab"
    assert Types.SQL_DATE().convert(datetime.datetime(2024, 5, 6, 7)) == datetime.date(2024, 5, 6)
    assert Types.BIG_DEC().convert(3) == Decimal(3)


@pytest.mark.parametrize(
    ("kind", "value", "form"),
    [
        (Types.LONG(), numpy.int64(5), 5),
        (Types.LONG(), True, 1),
        (Types.DOUBLE(), numpy.float32(0.5), 0.5),
        (Types.DOUBLE(), 3, 3.0),
        (Types.BOOLEAN(), numpy.bool_(True), True),
        (Types.STRING(), numpy.str_("x"), "x"),
    ],
)
def test_numpy_scalars_become_pythons(kind, value, form):
    for converted in (kind.convert(value), kind.convert_batch([value])[0]):
        assert converted == form and type(converted) is type(form)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (Types.INT(), "x", "result: found str 'x', wanted Integer; give an int in [-2**31, 2**31), "
         "or declare the type as String (at job.py:3)"),
        (Types.INT(), 2**31, "result: found int 2147483648, which is out of range, wanted Integer; "
         "give an int in [-2**31, 2**31), or declare Types.LONG() or Types.BIG_INT() (at job.py:3)"),
        (Types.LONG(), None, "result: found None, wanted Long; give an int in [-2**63, 2**63) (at job.py:3)"),
        (Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.LIST(Types.DOUBLE())]), (1, [0.5, "x"]),
         "result.b[1]: found str 'x', wanted Double; give a float, or declare the type as String (at job.py:3)"),
        (Types.TUPLE([Types.INT(), Types.INT()]), (1,),
         "result: found tuple of 1 fields, wanted TupleTypeInfo(Integer, Integer); "
         "give a tuple of that many fields, or declare the type as TupleTypeInfo(BigInteger) (at job.py:3)"),
        (Types.MAP(Types.STRING(), Types.INT()), {"k": "v"},
         "result['k']: found str 'v', wanted Integer; give an int in [-2**31, 2**31), "
         "or declare the type as String (at job.py:3)"),
    ],
)  # fmt: skip
def test_a_mismatch_names_position_found_wanted_remedy_and_line(kind, value, message):
    for check in (kind.check, kind.convert, lambda v, *rest: kind.check_batch([v], *rest)):
        with pytest.raises(TypeMismatch) as caught:
            check(value, "result", "job.py:3")
        assert str(caught.value) == message


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Types.BYTE(), 128), (Types.SHORT(), -32769), (Types.CHAR(), "ab"), (Types.BOOLEAN(), 1),
        (Types.STRING(), b"x"), (Types.DOUBLE(), "1"), (Types.DOUBLE(), 10**400), (Types.LONG(), 1.0),
        (Types.BIG_DEC(), 1.5), (Types.SQL_TIME(), datetime.date(2024, 1, 1)), (Types.VOID(), 1),
        (Types.PRIMITIVE_ARRAY(Types.INT()), [1, None]), (Types.PRIMITIVE_ARRAY(Types.BYTE()), "x"),
        (Types.MAP(Types.INT(), Types.INT()), {None: 1}),
        (Types.ROW([Types.INT()]), 5), (Types.ROW_NAMED(["a"], [Types.INT()]), Row(b=1)),
        (Types.ROW([Types.INT()]), None), (Types.TUPLE([Types.INT()]), None), (Types.LIST(Types.INT()), "abc"),
        (Types.LIST(Types.MAP(Types.INT(), Types.INT())), [{1: "x"}]),
    ],
)  # fmt: skip
def test_what_is_not_of_the_type_is_refused(kind, value):
    with pytest.raises(TypeMismatch):
        kind.check(value)
    with pytest.raises(TypeMismatch):
        kind.check_batch([value])
    with pytest.raises(SerializationError):
        kind.serializer().to_bytes(value)


def test_types_are_made_of_types():
    with pytest.raises(InvalidTypesError, match=r"found <class 'int'>; use for example"):
        Types.LIST(int)
    with pytest.raises(InvalidTypesError, match="give each field one name"):
        Types.ROW_NAMED(["a", "a"], [Types.INT(), Types.INT()])
    with pytest.raises(InvalidTypesError, match="use Types.BASIC_ARRAY"):
        Types.PRIMITIVE_ARRAY(Types.STRING())
    with pytest.raises(InvalidTypesError, match="use Types.OBJECT_ARRAY"):
        Types.BASIC_ARRAY(Types.LIST(Types.INT()))


def test_types_differ_by_class_and_content():
    assert len({Types.INT(), Types.LONG(), Types.LIST(Types.INT()), Types.OBJECT_ARRAY(Types.INT())}) == 4
    assert Types.ROW_NAMED(["a"], [Types.INT()]) == Types.ROW([Types.INT()]) != Types.TUPLE([Types.INT()])


@pytest.mark.spec("B11")
def test_the_string_serializer_writes_flinks_string_format():
    assert Types.TUPLE([Types.STRING()]).serializer().to_bytes(("ab",)) == b"\x01\x00\x03ab"


def test_bytes_that_are_cut_or_too_long_are_refused():
    serializer = Types.TUPLE([Types.STRING(), Types.LONG()]).serializer()
    data = serializer.to_bytes(("abc", 5))
    for wrong in (data[:-1], data + b"x", b"\x02" + data[1:], b""):
        with pytest.raises(MalformedBytesError):
            serializer.from_bytes(wrong)
    assert serializer.snapshot() == "TypeSerializer v1 TupleTypeInfo(String, Long)"


def test_what_does_not_pickle_is_refused_with_the_remedy():
    with pytest.raises(SerializationError, match="keep only data in it"):
        Types.PICKLED_BYTE_ARRAY().serializer().to_bytes(lambda: 0)


@few
@given(typed_values)
def test_an_inferred_type_takes_the_value_and_leaves_it_unchanged(sample):
    for value in sample[1]:
        assert infer_type(value).convert(value) is value
