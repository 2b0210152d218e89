"""Raw state: the user's bytes by partition or by key group, and errors that name the remedy."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.state.operator_state import ReadOnlyError
from rayflink.state.raw_state import (
    RawKeyedStateOutput,
    RawOperatorStateOutput,
    RawStateError,
    raw_inputs,
    raw_keyed_inputs,
)


@given(st.lists(st.lists(st.binary()), min_size=1))
def test_partitions_come_back_byte_for_byte(parts: list[list[bytes]]) -> None:
    out = RawOperatorStateOutput()
    for part in parts:
        out.start_new_partition()
        for data in part:
            out.write(data)
    assert [stream.read() for stream in raw_inputs(out.partitions())] == [b"".join(part) for part in parts]


@given(st.dictionaries(st.integers(3, 9), st.binary()))
def test_key_groups_come_back_byte_for_byte_to_who_owns_them(written: dict[int, bytes]) -> None:
    out = RawKeyedStateOutput(range(3, 10))
    for group, data in written.items():
        out.start_new_key_group(group)
        out.write(data[:1])
        out.write(memoryview(data[1:]))
    taken = {group: stream.read() for group, stream in raw_keyed_inputs([out.key_groups()], range(0, 6))}
    assert taken == {group: data for group, data in written.items() if group < 6}
    assert list(taken) == sorted(taken)


def test_what_was_written_is_a_copy() -> None:
    data = bytearray(b"ab")
    out = RawOperatorStateOutput()
    out.write(data)
    data[0] = 0
    assert out.partitions() == (b"ab",)
    assert RawOperatorStateOutput().partitions() == ()


def test_refusals_name_the_remedy() -> None:
    keyed: Any = RawKeyedStateOutput(range(3, 10))
    with pytest.raises(RawStateError, match=r"outside a key group; call start_new_key_group"):
        keyed.write(b"x")
    with pytest.raises(
        RawStateError, match=r"key group 10 was begun, this subtask owns 3 to 9; write those of get_key"
    ):
        keyed.start_new_key_group(10)
    keyed.start_new_key_group(4)
    with pytest.raises(RawStateError, match="begun twice"):
        keyed.start_new_key_group(4)
    with pytest.raises(RawStateError, match=r"given str 'text'; write bytes"):
        keyed.write("text")
    assert list(keyed.get_key_group_list()) == list(range(3, 10))


def test_errors_of_operator_state_travel() -> None:
    for error in (RawStateError("a problem", "a remedy"), ReadOnlyError("rules", "put")):
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
