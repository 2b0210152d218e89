"""Arrays, maps and rows in columns, with nulls and slices."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.table.types import DataTypes
from tests.table.functions.calling import BIGINT, BOOLEAN, INT, STRING, RowError, column, result, resulting

ARRAY, MAP = DataTypes.ARRAY(INT), DataTypes.MAP(STRING, INT)
ROW = DataTypes.ROW([("a", INT), ("b", ARRAY)])
ARRAYS = st.none() | st.lists(st.integers(-3, 3) | st.none(), max_size=5)


def unique(values):
    return list(dict.fromkeys(values))


@pytest.mark.slow
@given(st.lists(st.tuples(ARRAYS, ARRAYS, st.integers(-3, 3) | st.none()), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_arrays_are_lists_of_python(rows):
    a, b, value = (
        column(ARRAY, *[row[0] for row in rows]),
        column(ARRAY, *[row[1] for row in rows]),
        column(INT, *[row[2] for row in rows]),
    )

    def each(name, compute, *args):
        expected = [None if row[0] is None else compute(*row) for row in rows]
        assert result(name, *args) == expected, name

    def both(name, compute):
        expected = [None if row[0] is None or row[1] is None else compute(row[0], row[1]) for row in rows]
        assert result(name, a, b) == expected, name

    each("CARDINALITY", lambda x, y, v: len(x), a)
    each("ARRAY_DISTINCT", lambda x, y, v: unique(x), a)
    each("ARRAY_REVERSE", lambda x, y, v: x[::-1], a)
    each("ARRAY_APPEND", lambda x, y, v: [*x, v], a, value)
    each("ARRAY_PREPEND", lambda x, y, v: [v, *x], a, value)
    each("ARRAY_CONTAINS", lambda x, y, v: v in x, a, value)
    each("ARRAY_REMOVE", lambda x, y, v: [one for one in x if one != v], a, value)
    each("ARRAY_POSITION", lambda x, y, v: None if v is None else x.index(v) + 1 if v in x else 0, a, value)
    each("ARRAY_MAX", lambda x, y, v: max([one for one in x if one is not None], default=None), a)
    each("ARRAY_MIN", lambda x, y, v: min([one for one in x if one is not None], default=None), a)
    each("ARRAY_SORT", lambda x, y, v: sorted(x, key=lambda one: (one is not None, one or 0)), a)
    both("ARRAY_CONCAT", lambda x, y: x + y)
    both("ARRAY_UNION", lambda x, y: unique(x + y))
    both("ARRAY_EXCEPT", lambda x, y: [one for one in unique(x) if one not in y])
    both("ARRAY_INTERSECT", lambda x, y: [one for one in unique(x) if one in y])


def test_elements():
    arrays = column(ARRAY, [1, None], [], None)
    assert result("[]", arrays, 1) == [1, None, None]
    assert result("[]", arrays, column(INT, 2, 1, None)) == [None, None, None]
    assert resulting("[]", arrays, 0) == "a place in the array, counted from 1, not 0"
    maps = column(MAP, [("a", 1), ("b", None)], [("a", 2)], None)
    assert result("[]", maps, "a") == [1, 2, None]
    assert result("[]", maps, column(STRING, "b", "x", "a")) == [None, None, None]
    assert result("ELEMENT", column(ARRAY, [5], [], None)) == [5, None, None]
    with pytest.raises(RowError, match="more than one element"):
        result("ELEMENT", arrays)


def test_fields():
    rows = column(ROW, {"a": 1, "b": [1]}, {"a": None, "b": None}, None)
    assert result(".field", rows, options=("a",)) == [1, None, None]
    assert result(".field", rows, options=("b",)) == [[1], None, None]
    assert resulting(".field", rows, options=("c",)) == "a row with the field c; it has a, b"


def test_making():
    assert result("ARRAY", column(INT, 1, None), column(BIGINT, 2**40, 3)) == [[1, 2**40], [None, 3]]
    assert result("MAP", column(STRING, "a", "b"), 1, "a", 2) == [[("a", 2)], [("b", 1), ("a", 2)]]
    assert result("ROW", column(INT, 1, None), "x") == [{"EXPR$0": 1, "EXPR$1": "x"}, {"EXPR$0": None, "EXPR$1": "x"}]
    assert resulting("ARRAY", 1, "a") == "values of one kind"
    with pytest.raises(RowError, match="a key of a map is null"):
        result("MAP", column(STRING, None), 1)


def test_maps():
    maps = column(MAP, [("a", 1), ("b", None)], [], None)
    assert result("MAP_KEYS", maps) == [["a", "b"], [], None]
    assert result("MAP_VALUES", maps) == [[1, None], [], None]
    assert result("MAP_ENTRIES", maps) == [[{"key": "a", "value": 1}, {"key": "b", "value": None}], [], None]
    assert result("MAP_UNION", maps, column(MAP, [("b", 3)], [("c", 4)], [])) == [
        [("a", 1), ("b", 3)],
        [("c", 4)],
        None,
    ]
    keys, values = column(DataTypes.ARRAY(STRING), ["a", "b"], None), column(ARRAY, [1, 2], [3])
    assert result("MAP_FROM_ARRAYS", keys, values) == [[("a", 1), ("b", 2)], None]
    assert result("CARDINALITY", maps) == [2, 0, None]


def test_slices_of_arrays():
    arrays = column(ARRAY, [1, 2, 3, 4], [1], None)
    assert result("ARRAY_SLICE", arrays, 2, 3) == [[2, 3], [], None]
    assert result("ARRAY_SLICE", arrays, column(INT, -2, 1, 1), column(INT, -1, None, 1)) == [[3, 4], None, None]
    assert result("ARRAY_SORT", arrays, column(BOOLEAN, False, True, True)) == [[4, 3, 2, 1], [1], None]
    strings = column(DataTypes.ARRAY(STRING), ["a", None, "b"], [None], [], None)
    assert result("ARRAY_JOIN", strings, "-") == ["a-b", "", "", None]
    assert result("ARRAY_JOIN", strings, "-", "?") == ["a-?-b", "?", "", None]


def test_nested_arrays():
    nested = column(DataTypes.ARRAY(ARRAY), [[1], [1], None, [2]], None)
    assert result("ARRAY_DISTINCT", nested) == [[[1], None, [2]], None]
    assert result("ARRAY_CONTAINS", nested, column(ARRAY, [2], [2])) == [True, None]


def test_nested_casts():
    assert result("CAST", column(DataTypes.ARRAY(STRING), ["1", None], None), to=ARRAY) == [[1, None], None]
    assert result("TRY_CAST", column(DataTypes.ARRAY(STRING), ["1", "x"], ["2"]), to=ARRAY) == [None, [2]]
    rows = column(ROW, {"a": 1, "b": [1, None]}, None)
    assert result("CAST", rows, to=STRING) == ["(1, [1, NULL])", None]
    wide = DataTypes.ROW([("x", BIGINT), ("y", DataTypes.ARRAY(STRING))])
    assert result("CAST", rows, to=wide) == [{"x": 1, "y": ["1", None]}, None]
    assert result("CAST", column(MAP, [("a", 1)], None), to=DataTypes.MAP(STRING, STRING)) == [[("a", "1")], None]
    assert result("JSON_STRING", rows) == ['{"a":1,"b":[1,null]}', None]


def test_objects():
    named, aged = column(STRING, "a", None), column(INT, 1, 2)
    users = [{"name": "a", "age": 1}, {"name": None, "age": 2}]
    assert result("OBJECT_OF", "User", "name", named, "age", aged) == users
    assert str(resulting("OBJECT_OF", "User", "age", aged)) == "ROW<`age` INT> NOT NULL"
    assert resulting("OBJECT_OF", "User", "age", 1, "age", 2) == "each field once; age is there twice"
    assert str(resulting("OBJECT_OF", "User", named, 1)).startswith("the name of a class, then names of fields, each a")
    rows = column(ROW, {"a": 1, "b": [1]}, {"a": None, "b": None}, None)
    changed = result("OBJECT_UPDATE", rows, "a", column(STRING, "x", None, "z"))
    assert changed == [{"a": "x", "b": [1]}, {"a": None, "b": None}, None]
    assert result("OBJECT_UPDATE", rows, "b", 2, "a", None) == [{"a": None, "b": 2}, {"a": None, "b": 2}, None]
    assert str(resulting("OBJECT_UPDATE", rows, "a", named)) == "ROW<`a` STRING, `b` ARRAY<INT>>"
    assert resulting("OBJECT_UPDATE", rows, "c", 1) == "a row with the field c; it has a, b"
    assert str(resulting("OBJECT_UPDATE", aged, "c", 1)).startswith("a row, then names of fields")
