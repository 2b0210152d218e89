"""Savepoints from before modules moved still name their classes by the old modules."""

from __future__ import annotations

import pickle
from importlib import import_module

import pytest

from rayflink.operators.windows.window import TimeWindow
from rayflink.state.classes.class_names import resolve_class
from rayflink.state.classes.moved_modules import MOVED_MODULES, current_class
from rayflink.state.classes.pickling import PICKLE_VERSION, pickled, unpickled
from rayflink.state.classes.plain_classes import admits, only_plain_classes
from rayflink.state.classes.unknown_objects import UnknownObject, loads_leniently


def by_old_name(data: bytes, old: str) -> bytes:
    """Return a pickle as it was written when a module had its old name."""
    new = MOVED_MODULES[old]
    found = b"\x8c" + bytes((len(new),)) + new.encode()
    assert found in data
    # The frame's length counts the bytes that follow it.
    opened = data.replace(found, b"\x8c" + bytes((len(old),)) + old.encode())
    start = opened.index(b"\x95") + 1
    length = int.from_bytes(opened[start : start + 8], "little") - len(new) + len(old)
    return opened[:start] + length.to_bytes(8, "little") + opened[start + 8 :]


@pytest.mark.parametrize("old", MOVED_MODULES)
def test_a_moved_module_is_where_the_table_says(old):
    assert import_module(MOVED_MODULES[old]).__name__ == MOVED_MODULES[old]


def test_a_pickle_by_an_old_name_is_read():
    data = by_old_name(pickled(TimeWindow(1, 5)), "rayflink.operators.window")
    assert b"rayflink.operators.windows.window" not in data and data[0] == PICKLE_VERSION
    assert unpickled(data) == TimeWindow(1, 5)
    with pytest.raises(ModuleNotFoundError):
        pickle.loads(data[1:])


def test_a_lenient_reader_finds_it_too():
    data = by_old_name(pickled(TimeWindow(1, 5)), "rayflink.operators.window")
    with only_plain_classes():
        found = loads_leniently(data[1:])
    assert found == TimeWindow(1, 5) and not isinstance(found, UnknownObject)


def test_a_class_by_its_old_name_is_found_and_plain():
    name = "rayflink.operators.window:TimeWindow"
    assert resolve_class(name) is TimeWindow and current_class(name) == "rayflink.operators.windows.window:TimeWindow"
    with only_plain_classes() as refused:
        assert admits(name) and not admits("rayflink.operators.window:Trigger")
    assert refused == {"rayflink.operators.window:Trigger"}
