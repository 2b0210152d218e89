"""Every keyed state backend obeys the same laws; another backend is one line here."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rayflink.state.memory import HashMapBackend
from rayflink.state.rocksdb.rocksdb_backend import RocksDBBackend, StateMemory
from rayflink.state.snapshots import KeyedCapture
from rayflink.testing import BACKEND_LAWS, LONG_BACKEND_LAWS, check_backend
from rayflink.testing.backend_laws.subject import MakeBackend
from rayflink.testing.backend_laws.timers import many_timers_fire_in_order
from tests.operators.write_back import WriteBackBackend
from tests.state.rocksdb.late_links import late


def _rocksdb(memory: int, lent: Callable[[StateMemory], StateMemory] = lambda memory: memory) -> MakeBackend:
    def make(key_groups: range, max_parallelism: int, operator_uid: str = "") -> RocksDBBackend:
        folder = Path(tempfile.gettempdir(), f"rayflink-{uuid.uuid4().hex}")
        return RocksDBBackend(key_groups, max_parallelism, operator_uid, folder, lent(StateMemory(memory)))

    return make


class _AlwaysFiles(RocksDBBackend):
    """A backend with a database from its first capture on, whatever its size; its files are made late."""

    def __init__(self, key_groups: range, max_parallelism: int, operator_uid: str) -> None:
        folder = Path(tempfile.gettempdir(), f"rayflink-{uuid.uuid4().hex}")
        super().__init__(key_groups, max_parallelism, operator_uid, folder, late(StateMemory(64 << 20)))

    def capture(self, checkpoint_id: int) -> KeyedCapture:
        assert self.store.database is not None
        return super().capture(checkpoint_id)


BACKENDS = pytest.mark.parametrize(
    "make",
    [
        pytest.param(_rocksdb(64 << 20), id="rocksdb"),
        pytest.param(_rocksdb(20_000), id="rocksdb with hardly any memory", marks=pytest.mark.slow),
        pytest.param(_rocksdb(20_000, late), id="rocksdb whose writes wait", marks=pytest.mark.slow),
        pytest.param(_AlwaysFiles, id="rocksdb whose writes wait in a large cache", marks=pytest.mark.slow),
        pytest.param(HashMapBackend, id="hashmap"),
        pytest.param(WriteBackBackend, id="write back"),
    ],
)


def laws_of(name: str) -> Any:
    """Parametrize a test with the laws of a module of `rayflink.testing.backend_laws`; long histories, and millions of
    timers, run in slices.
    """
    laws = [law for law in BACKEND_LAWS if law.__module__.endswith(f".{name}")]
    long = [pytest.mark.slow, *([pytest.mark.soak] if name in ("histories", "timers") else [])]
    return pytest.mark.parametrize(
        "law", [pytest.param(law, id=law.__name__, marks=long if law in LONG_BACKEND_LAWS else []) for law in laws]
    )


@pytest.mark.spec("G16", "heap", "G17", "memory")
@BACKENDS
@laws_of("tables")
def test_tables_keep_the_law(make: Any, law: Any) -> None:
    check_backend(make, [law])


@pytest.mark.spec("G06", "scoped", "G07", "G34", "G15", "local")
@BACKENDS
@laws_of("handles")
def test_handles_keep_the_law(make: Any, law: Any) -> None:
    check_backend(make, [law])


@pytest.mark.spec("G24")
@BACKENDS
@laws_of("snapshots")
def test_snapshots_keep_the_law(make: Any, law: Any) -> None:
    check_backend(make, [law])


@pytest.mark.spec("H16", "copy", "backends")
@BACKENDS
@laws_of("captures")
def test_captures_keep_the_law(make: Any, law: Any) -> None:
    check_backend(make, [law])


@pytest.mark.slow
@pytest.mark.spec("G15", "remote", "G18", "restored")
@BACKENDS
@laws_of("checkpoints")
def test_checkpoints_keep_the_law(make: Any, law: Any) -> None:
    check_backend(make, [law])


@BACKENDS
@laws_of("timers")
def test_timers_keep_the_law(make: Any, law: Any) -> None:
    check_backend(make, [law])


@pytest.mark.slow
def test_many_timers_fire_in_order_with_hardly_any_memory() -> None:
    check_backend(_rocksdb(20_000), [many_timers_fire_in_order])


@pytest.mark.spec("G10", "G11", "read", "G12", "left-out", "unchanged", "G13", "access")
@BACKENDS
@laws_of("expiry")
def test_state_with_a_time_to_live_keeps_the_law(make: Any, law: Any) -> None:
    check_backend(make, [law])


@BACKENDS
@laws_of("histories")
def test_histories_keep_the_law(make: Any, law: Any) -> None:
    check_backend(make, [law])


def test_all_laws_are_tried() -> None:
    tried = ("tables", "handles", "snapshots", "captures", "checkpoints", "timers", "expiry", "histories")
    assert {law.__module__.rpartition(".")[2] for law in BACKEND_LAWS} == set(tried)
