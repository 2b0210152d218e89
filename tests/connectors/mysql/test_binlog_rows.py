"""Rows of events are found by columns, whatever their values are, and in the order of the log."""

from __future__ import annotations

import random
import struct

import numpy
import pyarrow
import pytest

from rayflink.connectors.cdc.logged_changes import LoggedChanges
from rayflink.connectors.mysql.binlog_rows import DELETE, INSERT, UPDATE, BinlogRows, RowsFrame, ValueLayout
from rayflink.connectors.mysql.binlog_values import LoggedColumn, is_of_kind, layout_of
from rayflink.connectors.mysql.logged_table import chunks_of_numbers
from rayflink.connectors.mysql.mysql_session import MySqlError
from rayflink.connectors.mysql.mysql_values import MySqlColumn, arrow_type_of

LAYOUTS = [ValueLayout(4), ValueLayout(2, has_length=True)]


def image(number: int | None, text: bytes | None) -> bytes:
    nulls = (number is None) | (text is None) << 1
    return bytes([nulls]) + (b"" if number is None else struct.pack("<i", number)) + (
        b"" if text is None else struct.pack("<H", len(text)) + text)  # fmt: skip


class Logged:
    """A column as python-mysql-replication describes it."""

    enum_values = set_values = None

    def __init__(self, code: int, **attributes: object) -> None:
        self.type = code
        vars(self).update(attributes)


def column(kind: str, shown: str = "", precision: int = 0, scale: int = 0, target: pyarrow.DataType = None,
           members: tuple[str, ...] = ()) -> MySqlColumn:  # fmt: skip
    own = target or arrow_type_of(kind, shown or kind, precision, scale, 0)
    return MySqlColumn("c", kind, shown or kind, precision, scale, 0, "utf-8", "utf8mb4", "", members, own)


def decoded(kind: MySqlColumn, logged: Logged, *values: bytes | None) -> list[object]:
    layout = layout_of(logged)
    assert layout is not None and is_of_kind(logged.type, kind.kind)
    data = b"".join(b"\1" if value is None else b"\0" + value for value in values)
    rows = BinlogRows([RowsFrame(INSERT, data, 1, 0)], [layout])
    return LoggedColumn(kind, logged, 0).values(rows, numpy.arange(len(values))).to_pylist()


def test_rows_of_many_events_are_in_the_order_of_the_log():
    rng = random.Random(3)
    frames, expected = [], []
    for transaction in range(60):
        kind = rng.choice([INSERT, UPDATE, DELETE])
        data = b""
        for _ in range(rng.randint(1, 9)):
            images = [(rng.choice([None, rng.randrange(-(2**31), 2**31)]), rng.choice([None, b"", b"x" * 300]))
                      for _ in range(2 if kind == UPDATE else 1)]  # fmt: skip
            data += b"".join(image(*values) for values in images)
            expected.append((kind, transaction, images))
        frames.append(RowsFrame(kind, data, transaction, 0))
    rows = BinlogRows(frames, LAYOUTS)
    numbers = LoggedColumn(column("int"), Logged(3), 0)
    texts = LoggedColumn(column("varchar"), Logged(15, max_length=600), 1)
    every = numpy.arange(len(rows))
    found = list(zip(numbers.values(rows, every).to_pylist(), texts.values(rows, every).to_pylist(), strict=True))
    for change, (kind, transaction, images) in enumerate(expected):
        before, after = int(rows.old[change]), int(rows.new[change])
        there = [found[row] for row in (before, after) if row >= 0]
        assert there == [(number, None if text is None else text.decode()) for number, text in images]
        assert (rows.kinds[change], rows.frame_of[change]) == (kind, transaction)
        assert (before < 0, after < 0) == (kind == INSERT, kind == DELETE)


def test_an_event_of_another_form_is_refused():
    with pytest.raises(MySqlError, match="rows of another form than the table"):
        BinlogRows([RowsFrame(INSERT, image(1, b"abc")[:-1], 1, 0)], LAYOUTS)
    assert len(BinlogRows([], LAYOUTS)) == 0


def test_numbers():
    assert decoded(column("bigint"), Logged(8), struct.pack("<q", -5), None) == [-5, None]
    assert decoded(column("mediumint"), Logged(9), b"\xfe\xff\xff") == [-2]
    assert decoded(column("mediumint", "mediumint unsigned"), Logged(9), b"\xfe\xff\xff") == [16777214]
    assert [str(n) for n in decoded(column("bigint", "bigint unsigned"), Logged(8), b"\xff" * 8)] == [str(2**64 - 1)]
    assert decoded(column("year"), Logged(13), b"\x00", b"\x7c") == [0, 2024]
    as_bool = column("tinyint", "tinyint(1)", target=pyarrow.bool_())
    assert decoded(as_bool, Logged(1), b"\x00", b"\x02", None) == [False, True, None]


