"""An import of a connector of PyFlink that is absent says what to use instead."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

from rayflink.datastream.connectors import absent_connectors


@pytest.mark.parametrize("module", sorted(absent_connectors.INSTEAD))
def test_each_class_of_an_absent_module_says_what_to_use(module: str) -> None:
    absent = import_module(f"rayflink.datastream.connectors.{module}")
    for name in absent_connectors._CLASSES[module].split():
        with pytest.raises(ImportError, match=f"PyFlink's {name} is not in rayflink: .*(use|write|read|send) "):
            getattr(absent, name)
        with pytest.raises(ImportError, match="is not in rayflink"):
            getattr(import_module("rayflink.datastream.connectors"), name)
    assert not hasattr(absent, "NoSuchName")


def test_the_examples_of_the_module_run() -> None:
    found = doctest.testmod(absent_connectors)
    assert found.attempted and not found.failed
