"""Functions of strings; places are counted in characters, from 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy
import pyarrow
import pyarrow.compute as pc

from rayflink.table.functions.casts.nested_casts import nulls_of
from rayflink.table.functions.declaring import (
    BOOLEAN,
    INT,
    INTEGER,
    STRING,
    TEXT,
    TEXT_OR_BYTES,
    Columns,
    Family,
    Kind,
    as_strings,
    by_columns,
    by_values,
    joined_present,
    takes,
)
from rayflink.table.functions.nested_equality import sizes
from rayflink.table.functions.regexes import each_distinct, strings_of
from rayflink.table.plan.type_rules import common_type
from rayflink.table.plan.typed import Arguments, Expr, RowError, Values
from rayflink.table.types import MOST_LENGTH, DataType, DataTypes, Root

strings = Family("Strings")
_NO_TEXT = pyarrow.scalar(None, pyarrow.string())
_MOST_BYTES = 2**30
"""Of the strings that a function makes of a batch."""


def varchar_like_first(args: Sequence[Expr]) -> DataType:
    """Return the VARCHAR of the first argument's length."""
    kind = args[0].type
    return DataTypes.VARCHAR(kind.length) if kind.is_text else STRING


def _plain(kernel: Callable[..., Any]) -> Callable[[Arguments], Values]:
    return lambda arguments: kernel(*map(as_strings, arguments.values))


def _cased(fast: Callable[[Any], Any], name: str) -> Callable[..., Any]:
    """Change case by Arrow where all is ASCII; else by polars, which knows letters that become two."""

    def computed(arguments: Arguments, columns: Columns) -> Any:
        values = strings_of(columns[0])
        if pc.all(pc.string_is_ascii(values)).as_py() in (True, None):
            return fast(values)
        return by_polars(values, lambda series: getattr(series.str, name)())

    return by_columns(computed)


def by_polars(values: Values, compute: Callable[[Any], Any]) -> Any:
    """Apply a function of polars to a column of strings."""
    import polars

    return compute(polars.from_arrow(values)).to_arrow().cast(pyarrow.string())


@by_columns
def _titled(arguments: Arguments, columns: Columns) -> Any:
    """Capitalize by bytes where all is ASCII; else each distinct string once, as polars starts a word after a digit."""
    values = strings_of(columns[0])
    if not pc.all(pc.string_is_ascii(values)).as_py() and len(values) != values.null_count:
        return each_distinct(values, _title, pyarrow.string())
    values = pyarrow.concat_arrays([pc.ascii_lower(values)])  # its offsets begin where its bytes do
    _, offsets, data = values.buffers()
    starts = numpy.frombuffer(offsets, numpy.int32, values.offset + len(values) + 1)[values.offset :]
    letters = numpy.frombuffer(data or b"", numpy.uint8).copy()
    small, digit = (letters >= 97) & (letters <= 122), (letters >= 48) & (letters <= 57)
    inside = numpy.concatenate([[False], (small | digit)[:-1]])[: len(letters)]
    inside[starts[starts < len(letters)]] = False
    letters[small & ~inside] -= 32
    buffers = [values.buffers()[0], offsets, pyarrow.py_buffer(letters.tobytes())]
    return pyarrow.Array.from_buffers(pyarrow.string(), len(values), buffers, offset=values.offset)


def _title(text: str | None) -> str | None:
    if text is None:
        return None
    pairs = zip(" " + text, text, strict=False)
    return "".join(character.lower() if before.isalnum() else character.upper() for before, character in pairs)


def _cased_type(args: Sequence[Expr]) -> DataType:
    return STRING if args[0].type.root is Root.NULL else args[0].type


strings.add("UPPER(text)", "The text in upper case.", takes(TEXT, gives=_cased_type),
          _cased(pc.ascii_upper, "to_uppercase"), aliases=("UCASE",))  # fmt: skip
strings.add("LOWER(text)", "The text in lower case.", takes(TEXT, gives=_cased_type),
          _cased(pc.ascii_lower, "to_lowercase"), aliases=("LCASE",))  # fmt: skip
