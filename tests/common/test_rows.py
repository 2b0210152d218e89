"""Row and RowKind behave as PyFlink's, and rows that are equal hash alike."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.types import Row, RowKind

kinds = st.sampled_from(list(RowKind))
named = st.dictionaries(st.sampled_from("abcde"), st.integers(0, 2), min_size=1)


def test_named_rows_are_read_by_name_position_and_attribute():
    row = Row(name="Alice", age=11)
    assert (row["name"], row[1], row.age, row[0:1]) == ("Alice", 11, 11, ["Alice"])
    assert len(row) == 2 and list(row) == ["Alice", 11]
    assert "name" in row and "Alice" not in row
    assert repr(row) == "Row(name='Alice', age=11)" and repr(Row(1, "x")) == "<Row(1, 'x')>"


def test_a_row_makes_rows_with_its_values_as_names():
    assert Row("name", "age")("Bob", 12) == Row(name="Bob", age=12)
    with pytest.raises(ValueError, match="wanted 1 values, found"):
        Row("name")(1, 2)


def test_fields_are_set_by_name_and_position_and_nothing_else_is_added():
    row = Row(a=1, b=2)
    row["a"], row[1] = 10, 20
    assert row == Row(a=10, b=20)
    with pytest.raises(AttributeError):
        row.c = 3
    with pytest.raises(KeyError):
        Row(1)["a"] = 2


def test_a_missing_name_is_an_error_that_lists_the_fields():
    with pytest.raises(ValueError, match=r"no field 'c'; its fields are \['a'\]"):
        Row(a=1)["c"]
    with pytest.raises(AttributeError, match="its fields are"):
        _ = Row(a=1).c
    with pytest.raises(ValueError, match="not both"):
        Row(1, a=2)
    with pytest.raises(TypeError, match="without field names"):
        Row(1).as_dict()


def test_as_dict_may_reach_into_rows_within_lists_and_dicts():
    row = Row(k=1, v=[Row(a=2)], m={"x": Row(b=3)})
    assert row.as_dict() == {"k": 1, "v": [Row(a=2)], "m": {"x": Row(b=3)}}
    assert row.as_dict(True) == {"k": 1, "v": [{"a": 2}], "m": {"x": {"b": 3}}}


def test_names_can_be_given_later():
    row = Row(1, 2)
    assert row != Row(a=1, b=2) and not hasattr(row, "_fields")
    row.set_field_names(["a", "b"])
    assert row == Row(a=1, b=2) and row.get_fields_by_names(["b", "a"]) == [2, 1]


def test_kinds_print_in_flinks_short_form_and_divide_into_add_and_retract():
    assert [str(kind) for kind in RowKind] == ["+I", "-U", "+U", "-D"]
    assert [Row.of_kind(kind, 1)._is_retract_msg() for kind in RowKind] == [False, True, False, True]
    assert [Row.of_kind(kind, 1)._is_accumulate_msg() for kind in RowKind] == [True, False, True, False]


@given(named, named, kinds, kinds)
def test_rows_are_equal_exactly_when_kind_names_and_values_are(left, right, left_kind, right_kind):
    a, b = Row.of_kind(left_kind, **left), Row.of_kind(right_kind, **right)
    assert (a == b) == (left == right and left_kind == right_kind)
    assert a != b or hash(a) == hash(b)
    assert hash(a) == hash(Row.of_kind(left_kind, **dict(reversed(left.items()))))


@given(named, kinds)
def test_pickled_and_copied_rows_are_equal_and_independent(fields, kind):
    for row in (Row.of_kind(kind, **fields), Row.of_kind(kind, *fields.values())):
        for twin in (pickle.loads(pickle.dumps(row)), copy.deepcopy(row), copy.copy(row)):
            assert twin == row and repr(twin) == repr(row) and twin.get_row_kind() is kind
            twin[0] = "changed"
            assert row[0] != "changed"
