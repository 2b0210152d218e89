"""LIKE, SIMILAR TO and the functions of regular expressions.

Expressions are those of RE2, which has most of Java's; one that RE2 does not take (look-around, back-references) is
matched by Python's `re` on each different text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy
import pyarrow
import pyarrow.compute as pc

from rayflink.table.functions.casts.nested_casts import lists_of, nulls_of
from rayflink.table.functions.declaring import (
    BOOLEAN,
    INT,
    INTEGER,
    STRING,
    TEXT,
    Columns,
    Family,
    Kind,
    as_strings,
    by_values,
    takes,
)
from rayflink.table.plan.typed import Arguments, RowError
from rayflink.table.types import DataTypes

regexes = Family("Regular expressions")
comparison = Family("Comparison")
_REGEX = Kind("a regular expression", TEXT.holds, STRING)


def strings_of(values: pyarrow.Array) -> Any:
    """Return a column of strings, also of a bare NULL."""
    return as_strings(values)


def each_distinct(strings: pyarrow.Array, compute: Callable[[str], Any], kind: pyarrow.DataType) -> Any:
    """Compute each distinct value once in Python; for what Arrow, numpy and polars cannot do."""
    coded = strings.dictionary_encode()
    result = pyarrow.array([compute(text) for text in coded.dictionary.to_pylist()], kind)
    return result.take(coded.indices)


@lru_cache(maxsize=256)
def _compiled(expression: str) -> re.Pattern[str] | None:
    """None for one that is no expression."""
    try:
        return re.compile(re.sub(r"\(\?<([A-Za-z])", r"(?P<\1", expression))
    except re.error:
        return None


@lru_cache(maxsize=256)
def _is_re2(expression: str) -> bool:
    try:
        pc.match_substring_regex(pyarrow.scalar(""), expression)
    except pyarrow.ArrowInvalid:
        return False
    return True


def _is_known(expression: str) -> bool:
    return _is_re2(expression) or _compiled(expression) is not None


@lru_cache(maxsize=256)
def with_group(expression: str, group: int) -> str | None:
    """Return the expression with that group alone, named g, as Arrow wants it; 0 is all of it. None where it has fewer.

    >>> with_group(r"foo(.*?)(bar)", 2)
    'foo(?:.*?)(?P<g>bar)'
    """
    regex, offset, count, in_class = "", 0, 0, False
    while offset < len(expression):
        character = expression[offset]
        if character == "\\":
            regex += expression[offset : offset + 2]
            offset += 2
            continue
        if in_class:
            in_class = character != "]"
        elif character == "[":
            in_class = True
            if expression[offset + 1 : offset + 2] in ("]", "^") and expression[offset + 1 : offset + 3] in ("^]",):
                regex += expression[offset : offset + 3]
                offset += 3
                continue
        elif character == "(":
            name = re.match(r"\(\?P?<[A-Za-z]\w*>", expression[offset:])
            if name or not expression.startswith("(?", offset):
                count += 1
                regex += "(?P<g>" if count == group else "(?:"
                offset += len(name[0]) if name else 1
                continue
        regex += character
        offset += 1
    if group == 0:
        return f"(?P<g>{regex})"
    return regex if group <= count else None


# LIKE and SIMILAR TO.


def _infer_pattern(args: Sequence[Any]) -> Any:
    return takes(
        TEXT, Kind("a pattern", TEXT.holds, STRING), Kind("one character", TEXT.holds, STRING), gives=BOOLEAN, least=2
    )(args)


@comparison(
    "text LIKE pattern [ESCAPE character]",
    "Whether the text matches a pattern, in which % stands for any characters and _ for one.",
    _infer_pattern,
    name="LIKE",
    symbol="LIKE",
)
@by_values(1, 2)
def _like(arguments: Arguments, columns: Columns, pattern: str, escape: str = "") -> Any:
    return pc.match_like(strings_of(columns[0]), _arrow_pattern(pattern, escape))


def _arrow_pattern(pattern: str, escape: str) -> str:
    """Return the same with Arrow's escape.

    Raises:
        RowError: the escape stands before another character than %, _ and itself.
    """
    if len(escape) > 1:
        raise RowError(f"{escape!r} is not an escape character for LIKE", "give one character")
    result, offset = "", 0
    while offset < len(pattern):
        character = pattern[offset]
        if escape and character == escape:
            offset += 1
            character = pattern[offset : offset + 1]
            if character not in ("%", "_", escape) or not character:
                raise RowError(
                    f"{escape!r} in the pattern {pattern!r} is followed by {character!r}", "escape only %, _ and itself"
                )
            result += "\\" + character if character in "%_\\" else character
        else:
            result += "\\\\" if character == "\\" else character
        offset += 1
    return result


@comparison(
    "text SIMILAR TO pattern [ESCAPE character]",
    "Whether the text matches a SQL pattern: % and _ as in LIKE, all else as in regular expressions.",
    _infer_pattern,
    name="SIMILAR TO",
    symbol="SIMILAR TO",
)
@by_values(1, 2)
def _similar(arguments: Arguments, columns: Columns, pattern: str, escape: str = "") -> Any:
    return pc.match_substring_regex(strings_of(columns[0]), f"(?s)^(?:{_sql_regex(pattern, escape)})$")


def _sql_regex(pattern: str, escape: str) -> str:
    regex, offset, in_class = "", 0, False
    while offset < len(pattern):
        character = pattern[offset]
        if escape and character == escape:
            offset += 1
            regex += re.escape(pattern[offset : offset + 1])
        elif in_class:
            named = re.match(r"\[:\^?[A-Za-z]+:\]", pattern[offset:])
            if named:
                regex += named[0].lower()
                offset += len(named[0]) - 1
            else:
                in_class = character != "]"
                regex += "\\" + character if character in "\\[" else character
        elif character == "[":
            in_class = True
            regex += character
        elif character in "%_":
            regex += ".*" if character == "%" else "."
        else:
            regex += "\\\\" if character == "\\" else character
        offset += 1
    return regex


# Functions.


@regexes("REGEXP(text, regex)", "Whether a part of the text matches; false if the expression is empty.",
         takes(TEXT, _REGEX, gives=BOOLEAN))  # fmt: skip
@by_values(1)
def _regexp(arguments: Arguments, columns: Columns, expression: str) -> Any:
    strings = strings_of(columns[0])
    if not expression or not _is_known(expression):
        return (
            pc.and_(pc.is_valid(strings), False)
            if not strings.null_count
            else pc.if_else(pc.is_valid(strings), False, None)
        )
    if _is_re2(expression):
        return pc.match_substring_regex(strings, expression)
    return each_distinct(strings, lambda text: _python(expression).search(text) is not None, pyarrow.bool_())


def _python(expression: str) -> re.Pattern[str]:
    compiled = _compiled(expression)
    assert compiled is not None, expression
    return compiled


@regexes("REGEXP_REPLACE(text, regex, replacement)", "The text with each part that matches replaced by another text.",
         takes(TEXT, _REGEX, TEXT, gives=STRING, null=True))  # fmt: skip
@by_values(1, 2)
def _replace(arguments: Arguments, columns: Columns, expression: str, replacement: str) -> Any:
    strings = strings_of(columns[0])
    if _is_re2(expression):
        return pc.replace_substring_regex(strings, expression, replacement.replace("\\", "\\\\"))
    if _compiled(expression) is None:
        return pyarrow.nulls(len(strings), pyarrow.string())
    return each_distinct(strings, lambda text: _python(expression).sub(lambda _: replacement, text), pyarrow.string())


@regexes("REGEXP_EXTRACT(text, regex[, group])",
         "The first part that matches, or its group with this number; null if there is none.",
         takes(TEXT, _REGEX, INTEGER, gives=STRING, least=2, null=True))  # fmt: skip
@by_values(1, 2)
def _extract(arguments: Arguments, columns: Columns, expression: str, group: int = 0) -> Any:
    return extracted(strings_of(columns[0]), expression, group)


def extracted(strings: pyarrow.Array, expression: str, group: int) -> Any:
    """Return the first match in each text, or a group of it, null if there is none."""
    if group < 0 or not _is_known(expression):
        return pyarrow.nulls(len(strings), pyarrow.string())
    if _is_re2(expression):
        named = with_group(expression, group)
        if named is None:
            return pyarrow.nulls(len(strings), pyarrow.string())
        return pc.struct_field(pc.extract_regex(strings, named), "g")

    def first(text: str) -> str | None:
        match = _python(expression).search(text)
        return match[group] if match is not None and group <= _python(expression).groups else None

    return each_distinct(strings, first, pyarrow.string())


@regexes("REGEXP_SUBSTR(text, regex)", "The first part that matches; null if there is none.",
         takes(TEXT, _REGEX, gives=STRING, null=True))  # fmt: skip
@by_values(1)
def _substring(arguments: Arguments, columns: Columns, expression: str) -> Any:
    return extracted(strings_of(columns[0]), expression, 0)


@regexes("REGEXP_EXTRACT_ALL(text, regex[, group])",
         "An array with one group of each part that matches, by default group 1; group 0 is the whole part.",
         takes(TEXT, _REGEX, INTEGER, gives=DataTypes.ARRAY(STRING), least=2, null=True))  # fmt: skip
@by_values(1, 2)
def _extract_all(arguments: Arguments, columns: Columns, expression: str, group: int = 1) -> Any:
    import polars

    strings = strings_of(columns[0])
    named = with_group(expression, group) if group >= 0 else None
    if named is None or not _is_re2(expression):
        return _all_by_python(strings, expression, group)
    series: Any = polars.from_arrow(strings)
    whole = series.str.extract_all(expression).to_arrow()
    whole = pyarrow.array(whole).cast(pyarrow.large_list(pyarrow.string())).cast(pyarrow.list_(pyarrow.string()))
    parts, counts = whole.flatten(), numpy.diff(whole.offsets.to_numpy())
    extracts = extracted(parts, expression, group) if group else parts
    return lists_of(extracts, counts, nulls_of(strings))


def _all_by_python(strings: pyarrow.Array, expression: str, group: int) -> Any:
    kind = pyarrow.list_(pyarrow.string())
    compiled = _compiled(expression)
    if compiled is None or not 0 <= group <= compiled.groups:
        return pyarrow.nulls(len(strings), kind)
    return each_distinct(strings, lambda text: [match[group] for match in compiled.finditer(text)], kind)


@regexes("REGEXP_COUNT(text, regex)", "How many parts match.", takes(TEXT, _REGEX, gives=INT, null=True))
@by_values(1)
def _count(arguments: Arguments, columns: Columns, expression: str) -> Any:
    strings = strings_of(columns[0])
    if not _is_known(expression):
        return pyarrow.nulls(len(strings), pyarrow.int32())
    if not _is_re2(expression):
        return each_distinct(strings, lambda text: len(_python(expression).findall(text)), pyarrow.int32())
    if expression == "":
        return pc.add(pc.utf8_length(strings), 1)
    return pc.count_substring_regex(strings, expression)


@regexes("REGEXP_INSTR(text, regex)", "The position of the first part that matches, counted from 1; 0 if none does.",
         takes(TEXT, _REGEX, gives=INT, null=True))  # fmt: skip
@by_values(1)
def _instr(arguments: Arguments, columns: Columns, expression: str) -> Any:
    strings = strings_of(columns[0])
    if not _is_known(expression):
        return pyarrow.nulls(len(strings), pyarrow.int32())
    if not _is_re2(expression):

        def place(text: str) -> int:
            match = _python(expression).search(text)
            return 0 if match is None else match.start() + 1

        return each_distinct(strings, place, pyarrow.int32())
    match = pc.extract_regex(strings, f"(?s)^(?P<before>.*?)(?-s:{with_group(expression, 0)})")
    place_of = pc.add(pc.utf8_length(pc.struct_field(match, "before")), 1)
    return pc.if_else(pc.is_valid(strings), pc.fill_null(place_of, 0), pyarrow.scalar(None, pyarrow.int32()))