strings.add("INITCAP(text)", "Each word with a capital, then in lower case; a word consists of letters and digits.",
          takes(TEXT, gives=_cased_type), _titled)  # fmt: skip
strings.add("CHAR_LENGTH(text)", "How many characters the text has.", takes(TEXT, gives=INT), _plain(pc.utf8_length),
          aliases=("CHARACTER_LENGTH",))  # fmt: skip
strings.add("REVERSE(text)", "The text in reverse order.", takes(TEXT, gives=STRING), _plain(pc.utf8_reverse))


# Putting together.


def _infer_joined(args: Sequence[Expr]) -> DataType | str:
    if len(args) < 2 or not all(TEXT.accepts(arg.type) for arg in args):
        return "strings"
    length = min(sum(arg.type.length or MOST_LENGTH for arg in args), MOST_LENGTH)
    fixed_length = all(arg.type.root is Root.CHAR for arg in args)
    kind = DataTypes.CHAR(length) if fixed_length else DataTypes.VARCHAR(length)
    return kind.as_nullable(any(arg.type.is_nullable for arg in args))


def _joined(arguments: Arguments) -> Values:
    return pc.binary_join_element_wise(*map(as_strings, arguments.values), pyarrow.scalar(""))


strings.add("text1 || text2", "Both strings, one after the other; null if one is null.", _infer_joined, _joined,
          name="||", symbol="||")  # fmt: skip
strings.add("CONCAT(text1, text2, ...)", "All strings, one after the other; null if one is null.",
          takes(TEXT, gives=STRING, more=TEXT), _joined)  # fmt: skip


@strings("CONCAT_WS(separator, text1, text2, ...)", "The strings that are not null, with a separator between them.",
       takes(TEXT, gives=STRING, more=TEXT))  # fmt: skip
def _joined_with(arguments: Arguments) -> Values:
    separator, *others = map(as_strings, arguments.values)
    return joined_present(others, separator) if others else pc.if_else(pc.is_valid(separator), "", _NO_TEXT)


@strings("REPEAT(text, number)", "The text this many times.", takes(TEXT, INTEGER, gives=STRING))
def _repeated(arguments: Arguments) -> Values:
    text, number = arguments.values
    times = pc.max_element_wise(pc.cast(number, pyarrow.int64()), 0, skip_nulls=False)
    factors = (pc.cast(factor, pyarrow.float64(), safe=False) for factor in (pc.binary_length(as_strings(text)), times))
    bytes_ = pc.multiply(*factors)
    if isinstance(bytes_, pyarrow.Scalar):
        _check_size((bytes_.as_py() or 0) * arguments.rows)
    else:
        _check_size(pc.sum(bytes_).as_py() or 0)
    return pc.binary_repeat(as_strings(text), times)


def _check_size(characters: float, bytes_of_one: float = 1) -> None:
    """Refuses strings of a batch that no column of Arrow holds, or memory hardly does.

    Raises:
        RowError: they are too long.
    """
    size = characters * bytes_of_one
    if size > _MOST_BYTES:
        problem = f"the strings of a batch would have {size:.3g} bytes, at most {_MOST_BYTES} are possible"
        raise RowError(problem, "make them shorter")


