"""Strings in columns: characters that are no ASCII, arguments that differ from row to row."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.table.functions.regexes import with_group
from rayflink.table.types import DataTypes
from tests.table.functions.calling import INT, STRING, RowError, column, constant, one, result, resulting

TEXTS = st.none() | st.text("abAB ä😀,", max_size=6)


def substring(text, start, length=None):
    if length is not None and length < 0:
        return None
    first = start - 1 if start > 0 else 0 if start == 0 else len(text) + start
    return "" if first < 0 else text[first : None if length is None else first + length]


@pytest.mark.slow
@given(
    st.lists(st.tuples(TEXTS, st.integers(-8, 8) | st.none(), st.integers(-1, 5) | st.none()), min_size=1, max_size=6)
)
@settings(max_examples=60, deadline=None)
def test_parts_are_counted_in_characters(rows):
    strings, starts, lengths = (column(kind, *[row[at] for row in rows]) for at, kind in enumerate((STRING, INT, INT)))
    expected = [None if None in row else substring(*row) for row in rows]
    assert result("SUBSTRING", strings, starts, lengths) == expected
    assert result("SUBSTR", strings, starts) == [None if None in row[:2] else substring(*row[:2]) for row in rows]
    for start in (-2, 0, 1, 3):
        assert result("SUBSTRING", strings, start) == [
            None if row[0] is None else substring(row[0], start) for row in rows
        ]
    assert result("LEFT", strings, lengths) == [None if None in row[::2] else row[0][: max(row[2], 0)] for row in rows]
    expected = [None if None in row[::2] else row[0][-row[2] :] if row[2] > 0 else "" for row in rows]
    assert result("RIGHT", strings, lengths) == expected
    assert result("CHAR_LENGTH", strings) == [None if row[0] is None else len(row[0]) for row in rows]
    assert result("REVERSE", strings) == [None if row[0] is None else row[0][::-1] for row in rows]


@pytest.mark.slow
@given(st.lists(st.tuples(TEXTS, st.none() | st.text("aä,", max_size=2)), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_parts_are_found(rows):
    strings, parts = (column(STRING, *[row[at] for row in rows]) for at in (0, 1))

    def each(name, compute, *args):
        assert result(name, *args) == [None if None in row else compute(*row) for row in rows], name

    each("POSITION", lambda text, part: text.find(part) + 1, parts, strings)
    each("INSTR", lambda text, part: text.find(part) + 1, strings, parts)
    each("LOCATE", lambda text, part: text.find(part) + 1, parts, strings)
    each("STARTSWITH", str.startswith, strings, parts)
    each("ENDSWITH", str.endswith, strings, parts)
    each("REPLACE", lambda text, part: text.replace(part, "#"), strings, parts, "#")
    each("SPLIT", lambda text, part: text.split(part) if part else list(text), strings, parts)
    each("||", str.__add__, strings, parts)
    each("CONCAT", str.__add__, strings, parts)


@pytest.mark.slow
@given(st.lists(TEXTS, min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_cases_and_ends(values):
    strings = column(STRING, *values)

    def each(name, compute, *args):
        assert result(name, strings, *args) == [None if text is None else compute(text) for text in values], name

    each("UPPER", str.upper)
    each("LOWER", str.lower)
    each("TRIM", lambda text: text.strip(" "))
    each("LTRIM", lambda text: text.lstrip("aä"), "aä")
    each("RTRIM", lambda text: text.rstrip("aä"), "aä")
    each("BTRIM", lambda text: text.strip(" "))
    each("LPAD", lambda text: "xyxy"[: max(4 - len(text), 0)] + text[:4], 4, "xy")
    each("RPAD", lambda text: text[:4] + "xyxy"[: max(4 - len(text), 0)], 4, "xy")
    each("REPEAT", lambda text: text * 2, 2)
    each("TRANSLATE", lambda text: text.translate(str.maketrans("aä", "b#")), "aä", "b#")
    each("ASCII", lambda text: int.from_bytes(text.encode()[:1], "big", signed=True))
    each("HEX", lambda text: text.encode().hex().upper())
    each("URL_DECODE", lambda text: text)
    each(
        "INITCAP",
        lambda text: "".join(b.lower() if a.isalnum() else b.upper() for a, b in zip(" " + text, text, strict=False)),
    )
    encoded = result("TO_BASE64", strings)
    assert result("FROM_BASE64", column(STRING, *encoded)) == values
    bytes_ = result("ENCODE", strings, "UTF-16")
    assert result("DECODE", column(DataTypes.BYTES(), *bytes_), "UTF-16") == values


def test_parts_of_splits():
    strings = column(STRING, "a,b,,c", "x", "", None)
    assert result("SPLIT_INDEX", strings, ",", column(INT, 3, 0, 0, 0)) == ["c", "x", None, None]
    assert result("SPLIT_INDEX", strings, ",", 2) == ["", None, None, None]
    assert result("ELT", column(INT, 1, 2, 9, None), column(STRING, *"abcd"), column(STRING, *"efgh")) == [
        "a",
        "f",
        None,
        None,
    ]
    assert result("STR_TO_MAP", column(STRING, "a=1,a=2,b", None)) == [[("a", "2"), ("b", None)], None]


def test_strings_put_together():
    a, b = column(STRING, "a", None, None), column(STRING, "b", "c", None)
    assert result("CONCAT_WS", "-", a, b) == ["a-b", "c", ""]
    assert result("CONCAT_WS", "-", a) == ["a", "", ""]
    assert result("CONCAT_WS", column(STRING, None, "-", "-"), a, b) == [None, "c", ""]
    assert resulting("||", "ab", "c") == DataTypes.CHAR(3).not_null()


def test_like():
    strings = column(STRING, "abc", "a%c", "a\nc", "a\\c", None)
    assert result("LIKE", strings, "a_c") == [True, True, True, True, None]
    assert result("LIKE", strings, "a!%c", "!") == [False, True, False, False, None]
    assert result("LIKE", strings, "a\\c") == [False, False, False, True, None]
    assert result("LIKE", strings, column(STRING, "a%", "%", "b%", "a%", "a")) == [True, True, False, True, None]
    assert result("SIMILAR TO", strings, "a(b|%)c") == [True, True, True, True, None]
    with pytest.raises(RowError, match="escape only %, _ and itself"):
        one("LIKE", "abc", "!abc", "!")


def test_regular_expressions_beyond_re2():
    strings = column(STRING, "abab", "abc", None)
    assert result("REGEXP", strings, r"^(ab)\1$") == [True, False, None]
    assert result("REGEXP_EXTRACT", strings, r"b(?=c)", 0) == [None, "b", None]
    assert result("REGEXP_REPLACE", strings, r"a(?!bc)", "$1\\") == ["$1\\b$1\\b", "abc", None]
    assert result("REGEXP_COUNT", strings, r"a(?=b)") == [2, 1, None]
    assert result("REGEXP_EXTRACT_ALL", strings, r"(a)(?=b)", 1) == [["a", "a"], ["a"], None]
    assert result("REGEXP_INSTR", strings, r"b(?=c)") == [0, 2, None]
    assert result("REGEXP_SUBSTR", strings, r"b(?=c)") == [None, "b", None]


def test_regular_expressions_in_columns():
    strings, regexes = column(STRING, "äa1", "b22", "c", None), column(STRING, "[0-9]", "2", "(", "c")
    assert result("REGEXP", strings, regexes) == [True, True, False, None]
    assert result("REGEXP_INSTR", strings, regexes) == [3, 2, None, None]
    assert result("REGEXP_COUNT", strings, regexes) == [1, 2, None, None]
    assert result("REGEXP_REPLACE", strings, regexes, "\\1") == ["äa\\1", "b\\1\\1", None, None]
    assert result("REGEXP_EXTRACT_ALL", strings, "[0-9]", 0) == [["1"], ["2", "2"], [], None]


@pytest.mark.parametrize(
    ("expression", "group", "expected"),
    [
        ("a(b)(c)", 2, "a(?:b)(?P<g>c)"),
        (r"\((b)", 1, r"\((?P<g>b)"),
        ("[(](b)", 1, "[(](?P<g>b)"),
        ("[^](](b)", 1, "[^](](?P<g>b)"),
        ("(?:a)(?<n>b)", 1, "(?:a)(?P<g>b)"),
        ("(a)", 0, "(?P<g>(?:a))"),
        ("(a)", 2, None),
    ],
)
def test_the_group_of_an_expression(expression, group, expected):
    assert with_group(expression, group) == expected


def test_what_cannot_be():
    with pytest.raises(RowError, match="'\\*' is not base64"):
        result("FROM_BASE64", column(STRING, "YQ==", "*"))
    with pytest.raises(RowError, match="no SHA-2 hash of 100 bits"):
        one("SHA2", "a", 100)
    with pytest.raises(RowError, match="no character set 'x'"):
        one("ENCODE", "a", "x")


def test_hashes_of_columns():
    found = result("MD5", column(STRING, "abc", None, "abc"))
    assert found == ["900150983cd24fb0d6963f7d28e17f72", None, "900150983cd24fb0d6963f7d28e17f72"]
    for name, size in (("SHA1", 40), ("SHA224", 56), ("SHA256", 64), ("SHA384", 96), ("SHA512", 128)):
        assert [len(one or "") for one in result(name, column(STRING, "a", None))] == [size, 0]
    assert result("SHA256", column(DataTypes.BYTES(), b"abc"))[0].startswith("ba7816bf")


def test_addresses():
    strings = column(STRING, "1.2.3.4", "1.2", "x", None)
    assert result("INET_ATON", strings) == [16909060, 16777218, None, None]
    assert result("INET_NTOA", column(DataTypes.BIGINT(), 16909060, -1, 2**32, None)) == ["1.2.3.4", None, None, None]


def test_printf():
    values = column(INT, 5, -12345, None)
    assert result("PRINTF", "%,d|%5d|%-5d|%+d", values, values, values, values)[:2] == [
        "5|    5|5    |+5",
        "-12,345|-12345|-12345|-12345",
    ]
    assert result("PRINTF", column(STRING, "%s", "%d%d", None), constant(INT, 1)) == ["1", None, None]


def test_a_text_is_filled_up_far_and_one_too_long_for_a_column_is_an_error():
    assert one("RPAD", constant(STRING, "ab"), constant(INT, 1_000_000), constant(STRING, "xyz")) == (
        "ab" + "xyz" * 333_332 + "xy"
    )
    for name, arguments in (("REPEAT", ()), ("LPAD", (constant(STRING, "é"),))):
        with pytest.raises(RowError, match="make them shorter"):
            one(name, constant(STRING, "ab"), constant(INT, 2**31 - 1), *arguments)
