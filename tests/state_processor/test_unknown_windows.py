"""State of windows whose classes are not there is read all the same: of a database as of key groups."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from rayflink.state.descriptors import ValueStateDescriptor
from rayflink.state.manifest import OperatorManifest
from rayflink.state.rocksdb import RocksDBBackend, StateMemory
from rayflink.state.snapshots import StoredSnapshot
from rayflink.state_processor.contents import StoredContents
from rayflink.testing.backend_laws.checkpoints import Checkpoints

MODULE = "windows_of_another_program"
PROGRAM = f"""
from typing import NamedTuple

__name__ = {MODULE!r}

class Between(NamedTuple):
    start: int
    end: int

class Shift:
    def __init__(self, crew):
        self.crew = crew
    def __eq__(self, other):
        return self.crew == other.crew
    def __hash__(self):
        return hash(self.crew)
"""


@pytest.mark.parametrize("is_open", [True, False], ids=["a database", "key groups"])
@pytest.mark.parametrize("made", ["Between(1, 2)", "Shift('a')"])
def test_it_is_stood_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_open: bool, made: str) -> None:
    program = ModuleType(MODULE)
    exec(PROGRAM, program.__dict__)
    window = eval(made, program.__dict__)
    state, checkpoints = RocksDBBackend(range(8), 8, "uid", tmp_path / "a", StateMemory(1 << 20)), Checkpoints()
    assert not is_open or state.store.database is not None
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, MODULE, program)
        state.table(ValueStateDescriptor("v")).put("k", 5, window)
        state.timers("t").register(7, "k", window)
        parts = checkpoints.write(1, state.capture(1))
    state.close()
    assert bool(parts.databases) is is_open
    snapshot = StoredSnapshot(parts.groups, databases=parts.databases)
    manifest = OperatorManifest("0" * 32, "op", "op", 1, 8, (snapshot,))
    ((_, content),) = StoredContents(manifest, checkpoints.reader).groups()
    ((_, of_value, key, value),), ((_, of_timer, _, at),) = content["tables"]["v"][1], content["timers"]["t"]
    assert (key, value, at) == ("k", 5, 7) and type(of_value).class_of == f"{MODULE}:{made.partition('(')[0]}"  # type: ignore[attr-defined]
    assert of_value == of_timer and hash(of_value) == hash(of_timer)
