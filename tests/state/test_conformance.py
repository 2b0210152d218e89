"""Every keyed state backend keeps the same laws; another backend is one line here."""

import tempfile
import uuid
from pathlib import Path

import pytest

from rayflink.state.memory import HashMapBackend
from rayflink.state.rocksdb import RocksDBBackend, StateMemory
from rayflink.testing.backend_laws.subject import MakeBackend
from rayflink.testing.conformance import BACKEND_LAWS, LONG_BACKEND_LAWS, check_backend
from tests.operators.write_back import WriteBackBackend


def _rocksdb(memory: int) -> MakeBackend:
    def make(key_groups: range, max_parallelism: int, operator_uid: str = "") -> RocksDBBackend:
        folder = Path(tempfile.gettempdir(), f"rayflink-{uuid.uuid4().hex}")
        return RocksDBBackend(key_groups, max_parallelism, operator_uid, folder, StateMemory(memory))

    return make


BACKENDS = [
    pytest.param(_rocksdb(64 << 20), id="rocksdb"),
    pytest.param(_rocksdb(20_000), id="rocksdb with hardly any memory"),
    pytest.param(HashMapBackend, id="hashmap"),
    pytest.param(WriteBackBackend, id="write back"),
]


@pytest.mark.parametrize("make", BACKENDS)
@pytest.mark.parametrize(
    "law",
    [
        pytest.param(law, id=law.__name__, marks=[pytest.mark.slow] if law in LONG_BACKEND_LAWS else [])
        for law in BACKEND_LAWS
    ],
)
def test_a_backend_keeps_the_law(make, law):
    check_backend(make, [law])