def _padded(left: bool) -> Any:
    @by_values(1, 2)
    def computed(arguments: Arguments, columns: Columns, length: int, pad: str = " ") -> Any:
        values = strings_of(columns[0])
        if length < 0 or not pad:
            return pyarrow.nulls(len(values), pyarrow.string())
        missing = pc.max_element_wise(pc.subtract(length, pc.utf8_length(values)), 0, skip_nulls=False)
        counts = missing.dictionary_encode()  # a text for each number that is there, not for all up to the length
        _check_size(pc.sum(pc.cast(missing, pyarrow.float64())).as_py() or 0, len(pad.encode()) / len(pad))
        whole = pad * ((pc.max(missing).as_py() or 0) // len(pad) + 1)
        added = pyarrow.array([whole[:count] for count in counts.dictionary.to_pylist()], pyarrow.string())
        added = added.take(counts.indices)
        head = pc.utf8_slice_codeunits(values, 0, length)
        return pc.binary_join_element_wise(*((added, head) if left else (head, added)), "")

    return computed


for _name, _left, _side in (("LPAD", True, "left"), ("RPAD", False, "right")):
    strings.add(f"{_name}(text, length, pad)", f"The text filled up on the {_side} to a length, or cut to it.",
              takes(TEXT, INTEGER, TEXT, gives=STRING, null=True, least=3), _padded(_left))  # fmt: skip


# Parts.


@by_values(1, 2)
def _substring(arguments: Arguments, columns: Columns, start: int, length: int | None = None) -> Any:
    values = strings_of(columns[0])
    if len(columns) > 2 and (length is None or length < 0):
        return pyarrow.nulls(len(values), pyarrow.string())
    if start >= 0:
        first = max(start - 1, 0)
        return pc.utf8_slice_codeunits(values, first, None if length is None else min(first + length, 2**63 - 1))
    if length is None:
        return _last_characters(values, -start)
    return pc.utf8_slice_codeunits(_last_characters(values, -start), 0, length)


def _last_characters(values: Values, count: int) -> Any:
    """Return the last `count` characters; the empty string where there are fewer."""
    ends = pc.utf8_slice_codeunits(values, -count)
    return pc.if_else(
        pc.greater_equal(pc.utf8_length(values), count), ends, pc.if_else(pc.is_valid(values), "", _NO_TEXT)
    )


def _substring_of_columns(arguments: Arguments) -> Values:
    """Constants by Arrow; places that are columns by polars."""
    if all(isinstance(value, pyarrow.Scalar) for value in arguments.values[1:]):
        return _substring(arguments)
    return _sliced(arguments)


@by_columns
def _sliced(arguments: Arguments, columns: Columns) -> Any:
    import polars

    values = strings_of(columns[0])
    start = pc.cast(columns[1], pyarrow.int64())
    size = pc.cast(pc.utf8_length(values), pyarrow.int64())
    first = pc.if_else(
        pc.less(start, 0), pc.add(size, start), pc.max_element_wise(pc.subtract(start, 1), 0, skip_nulls=False)
    )
    length = pc.cast(columns[2], pyarrow.int64()) if len(columns) > 2 else size
    bad = pc.or_kleene(pc.less(length, 0), pc.is_null(first)) if len(columns) > 2 else pc.is_null(first)
    length = pc.if_else(pc.less(first, 0), 0, pc.max_element_wise(length, 0, skip_nulls=False))
    frame: Any = polars.DataFrame({"text": values, "first": first, "length": length})
    col = polars.col
    result = frame.select(col("text").str.slice(col("first").clip(0), col("length")))["text"]
    return pc.if_else(pc.fill_null(bad, True), _NO_TEXT, result.to_arrow().cast(pyarrow.string()))


strings.add("SUBSTRING(text FROM start [FOR length])",
          "The part from start on; a negative start counts from the end, a negative length gives null.",
          takes(TEXT, INTEGER, INTEGER, gives=varchar_like_first, least=2, null=True), _substring_of_columns,
          name="SUBSTRING", aliases=("SUBSTR",))  # fmt: skip


@strings("LEFT(text, length)", "The first `length` characters; none if it is negative.",
       takes(TEXT, INTEGER, gives=varchar_like_first, null=True))  # fmt: skip
@by_values(1)
def _first(arguments: Arguments, columns: Columns, length: int) -> Any:
    return pc.utf8_slice_codeunits(strings_of(columns[0]), 0, max(length, 0))


@strings("RIGHT(text, length)", "The last `length` characters; none if it is negative.",
       takes(TEXT, INTEGER, gives=varchar_like_first, null=True))  # fmt: skip
@by_values(1)
def _last(arguments: Arguments, columns: Columns, length: int) -> Any:
    values = strings_of(columns[0])
    return pc.utf8_slice_codeunits(values, -length) if length > 0 else pc.utf8_slice_codeunits(values, 0, 0)


@strings("OVERLAY(text PLACING other FROM start [FOR length])",
       "The text in which other replaces `length` characters from start on, by default as many as other has.",
       takes(TEXT, TEXT, INTEGER, INTEGER, gives=STRING, least=3), name="OVERLAY")  # fmt: skip
@by_values(2, 3)
def _overlaid(arguments: Arguments, columns: Columns, start: int, length: int | None = None) -> Any:
    values, other = strings_of(columns[0]), strings_of(columns[1])
    size = pc.cast(pc.utf8_length(values), pyarrow.int64())
    if start <= 0:
        return pc.if_else(pc.is_valid(other), values, _NO_TEXT)
    count = pc.cast(pc.utf8_length(other), pyarrow.int64()) if length is None else pyarrow.array([length] * len(values))
    before = pc.utf8_slice_codeunits(values, 0, start - 1)
    stop = pc.add(start - 1, count)
    ends = pc.or_(pc.less(count, 0), pc.greater(stop, size))
    after = _rest(values, pc.if_else(ends, size, stop))
    result = pc.binary_join_element_wise(before, other, after, "")
    return pc.if_else(pc.less(size, start), pc.if_else(pc.is_valid(other), values, _NO_TEXT), result)


def _rest(values: Values, starts: Any) -> Any:
    """Return the part after a number of characters."""
    import polars

    frame: Any = polars.DataFrame({"text": values, "start": starts})
    col = polars.col
    return frame.select(col("text").str.slice(col("start")))["text"].to_arrow().cast(pyarrow.string())


def _trimmed(side: str) -> Callable[[Arguments], Values]:
    names = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}

    @by_values(1)
    def computed(arguments: Arguments, columns: Columns, characters: str = " ") -> Any:
        where = arguments.call.options[0] if arguments.call.options else side
        if not characters:
            return strings_of(columns[0])
        return getattr(pc, "utf8_" + names[where])(strings_of(columns[0]), characters)

    return computed


