"""Serializers: values to bytes and back, and the verdicts when versions and types differ."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.state.errors import (
    MalformedBytesError,
    SerializationError,
    SnapshotMismatch,
    UnresolvedClassError,
    VersionMismatch,
)
from rayflink.state.schema.serializers import (
    BoolSerializer,
    BytesSerializer,
    DoubleSerializer,
    KeySerializer,
    ListSerializer,
    LongSerializer,
    NullableSerializer,
    PickleSerializer,
    Serializer,
    StringSerializer,
    TupleSerializer,
    Verdict,
    check_restore,
    read_int,
    read_string,
    read_versioned,
    serializer_of,
    set_main_module,
    write_int,
    write_string,
    write_versioned,
)

from ..keys.key_samples import Colour, User

GOLDEN = [
    (None, "00"),
    ("", "01"),
    ("a", "02 61"),
    ("flink", "06 66 6c 69 6e 6b"),
    ("\u0080", "02 80 01"),
    ("\u00e9", "02 e9 01"),
    ("\u4e2d", "02 ad 9c 01"),
    ("\U0001f600", "03 bd b0 03 80 bc 03"),
]


@pytest.mark.spec("B11", "B12", "B13", "X01")
@pytest.mark.parametrize(("value", "written"), GOLDEN)
def test_strings_are_written_and_read_in_flinks_format(value: str | None, written: str) -> None:
    assert StringSerializer().to_bytes(value).hex(" ") == written
    assert StringSerializer().from_bytes(bytes.fromhex(written)) == value


@pytest.mark.spec("X01", "B12")
def test_the_length_of_127_takes_two_bytes() -> None:
    short, long = StringSerializer().to_bytes("a" * 126), StringSerializer().to_bytes("a" * 127)
    assert (len(short), short[:1].hex()) == (127, "7f")
    assert (len(long), long[:2].hex()) == (129, "8001")


@pytest.mark.spec("X02", "B13")
def test_none_and_the_empty_string_stay_apart() -> None:
    out = bytearray()
    for value in (None, "", None):
        write_string(out, value)
    first, at = read_string(bytes(out), 0)
    second, at = read_string(bytes(out), at)
    assert (first, second, read_string(bytes(out), at)) == (None, "", (None, 3))


class Endless(str):
    """An object that claims a length no real test could afford."""

    def isascii(self) -> bool:
        return True

    def __len__(self) -> int:
        return 2**31 - 1


@pytest.mark.spec("B12")
def test_a_string_whose_length_overflows_is_refused() -> None:
    with pytest.raises(SerializationError, match="too long"):
        write_string(bytearray(), Endless())


@pytest.mark.spec("X03", "M03")
def test_integers_are_written_in_either_byte_order() -> None:
    assert write_int(0x12345678, 4, "big").hex(" ") == "12 34 56 78"
    assert write_int(0x12345678, 4, "little").hex(" ") == "78 56 34 12"
    assert read_int(bytes.fromhex("78563412"), 0, 4, "little") == (0x12345678, 4)
    assert read_int(b"\xff\xff\xff\xfe", 0, 4) == (-2, 4)
    with pytest.raises(SerializationError, match="wider"):
        write_int(2**31, 4)


longs = st.integers(-(2**63), 2**63 - 1)
CASES: list[tuple[Serializer, st.SearchStrategy[Any]]] = [
    (StringSerializer(), st.none() | st.text()),
    (LongSerializer(), longs),
    (DoubleSerializer(), st.floats(allow_nan=False)),
    (BoolSerializer(), st.booleans()),
    (BytesSerializer(), st.binary()),
    (KeySerializer(), st.tuples(st.text(), st.integers())),
    (TupleSerializer(StringSerializer(), LongSerializer()), st.tuples(st.text(), longs)),
    (TupleSerializer(), st.just(())),
    (ListSerializer(NullableSerializer(BytesSerializer())), st.lists(st.none() | st.binary())),
    (PickleSerializer(), st.dictionaries(st.text(), st.integers() | st.just(User("a", Colour.RED)))),
]


@pytest.mark.spec("B15", "made", "B19")
@pytest.mark.parametrize(("serializer", "values"), CASES, ids=lambda x: repr(x)[:40])
def test_every_serializer_gives_back_what_it_wrote(serializer: Serializer, values: st.SearchStrategy[Any]) -> None:
    assert isinstance(serializer, Serializer)

    @given(values)
    def law(value: Any) -> None:
        back = serializer.from_bytes(serializer.to_bytes(value))
        assert back == value and type(back) is type(value)
        assert read_versioned(serializer, write_versioned(serializer, value), "s", "uid") == value

    law()


@pytest.mark.parametrize(("serializer", "values"), CASES, ids=lambda x: repr(x)[:40])
def test_a_serializer_is_made_anew_from_its_snapshot(serializer: Serializer, values: object) -> None:
    snapshot = json.loads(json.dumps(serializer.snapshot()))
    assert serializer_of(snapshot) == serializer
    assert serializer.compatibility(snapshot).verdict is Verdict.COMPATIBLE
    assert check_restore(serializer, snapshot, "s", "uid") is serializer


@pytest.mark.parametrize(
    ("serializer", "value"),
    [
        (StringSerializer(), 1),
        (LongSerializer(), "1"),
        (LongSerializer(), 2**63),
        (BoolSerializer(), 1),
        (BytesSerializer(), bytearray(b"")),
        (TupleSerializer(LongSerializer()), (1, 2)),
        (ListSerializer(LongSerializer()), (1,)),
        (PickleSerializer(), lambda: 1),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(serializer: Serializer, value: object) -> None:
    with pytest.raises(SerializationError, match="cannot serialize"):
        serializer.to_bytes(value)


@pytest.mark.parametrize(
    ("serializer", "data"),
    [
        (StringSerializer(), b""),
        (StringSerializer(), b"\x03a"),
        (StringSerializer(), b"\x02ab"),
        (LongSerializer(), b"1234567"),
        (DoubleSerializer(), b""),
        (BoolSerializer(), b"\x02"),
        (NullableSerializer(LongSerializer()), b"\x02"),
        (ListSerializer(LongSerializer()), b"\x01\x08123"),
        (TupleSerializer(LongSerializer()), b"\x08123456789"),
        (PickleSerializer(), b"\x01junk"),
        (PickleSerializer(), b""),
    ],
)
def test_damaged_bytes_are_an_error(serializer: Serializer, data: bytes) -> None:
    with pytest.raises(MalformedBytesError, match="restore from an older checkpoint"):
        serializer.from_bytes(data)


@pytest.mark.parametrize(
    ("declared", "written", "verdict"),
    [
        (LongSerializer(), StringSerializer(), Verdict.INCOMPATIBLE),
        (NullableSerializer(LongSerializer()), LongSerializer(), Verdict.MIGRATE),
        (LongSerializer(), NullableSerializer(LongSerializer()), Verdict.INCOMPATIBLE),
        (PickleSerializer(), LongSerializer(), Verdict.MIGRATE),
        (ListSerializer(PickleSerializer()), ListSerializer(LongSerializer()), Verdict.MIGRATE),
        (ListSerializer(LongSerializer()), ListSerializer(StringSerializer()), Verdict.INCOMPATIBLE),
        (TupleSerializer(LongSerializer()), TupleSerializer(), Verdict.INCOMPATIBLE),
    ],
    ids=repr,
)
def test_compatibility_is_judged_part_by_part(declared: Serializer, written: Serializer, verdict: Verdict) -> None:
    judged = declared.compatibility(written.snapshot())
    assert judged.verdict is verdict
    assert judged.reason
    if verdict is Verdict.MIGRATE:
        assert check_restore(declared, written.snapshot(), "s", "uid") == written
    else:
        with pytest.raises(SnapshotMismatch, match="'counts' of operator 'op-1'.*rename the state"):
            check_restore(declared, written.snapshot(), "counts", "op-1")


def test_bytes_of_another_version_name_state_operator_and_remedy() -> None:
    for serializer, data in ((LongSerializer(), b"\x09"), (PickleSerializer(), b"\x01\x07")):
        with pytest.raises(VersionMismatch, match="'counts' of operator 'op-1'.*savepoint"):
            read_versioned(serializer, data, "counts", "op-1")
    newer = {"serializer": "long", "version": 2, "of": []}
    assert LongSerializer().compatibility(newer).verdict is Verdict.INCOMPATIBLE
    with pytest.raises(VersionMismatch, match="long v2"):
        serializer_of(newer)


SCRIPT = """
import pickle, sys
from dataclasses import dataclass
from enum import Enum
@dataclass(frozen=True)
class Rider:
    name: str
