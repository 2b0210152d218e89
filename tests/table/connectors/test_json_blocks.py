"""The parser of JSON by columns and the reading value by value agree: what the first accepts the other reads alike."""

from __future__ import annotations

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.records.json_columns import JsonParser, UnreadableColumn
from rayflink.table import DataTypes
from rayflink.table.connectors.json_blocks import JsonBlocks
from rayflink.table.connectors.json_values import BadValue
from rayflink.table.plan.logical import Attribute, Schema

T = DataTypes
ROW = T.ROW([("a", T.BIGINT()), ("b", T.STRING()), ("at", T.TIMESTAMP(3)), ("deep", T.ROW([("x", T.DOUBLE())]))])
KINDS = [T.BOOLEAN(), T.TINYINT(), T.INT(), T.BIGINT(), T.FLOAT(), T.DOUBLE(), T.DECIMAL(6, 2), T.STRING(), T.DATE(),
         T.TIME(3), T.TIMESTAMP(3), T.TIMESTAMP_LTZ(6), T.BYTES(), T.ARRAY(T.INT()), T.ARRAY(ROW),
         T.MAP(T.STRING(), T.DECIMAL(5, 2)), T.MULTISET(T.STRING()), ROW]  # fmt: skip
NAMES = ["a", "b", "deep", "at", "ä\n"]
SCALARS = [
    "0", "-0", "1", "-1", "01", "127", "128", "2147483648", "9223372036854775807", "9223372036854775808", "1.0", "1.5",
    "1e2", "1E-2", "1.", ".5", "-", "+1", "1e", "1e400", "-0.0", "0.1", "123456.789", "99999.995", "9007199254740993",
    "16777217", "3.4028236e38", "1e-46", "0.30000000000000004", "true", "false", "null", "nul", "NaN", "Infinity",
    '"x"', '""', '"1"', '" 1 "', '"1.5"', '"NaN"', '"true"', '"\\u00e9"', '"\\ud83d\\ude00"', '"\\ud800"', '"\\x"',
    '"\t"', '"é"', '"2020-01-02"', '"2020-01-02 03:04:05"', '"2020-01-02 03:04:05.1234567Z"', '"03:04:05.6"',
    '"2020-01-02T03:04:05Z"', '"AP8="', '"AP8"', "[]", "{}", "[1]", '[1, null, "2"]', "[1,]", "[[1]]",
]  # fmt: skip
SPACES = st.sampled_from(["", "", "", " ", "\t", "\r"])


def objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    keys = st.sampled_from(['"a"', '"b"', '"deep"', '"at"', '"x"', '"more"', '"\\u0061"', '"ä\\n"', "'a'", "a"])
    field = st.tuples(SPACES, keys, SPACES, values, SPACES).map(lambda part: f"{part[0]}{part[1]}{part[2]}:{part[3]}")
    return st.lists(field, max_size=4).map(lambda fields: "{" + ",".join(fields) + "}")


def lists(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(values, max_size=3).map(lambda items: f"[{','.join(items)}]")


VALUES = st.recursive(st.sampled_from(SCALARS), lambda inner: objects(inner) | lists(inner), max_leaves=6)
LINES = st.one_of(
    objects(VALUES), objects(VALUES), objects(VALUES), VALUES, st.sampled_from(["", " ", "\f", "\ufeff{}"])
)
BLOCKS = st.lists(st.tuples(LINES, st.sampled_from(["\n", "\n", "\n", "\r\n", "", " "])), max_size=5)


@st.composite
def bytes_of_blocks(draw: st.DrawFn) -> bytes:
    """Lines of JSON, some of them with a byte that does not belong there."""
    block = "".join(line + end for line, end in draw(BLOCKS)).encode()
    if block and not draw(st.integers(0, 3)):
        place = draw(st.integers(0, len(block) - 1))
        block = block[:place] + draw(st.binary(max_size=1)) + block[place + 1 :]
    return block


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    return tuple(Attribute(name, draw(st.sampled_from(KINDS))) for name in names)


def row_by_row(blocks: JsonBlocks, lines: list[bytes]) -> pyarrow.RecordBatch:
    return blocks.batch([row for line in lines if line.strip() for row in blocks.rows(line)])


@given(bytes_of_blocks(), schemas(), st.booleans(), st.booleans())
def test_lines_by_columns_are_those_read_one_by_one(block: bytes, schema: Schema, iso: bool, fails: bool) -> None:
    blocks = JsonBlocks(schema, iso, fails)
    found = blocks.columns(block)
    if found is not None:
        assert found.equals(row_by_row(blocks, block.split(b"\n")))


@given(st.lists(bytes_of_blocks(), max_size=3), schemas(), st.booleans())
def test_messages_by_columns_are_those_read_one_by_one(messages: list[bytes], schema: Schema, fails: bool) -> None:
    blocks = JsonBlocks(schema, fails_on_missing=fails)
    found = blocks.messages(messages)
    if found is not None:
        assert found.num_rows == len(messages)
        assert found.equals(row_by_row(blocks, messages))


@given(st.lists(objects(st.sampled_from(["1", "null", "-7", "12"])), min_size=1, max_size=4), st.booleans())
def test_plain_objects_are_not_refused(lines: list[str], fails: bool) -> None:
    """The laws above would hold of a parser that refuses everything."""
    text = "\n".join(lines)
    if "'a'" in text or "a:" in text or "a\t:" in text or "a :" in text or "a\r:" in text:
        return
    parser = JsonParser(pyarrow.schema([("other", pyarrow.int64()), ("a", pyarrow.int64())]))
    assert parser.lines(text.encode()) is not None
    assert parser.messages([line.encode() for line in lines]) is not None


def test_a_nested_field_that_is_missing_is_an_error_where_the_option_says_so() -> None:
    blocks = JsonBlocks((Attribute("r", T.ROW([("x", T.INT()), ("y", T.INT())])),), fails_on_missing=True)
    assert blocks.columns(b'{"r": {"x": 1, "y": null}}') is not None
    assert blocks.columns(b'{"r": {"x": 1}}') is None
    with pytest.raises(BadValue, match="field 'y' is missing"):
        blocks.rows(b'{"r": {"x": 1}}')


@pytest.mark.parametrize(
    "block",
    [b'{"a":1}{"z":\n{}}', b'{"a":1} {"a":2}', b'{"a":\n1}', b'{"a":1}{"a":2}\n\n', b'{"z":"\xff"}', b'{"\xc0\x80":1}'],
)
def test_what_arrives_on_other_lines_or_in_other_bytes_is_refused(block: bytes) -> None:
    assert JsonParser(pyarrow.schema([("a", pyarrow.int64())])).lines(block) is None


@pytest.mark.parametrize(
    "fields",
    [[("a", pyarrow.timestamp("s"))], [("a", pyarrow.int64()), ("a", pyarrow.int64())], [('"', pyarrow.int64())]],
)
def test_columns_that_the_parser_does_not_make_are_refused_at_once(fields: list[tuple[str, pyarrow.DataType]]) -> None:
    with pytest.raises(UnreadableColumn):
        JsonParser(pyarrow.schema(fields))
