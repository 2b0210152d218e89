"""State whose keys and windows are of missing classes is read from databases and key groups alike."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rayflink.state.classes.class_names import resolve_class
from rayflink.state.classes.plain_classes import only_plain_classes
from rayflink.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rayflink.state.errors import UnresolvedClassError
from rayflink.state.group_content import Content
from rayflink.state.rocksdb.rocksdb_backend import RocksDBBackend, StateMemory
from rayflink.state.snapshots import KeyedParts, StoredSnapshot
from rayflink.state.storage.manifest import OperatorManifest
from rayflink.state_processor.contents import StoredContents
from rayflink.testing.backend_laws.checkpoints import Checkpoints, restore_into

MODULE = "windows_of_another_program"
PROGRAM = f"""
from dataclasses import dataclass
from enum import Enum
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

class Colour(Enum):
    RED = 1
    BLUE = 2

@dataclass(frozen=True)
class User:
    name: str
    colour: Colour
"""
VALUES, LISTS, MAPS = ValueStateDescriptor("v"), ListStateDescriptor("l"), MapStateDescriptor("m")


class Stored:
    """The output of a backend for a program that is gone."""

    def __init__(self, folder: Path, is_open: bool) -> None:
        self.program = ModuleType(MODULE)
        sys.modules[MODULE] = self.program
        exec(PROGRAM, self.program.__dict__)
        self.state = RocksDBBackend(range(8), 8, "uid", folder, StateMemory(1 << 20))
        self.is_open = is_open and self.state.store.database is not None
        if is_open:
            self.state.timers("t").on_restored(0)  # all are far

    def made(self, text: str) -> Any:
        return eval(text, self.program.__dict__)

    def written(self) -> tuple[Checkpoints, KeyedParts]:
        checkpoints = Checkpoints()
        parts = checkpoints.write(1, self.state.capture(1))
        self.close()
        assert bool(parts.databases) is self.is_open
        return checkpoints, parts

    def content(self) -> Iterator[Content]:
        checkpoints, parts = self.written()
        snapshot = StoredSnapshot(parts.groups, databases=parts.databases)
        manifest = OperatorManifest("0" * 32, "op", "op", 1, 8, (snapshot,))
        return (content for _, content in StoredContents(manifest, checkpoints.reader).groups())

    def close(self) -> None:
        self.state.close()
        resolve_class.cache_clear()
        sys.modules.pop(MODULE, None)


@pytest.fixture(params=[True, False], ids=["a database", "key groups"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stored]:
    stored = Stored(tmp_path / "a", request.param)
    yield stored
    stored.close()


@pytest.mark.parametrize("made", ["Between(1, 2)", "Shift('a')"])
def test_windows_are_stood_for(stored: Stored, made: str) -> None:
    window = stored.made(made)
    stored.state.table(VALUES).put("k", 5, window)
    stored.state.timers("t").register(7, "k", window)
    (content,) = stored.content()
    ((_, of_value, key, value),), ((_, of_timer, _, at),) = content["tables"]["v"][1], content["timers"]["t"]
    assert (key, value, at) == ("k", 5, 7) and of_value.class_of == f"{MODULE}:{made.partition('(')[0]}"
    assert of_value == of_timer and hash(of_value) == hash(of_timer)


def test_a_job_without_the_class_of_its_windows_says_which_is_missing(stored: Stored, tmp_path: Path) -> None:
    stored.state.table(VALUES).put("k", 5, stored.made("Between(1, 2)"))
    checkpoints, parts = stored.written()
    again = RocksDBBackend(range(8), 8, "uid", tmp_path / "again", StateMemory(1 << 20))
    with pytest.raises(UnresolvedClassError, match=MODULE):
        restore_into(again, checkpoints, [parts])
    again.close()


def test_keys_are_stood_for_and_each_has_its_own(stored: Stored) -> None:
    texts = [
        "Colour.RED",
        "Colour.BLUE",
        "User('a', Colour.RED)",
        "User('b', Colour.RED)",
        "(1, Colour.RED)",
        "'plain'",
    ]
    state, keys = stored.state, list(map(stored.made, texts))
    for number, key in enumerate(keys):
        state.table(VALUES).put(key, number)
        state.table(LISTS).append(key, number)
        state.map_table(MAPS).put(key, keys[0], number)
        state.map_table(MAPS).put(key, "x", number)
        state.timers("t").register(number, key)
    found: dict[str, list[tuple[Any, Any]]] = {"v": [], "l": [], "m": [], "t": []}
    for content in stored.content():
        for name, (_, rows) in content["tables"].items():
            found[name] += [(key, value) for _, _, key, value in rows]
        found["t"] += [(key, at) for _, _, key, at in content["timers"].get("t", ())]
    by_number = [key for key, _ in sorted(found["v"], key=lambda row: row[1])]
    assert len(set(map(repr, by_number))) == 6 and by_number[5] == "plain"
    assert {type(key).__name__ for key in by_number} == {"Colour", "User", "tuple", "str"}
    assert sorted(found["l"], key=lambda row: row[1]) == [(key, [number]) for number, key in enumerate(by_number)]
    assert sorted(found["t"], key=lambda row: row[1]) == [(key, number) for number, key in enumerate(by_number)]
    wanted = [(key, {by_number[0]: number, "x": number}) for number, key in enumerate(by_number)]
    assert sorted(found["m"], key=lambda row: row[1]["x"]) == wanted


def test_classes_that_are_there_are_stood_for_where_only_plain_ones_are_wanted(stored: Stored) -> None:
    keys, window = [*map(stored.made, ["Colour.RED", "User('a', Colour.RED)"])], stored.made("Between(1, 2)")
    for number, key in enumerate(keys):
        stored.state.table(VALUES).put(key, number, window)
        stored.state.map_table(MAPS).put("k", key, number)
        stored.state.timers("t").register(number, key, window)
    contents = stored.content()
    sys.modules[MODULE] = stored.program
    with only_plain_classes() as refused:
        found = list(contents)
    assert refused == {f"{MODULE}:{name}" for name in ("Colour", "User", "Between")}
    values = sorted(
        (row for content in found for row in content["tables"].get("v", ("", ()))[1]), key=lambda row: row[3]
    )
    assert [row[2].class_of for row in values] == [f"{MODULE}:Colour", f"{MODULE}:User"]
    assert {row[1].class_of for row in values} == {f"{MODULE}:Between"}
    (maps,) = [row[3] for content in found for row in content["tables"].get("m", ("", ()))[1]]
    assert {type(name) for name in maps} == {type(row[2]) for row in values}
    timers = [row for content in found for row in content["timers"].get("t", ())]
    assert {type(row[2]) for row in timers} == {type(row[2]) for row in values}