class Zone(Enum):
    NORTH = 1
def twice(x): return 2 * x
if __name__ == "__main__":
    from rayflink.state.keys import encode_key, key_hash
    from rayflink.state.schema.serializers import PickleSerializer
    print(PickleSerializer().to_bytes((Rider("a"), Zone.NORTH, twice, Rider)).hex())
    print(encode_key(Rider("a")).hex(), key_hash(Zone.NORTH))
"""


def test_classes_of_the_jobs_script_are_read_and_written_in_a_worker(repository: Path, tmp_path: Path) -> None:
    from rayflink.state.keys import decode_key, encode_key, key_hash

    (tmp_path / "job.py").write_text(SCRIPT)
    driver = subprocess.run(
        [sys.executable, str(tmp_path / "job.py")], env={"PYTHONPATH": str(repository)}, capture_output=True, text=True
    )
    pickled, key, hashed = driver.stdout.split()
    module = types.ModuleType("loaded_job")
    sys.modules["loaded_job"] = module
    exec(compile(SCRIPT, "job.py", "exec"), module.__dict__)
    set_main_module(module)
    try:
        rider, zone, twice, cls = PickleSerializer().from_bytes(bytes.fromhex(pickled))
        assert (rider, zone, twice(2), cls) == (module.Rider("a"), module.Zone.NORTH, 4, module.Rider)
        assert decode_key(bytes.fromhex(key)) == rider
        assert (encode_key(rider).hex(), key_hash(zone)) == (key, int(hashed))
        again = PickleSerializer().to_bytes((rider, twice))
        assert b"loaded_job" not in again
        assert PickleSerializer().from_bytes(again) == (rider, twice)
        absent = PickleSerializer().to_bytes(module.Rider("b"))
        del module.Rider
        with pytest.raises(UnresolvedClassError, match="top level"):
            PickleSerializer().from_bytes(absent)
    finally:
        set_main_module(None)
        del sys.modules["loaded_job"]
