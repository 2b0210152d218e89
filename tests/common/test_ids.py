"""Ids are 32 hex digits, typed, reproducible from a seed."""

import os
import pickle
import random

import pytest

from rayflink.common.ids import ExecutionAttemptID, HexId, JobID, JobVertexID, OperatorID


@pytest.mark.parametrize("kind", [JobID, JobVertexID, OperatorID, ExecutionAttemptID])
def test_an_id_is_made_of_a_random_source_and_survives_pickling(kind):
    made = kind.new(random.Random(7).randbytes)
    assert made == kind.new(random.Random(7).randbytes) != kind.new(os.urandom)
    twin = pickle.loads(pickle.dumps(made))
    assert twin == made and type(twin) is kind and isinstance(made, HexId)
    assert f"{made}" == str(made) and repr(made) == f"{kind.__name__}('{made}')"


@pytest.mark.parametrize("text", ["", "ab", "A" * 32, "g" * 32, "0" * 33])
def test_anything_but_32_hex_digits_is_refused(text):
    with pytest.raises(ValueError, match="32 lower-case hex digits"):
        JobID(text)


def test_a_digest_of_16_bytes_is_an_id():
    assert OperatorID.from_bytes(bytes(range(16))) == "000102030405060708090a0b0c0d0e0f"
    with pytest.raises(ValueError):
        OperatorID.from_bytes(b"short")