strings.add("TRIM([BOTH | LEADING | TRAILING] [characters FROM] text)",
          "The text without blanks, or other characters, at its ends.",
          takes(TEXT, TEXT, gives=varchar_like_first, least=1),
          _trimmed("BOTH"), name="TRIM")  # fmt: skip
strings.add("BTRIM(text[, characters])", "The text without blanks, or other characters, at both ends.",
          takes(TEXT, TEXT, gives=STRING, least=1), _trimmed("BOTH"))  # fmt: skip
strings.add("LTRIM(text[, characters])", "The text without blanks, or other characters, at its start.",
          takes(TEXT, TEXT, gives=varchar_like_first, least=1), _trimmed("LEADING"))  # fmt: skip
strings.add("RTRIM(text[, characters])", "The text without blanks, or other characters, at its end.",
          takes(TEXT, TEXT, gives=varchar_like_first, least=1), _trimmed("TRAILING"))  # fmt: skip


# Finding.


@by_values(0, 2)
def _located(arguments: Arguments, columns: Columns, needle: str, start: int = 1) -> Any:
    return _place(strings_of(columns[1]), needle, start)


def _place(values: Values, needle: str, start: int = 1) -> Any:
    """Find the first position of a part at or after a position, 0 where it does not occur."""
    skipped = max(start - 1, 0)
    behind = pc.utf8_slice_codeunits(values, skipped) if skipped else values
    if not needle:
        result = pc.if_else(pc.is_valid(values), skipped + 1, pyarrow.scalar(None, pyarrow.int64()))
        return pc.cast(result, pyarrow.int32())
    position = pc.find_substring(behind, needle)
    if not pc.all(pc.string_is_ascii(behind)).as_py():
        pieces = pc.split_pattern(behind, needle, max_splits=1)
        firsts = pieces.values.take(
            pc.if_else(pc.is_valid(pieces), pieces.offsets[:-1], pyarrow.scalar(None, pyarrow.int32()))
        )
        position = pc.if_else(pc.less(position, 0), position, pc.utf8_length(firsts))
    return pc.if_else(pc.less(position, 0), 0, pc.add(position, skipped + 1)).cast(pyarrow.int32())