@pytest.mark.parametrize(("precision", "scale"), [(10, 4), (40, 10), (5, 5)])
def test_decimals(precision, scale):
    logged, kind = Logged(246, precision=precision, decimals=scale), column("decimal", "", precision, scale)
    layout = layout_of(logged)
    assert layout is not None
    one = numpy.zeros(layout.size, numpy.uint8)
    one[0] ^= 0x80
    assert [float(value) for value in decoded(kind, logged, one.tobytes(), (~one).tobytes())] == [0.0, 0.0]
    if (precision, scale) == (10, 4):  # 1234567890.1234 of decimal(14,4) is in the manual of the server
        wide = column("decimal", "", 14, 4)
        assert [str(value) for value in decoded(wide, Logged(246, precision=14, decimals=4),
                bytes.fromhex("810DFB38D204D2"), bytes.fromhex("7EF204C72DFB2D"), None)] == [
                "1234567890.1234", "-1234567890.1234", "None"]  # fmt: skip
        shown = column("decimal", "", 14, 4, pyarrow.string())
        assert decoded(shown, Logged(246, precision=14, decimals=4), bytes.fromhex("7EF204C72DFB2D")) == [
            "-1234567890.1234"]  # fmt: skip


def test_dates_and_times():
    zero = column("date", target=pyarrow.string())
    assert decoded(zero, Logged(10), b"\0\0\0", struct.pack("<I", 2024 << 9 | 2 << 5 | 29)[:3]) == [
        "0000-00-00", "2024-02-29"]  # fmt: skip
    assert decoded(column("date"), Logged(10), b"\0\0\0") == [None]
    shown = column("time", "time(2)", scale=2, target=pyarrow.string())
    minus = ((0x800000 << 8) - ((1 << 12 | 2 << 6 | 3) << 8 | 50)).to_bytes(4, "big")  # -01:02:03.50
    assert decoded(shown, Logged(19, fsp=2), minus) == ["-01:02:03.50"]
    with pytest.raises(MySqlError, match="a time before 00:00:00"):
        decoded(column("time", "time(2)", scale=2), Logged(19, fsp=2), minus)


def test_members():
    kind = column("enum", "enum('a','b')", members=("a", "b"))
    assert decoded(kind, Logged(247, size=1), b"\1", b"\2", b"\0", None) == ["a", "b", "", None]
    with pytest.raises(MySqlError, match="was added later"):
        decoded(kind, Logged(247, size=1), b"\3")
    assert decoded(column("set", members=("a", "b")), Logged(248, size=1), b"\3", b"\0") == ["a,b", ""]


def test_json_of_mysql_is_as_the_server_shows_it():
    document = bytes.fromhex("0001000c000b000100050700" + "61") # {"a": 7}
    packed = struct.pack("<I", len(document)) + document
    assert decoded(column("json"), Logged(245, length_size=4), packed, None) == ['{"a": 7}', None]


def test_chunks_of_keys():
    numbers = pyarrow.array([1, 10, 99])
    assert chunks_of_numbers(column("int"), numbers, ["10", "50"]) == [0, 1, 2]
    dates = pyarrow.array(["2024-01-01", "2024-06-01"]).cast(pyarrow.date32())
    assert chunks_of_numbers(column("date"), dates, ["2024-06-01"]) == [0, 1]
    moments = pyarrow.array(["2024-01-01 00:00:00"]).cast(pyarrow.timestamp("us")).cast(pyarrow.timestamp("us", "UTC"))
    assert chunks_of_numbers(column("timestamp"), moments, ["2024-01-01 00:00:00"]) == [1]
    decimals = pyarrow.array(["1.5", "2.5"]).cast(pyarrow.decimal128(10, 1))
    assert chunks_of_numbers(column("decimal", "", 10, 1), decimals, ["2.0"]) == [0, 1]


def test_an_update_of_the_key_is_a_deletion_and_an_insertion():
    frame = RowsFrame(UPDATE, image(1, b"a") + image(1, b"b") + image(2, b"a") + image(3, b"a"), 5, 7)
    rows = BinlogRows([frame], LAYOUTS)
    origins = numpy.array([5, 5])
    changes = LoggedChanges(rows, rows.kinds, rows.old, numpy.zeros(2, bool), rows.new, origins, origins, origins)
    key = LoggedColumn(column("int"), Logged(3), 0)
    for upserts, kinds in ((False, [1, 2, 3, 0]), (True, [2, 3, 0])):
        emitted = changes.emitted(upserts, lambda chosen: [key.values(rows, chosen)])
        assert emitted.kinds.tolist() == kinds and emitted.commits.tolist() == [5] * len(kinds)
