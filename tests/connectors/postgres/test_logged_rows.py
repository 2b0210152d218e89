"""Changes of rows parsed by columns are those that a parser of one message at a time finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.records.row_kinds import kinds_of, without_kinds
from rayflink.common.types import RowKind
from rayflink.connectors.cdc.chunks import Chunk, ChunkMarks, FinishedChunk, surviving
from rayflink.connectors.postgres.captured_changes import CapturedRelation
from rayflink.connectors.postgres.logged_rows import LoggedRows
from rayflink.connectors.postgres.pgoutput import Begin, ProtocolError, Relation, RelationColumn, changed_relation
from rayflink.connectors.postgres.postgres_cdc_tables import CapturedColumn, CapturedTable
from rayflink.connectors.postgres.postgres_session import PostgresError
from rayflink.connectors.postgres.snapshot_marks import PostgresMark

HEAD = b"w" + bytes.fromhex("0000000001505788 0000000001505788 000303fb0677df69")
OID = (16384).to_bytes(4, "big")
UNCHANGED = object()
Values = Sequence[object]


def row(values: Values) -> bytes:
    parts = [len(values).to_bytes(2, "big")]
    for value in values:
        if isinstance(value, bytes):
            parts.append(b"t" + len(value).to_bytes(4, "big") + value)
        else:
            parts.append(b"n" if value is None else b"u")
    return b"".join(parts)


@dataclass
class Change:
    """A change to be put into a message; `old` is of the key alone where `old_is_key`."""

    kind: str
    old: Values | None
    new: Values | None
    old_is_key: bool = False
    begin: Begin = Begin(100, 1_700_000_000_000, 7)

    def frame(self) -> bytes:
        old = b"" if self.old is None else (b"K" if self.old_is_key else b"O") + row(self.old)
        new = b"" if self.new is None else b"N" + row(self.new)
        return HEAD + self.kind.encode() + OID + old + new


def insert(*new: object) -> Change:
    return Change("I", None, new)


ids = st.integers(0, 60).map(lambda number: str(number).encode())
texts = st.sampled_from([None, b"", b"x", "h\u00e9llo".encode(), b"long " * 50])
rows_of = st.tuples(ids, texts, st.one_of(st.none(), ids))


@st.composite
def changes(draw: st.DrawFn) -> Change:
    kind, old, new = draw(st.sampled_from("IUD")), draw(rows_of), draw(rows_of)
    commit = draw(st.sampled_from([50, 100, 150]))
    begin = Begin(commit, commit * 10, draw(st.integers(1, 9)))
    if kind == "I":
        return Change(kind, None, new, begin=begin)
    if kind == "D":
        is_key = draw(st.booleans())
        return Change(kind, (old[0], None, None) if is_key else old, None, is_key, begin)
    shape = draw(st.sampled_from(["none", "key", "full", "same key", "unchanged"]))
    if shape == "none":
        return Change(kind, None, new, begin=begin)
    if shape == "key":
        return Change(kind, (old[0], None, None), new, True, begin)
    if shape == "same key":
        new = (old[0], *new[1:])
    if shape == "unchanged":
        return Change(kind, (old[0], b"stored elsewhere", old[2]), (new[0], UNCHANGED, new[2]), begin=begin)
    return Change(kind, old, new, begin=begin)


INT, TEXT = (
    CapturedColumn("id", 20, -1, "int8", "bigint", None, pyarrow.int64()),
    CapturedColumn("a", 25, -1, "text", "text", None, pyarrow.string()),
)
LAST = CapturedColumn("n", 20, -1, "int8", "bigint", None, pyarrow.int64())
TABLE = CapturedTable(16384, "db", "public", "t", (INT, TEXT, LAST), ("id",), INT, "f")
RELATION = Relation(16384, "public", "t", "f", tuple(
    RelationColumn(column.name, column.name == "id", column.type_oid, -1) for column in TABLE.columns))  # fmt: skip
MARKS = ChunkMarks([
    FinishedChunk(Chunk("public.t", 0, None, "20"), PostgresMark("3:8:4", 120)),
    FinishedChunk(Chunk("public.t", 1, "20", "40"), PostgresMark("1:1:", 60)),
    FinishedChunk(Chunk("public.t", 2, "40", None), PostgresMark("9:9:", 140)),
])  # fmt: skip


def locate(table: CapturedTable, keys: Sequence[bytes], bounds: Sequence[str]) -> list[int]:
    raise AssertionError("the chunks of whole numbers are computed here")


def number_at(key: object) -> int:
    assert isinstance(key, bytes)
    return int(key) // 20 if int(key) < 60 else 2


def one_at_a_time(logged: list[Change], marks: ChunkMarks | None, upserts: bool) -> list[tuple[object, ...]]:
    """The rows that the changes become, by the words of `surviving` and of `CapturedRelation`."""
    found: list[tuple[object, ...]] = []
    for change in logged:
        kind = {"I": RowKind.INSERT, "U": RowKind.UPDATE_AFTER, "D": RowKind.DELETE}[change.kind]
        old, new = change.old, change.new
        if new is not None and old is not None:
            new = tuple(before if value is UNCHANGED else value for before, value in zip(old, new, strict=True))
        if marks is not None and change.begin.commit < marks.high:
            first, last = old or new, new or old
            assert first is not None and last is not None
            contained = [marks.contains(number_at(key), change.begin.xid) for key in (first[0], last[0])]
            survivor = surviving(kind, *contained)
            if survivor is None:
                continue
            kind = survivor
        both = kind is RowKind.UPDATE_AFTER and old is not None
        moves = both and (change.old_is_key or old[0] != new[0])  # type: ignore[index]
        steps = [(kind, old if kind is RowKind.DELETE else new)]
        if moves:
            steps = [(RowKind.DELETE, old), (RowKind.INSERT, new)]
        elif both and not upserts:
            steps = [(RowKind.UPDATE_BEFORE, old), (kind, new)]
        found += [(step.value, *decoded(values), change.begin.moment_ms, change.begin.commit) for step, values in steps]
    return found


def decoded(values: Values | None) -> tuple[object, ...]:
    assert values is not None
    key, text, last = (value.decode() if isinstance(value, bytes) else None for value in values)
    return int(str(key)), text, None if last is None else int(last)


def by_columns(logged: list[Change], marks: ChunkMarks | None, upserts: bool) -> list[tuple[object, ...]]:
    relation = CapturedRelation(TABLE, RELATION, marks)
    frames = [change.frame() for change in logged]
    found = relation.changes(frames, [change.begin for change in logged], locate, upserts)
    if found is None:
        return []
    kinds = kinds_of(found.rows)
    assert kinds is not None and found.op_ms is not None and found.positions is not None
    columns = [column.to_pylist() for column in without_kinds(found.rows).columns]
    return list(zip(kinds.tolist(), *columns, found.op_ms.tolist(), found.positions.tolist(), strict=True))


@given(st.lists(changes(), min_size=1, max_size=12), st.booleans(), st.booleans())
def test_columns_are_what_a_parser_of_one_message_at_a_time_finds(logged, has_marks, upserts):
    logged.sort(key=lambda change: change.begin.commit)
    marks = MARKS if has_marks else None
    assert by_columns(logged, marks, upserts) == one_at_a_time(logged, marks, upserts)


def test_an_unchanged_value_is_an_error_unless_the_row_before_has_it():
    key_only = Change("U", (b"1", None, None), (b"2", UNCHANGED, None), True)
    for lacking in (Change("U", None, (b"1", UNCHANGED, None)), key_only):
        with pytest.raises(PostgresError, match="left column 'a' as it was.*REPLICA IDENTITY FULL"):
            by_columns([insert(b"0", b"", None), lacking], None, False)
    whole = Change("U", (b"1", b"before", None), (b"1", UNCHANGED, b"5"))
    assert by_columns([whole], None, True) == [(2, 1, "before", 5, 1_700_000_000_000, 100)]


def test_a_column_that_is_not_captured_may_be_unchanged():
    narrow = CapturedTable(16384, "db", "public", "t", (INT, LAST), ("id",), INT, "d")
    relation = CapturedRelation(narrow, RELATION, None)
    change = Change("U", None, (b"1", UNCHANGED, b"5"))
    found = relation.changes([change.frame()], [change.begin], locate, False)
    assert found is not None and found.rows.to_pylist() == [{"id": 1, "n": 5, "$row_kind": 2}]


WHOLE = insert(b"1", b"hello", None).frame()


@pytest.mark.parametrize("cut", range(26, len(WHOLE)))
def test_a_message_that_ends_early_is_an_error_wherever_it_stands(cut):
    if cut < 30:
        with pytest.raises(ProtocolError, match="ends early"):
            changed_relation(WHOLE[:cut])
    for frames in ([WHOLE[:cut]], [WHOLE[:cut], WHOLE], [WHOLE, WHOLE[:cut]], [WHOLE, WHOLE[:cut], WHOLE]):
        with pytest.raises(ProtocolError):
            LoggedRows(frames, 3)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"I" + OID + b"K" + row([b"1"]), "an insertion without a new row"),
        (b"D" + OID + b"N" + row([b"1"]), "a deletion without the row before"),
        (b"I" + OID + b"X" + row([b"1"]), "a row of an unknown kind"),
        (b"X" + OID + b"N" + row([b"1"]), "is no change of a row"),
        (b"U" + OID + b"O" + row([b"1"]) + b"K" + row([b"1"]), "an update without a new row"),
        (b"I" + OID + b"N" + row([b"1", b"2"]), "other than 1 columns"),
        (b"I" + OID + b"N\x00\x01b\x00\x00\x00\x00", "a value of an unknown kind"),
        (b"I" + OID + b"N\x00\x01t\xff\xff\xff\xff", "a value of a negative length"),
        (b"I" + OID + b"N" + row([b"1"]) + b"?", "does not end behind its last value"),
    ],
)
def test_what_is_no_change_of_a_row_is_an_error(data, says):
    with pytest.raises(ProtocolError, match=says):
        LoggedRows([insert(b"1").frame(), HEAD + data, insert(b"2").frame()], 1)


def test_the_relation_of_a_change_is_read_from_its_message():
    assert changed_relation(WHOLE) == 16384
    assert changed_relation(HEAD + b"B" + bytes(20)) is None