strings.add("POSITION(part IN text)",
            "The first position at which a part begins; 0 if there is none.", takes(TEXT, TEXT, gives=INT),
          _located, name="POSITION")  # fmt: skip
strings.add("LOCATE(part, text[, start])",
            "The first position at which a part begins, searched from start on; 0 if there is none.",
          takes(TEXT, TEXT, INTEGER, gives=INT, least=2), _located)  # fmt: skip


@strings(
    "INSTR(text, part)", "The first position at which a part begins; 0 if there is none.", takes(TEXT, TEXT, gives=INT)
)
@by_values(1)
def _instr(arguments: Arguments, columns: Columns, needle: str) -> Any:
    return _place(strings_of(columns[0]), needle)


def _tested(name: str) -> Any:
    kernel = getattr(pc, name)

    @by_values(1)
    def computed(arguments: Arguments, columns: Columns, needle: Any) -> Any:
        return kernel(columns[0], needle)

    return computed


def _infer_tested(args: Sequence[Expr]) -> DataType | str:
    if len(args) != 2 or common_type([arg.type for arg in args]) is None:
        return "two strings, or two values of bytes"
    return takes(TEXT_OR_BYTES, TEXT_OR_BYTES, gives=BOOLEAN)(args)


strings.add("STARTSWITH(text, part)", "Whether the text begins with a part.", _infer_tested, _tested("starts_with"))
strings.add("ENDSWITH(text, part)", "Whether the text ends with a part.", _infer_tested, _tested("ends_with"))


def _all_of(test: Callable[[Any], Any]) -> Callable[[Arguments], Values]:
    return lambda arguments: pc.fill_null(test(as_strings(arguments.values[0])), False)


_DECIMAL = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
for _usage, _about, _test in (
    ("IS_ALPHA(text)", "Whether all characters are letters.", pc.utf8_is_alpha),
    ("IS_DIGIT(text)", "Whether all characters are digits.", pc.utf8_is_decimal),
    ("IS_DECIMAL(text)", "Whether the text is a number.", lambda column: pc.match_substring_regex(column, _DECIMAL)),
):
    strings.add(_usage, _about, takes(TEXT, gives=BOOLEAN, null=False), _all_of(_test))


# Replacing and splitting.


@strings(
    "REPLACE(text, part, other)",
    "The text with each occurrence of part replaced by other.",
    takes(TEXT, TEXT, TEXT, gives=STRING),
)
@by_values(1, 2)
def _replaced(arguments: Arguments, columns: Columns, needle: str, replacement: str) -> Any:
    values = strings_of(columns[0])
    if needle:
        return pc.replace_substring(values, needle, replacement)
    return pc.replace_substring_regex(values, "", replacement.replace("\\", "\\\\"))


@strings("TRANSLATE(text, from, to)",
         "The text with each character of `from` replaced by the one at the same position in `to`.",
       takes(TEXT, TEXT, TEXT, gives=STRING, null=True))  # fmt: skip
@by_values(1, 2)
def _translated(arguments: Arguments, columns: Columns, characters: str, replacements: str) -> Any:
    values = strings_of(columns[0])
    pairs = dict(reversed([(character, replacements[index : index + 1]) for index, character in enumerate(characters)]))
    if not pairs:
        return values
    return by_polars(values, lambda series: series.str.replace_many(list(pairs), list(pairs.values())))


def split_strings(values: Values, separator: str) -> Any:
    """Return the parts of strings between separators: lists of strings."""
    return pc.split_pattern(values, separator)


_SEPARATOR = Kind("a separator", lambda kind: kind.is_text or kind.is_integer, STRING)


@strings("SPLIT_INDEX(text, separator, index)",
         "The part with this number, counted from 0, of those between separators; null if there is none.",
       takes(TEXT, _SEPARATOR, INTEGER, gives=STRING, null=True))  # fmt: skip
@by_values(1)
def _split_index(arguments: Arguments, columns: Columns, separator: Any) -> Any:
    values, index = strings_of(columns[0]), columns[2]
    separator = chr(separator) if isinstance(separator, int) else separator
    split = partial(split_strings, values, separator) if separator else partial(pc.utf8_split_whitespace, values)
    parts = arguments.once(("split", separator), values, split)
    places = pc.add(pc.cast(parts.offsets[:-1], pyarrow.int64()), pc.cast(index, pyarrow.int64()))
    inside = pc.and_(pc.less(places, parts.offsets[1:]), pc.greater_equal(index, 0))
    inside = pc.and_kleene(inside, pc.greater(pc.binary_length(values), 0))
    return parts.values.take(pc.if_else(pc.fill_null(inside, False), places, pyarrow.scalar(None, pyarrow.int64())))


@strings("SPLIT(text, separator)",
         "An array of the parts between separators; an empty separator splits into characters.",
       takes(TEXT, TEXT, gives=DataTypes.ARRAY(STRING)))  # fmt: skip
@by_values(1)
def _split(arguments: Arguments, columns: Columns, separator: str) -> Any:
    values = strings_of(columns[0])
    if separator:
        return split_strings(values, separator)
    import polars

    series: Any = polars.from_arrow(values)
    pieces = series.str.extract_all("(?s).").to_arrow()
    return pieces.cast(pyarrow.large_list(pyarrow.string())).cast(pyarrow.list_(pyarrow.string()))


@strings("STR_TO_MAP(text[, separator1, separator2])",
       "A map from a text such as 'a=1,b=2'; the separators are regular expressions, by default , and =.",
       takes(TEXT, TEXT, TEXT, gives=DataTypes.MAP(STRING, STRING), least=1, null=True))  # fmt: skip
@by_values(1, 2)
def _map_of_text(arguments: Arguments, columns: Columns, between: str = ",", key_separator: str = "=") -> Any:
    from rayflink.table.functions.collections import made_maps  # which imports this module

    values = strings_of(columns[0])
    pieces = pc.split_pattern_regex(values, between)
    pairs = pc.split_pattern_regex(pieces.flatten(), key_separator, max_splits=1)
    starts, counts = pairs.offsets[:-1], pyarrow.array(sizes(pairs))
    second = pc.if_else(pc.greater(counts, 1), pc.add(starts, 1), pyarrow.scalar(None, pyarrow.int32()))
    return made_maps(pairs.values.take(starts), pairs.values.take(second), sizes(pieces), nulls_of(values))


def _infer_elt(args: Sequence[Expr]) -> DataType | str:
    kind = common_type([arg.type for arg in args[1:]]) if len(args) > 1 and INTEGER.accepts(args[0].type) else None
    if kind is None or not TEXT_OR_BYTES.accepts(kind):
        return "a whole number, and strings"
    return kind.nullable()


@strings(
    "ELT(index, text1, text2, ...)", "The text with this number, counted from 1; null if there is none.", _infer_elt
)
@by_columns
def _chosen(arguments: Arguments, columns: Columns) -> Any:
    index, *values = columns
    rows = len(index)
    values = [value.cast(arguments.result) for value in values]
    whole = pc.cast(index, pyarrow.int64())
    inside = pc.and_(pc.greater_equal(whole, 1), pc.less_equal(whole, len(values)))
    places = pc.add(pc.multiply(pc.subtract(whole, 1), rows), pyarrow.array(numpy.arange(rows)))
    places = pc.if_else(inside, places, pyarrow.scalar(None, pyarrow.int64()))
    return pyarrow.concat_arrays(values).take(places)


@strings("CURRENT_DATABASE()", "Name of the current database.", takes(gives=STRING, null=False))
def _current_database(arguments: Arguments) -> Values:
    return pyarrow.scalar(arguments.session.database, pyarrow.string())
