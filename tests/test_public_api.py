"""The public names, as a golden list: a change to it is a change users feel.

`RAYFLINK_WRITE_GOLDEN=1 pytest tests/test_public_api.py` writes the list anew.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.source_files import ROOT

GOLDEN = Path(__file__).parent / "golden" / "public_api.txt"
PACKAGES = (
    "rayflink",
    "rayflink.cep",
    "rayflink.common",
    "rayflink.datastream",
    "rayflink.datastream.connectors",
    "rayflink.datastream.connectors.file_system",
    "rayflink.datastream.connectors.hybrid_source",
    "rayflink.datastream.connectors.number_seq",
    "rayflink.datastream.connectors.kafka",
    "rayflink.datastream.connectors.delta",
    "rayflink.datastream.connectors.iceberg",
    "rayflink.datastream.connectors.nats",
    "rayflink.datastream.connectors.mqtt",
    "rayflink.datastream.connectors.postgres",
    "rayflink.datastream.connectors.rabbitmq",
    "rayflink.datastream.formats.arrow",
    "rayflink.datastream.formats.avro",
    "rayflink.datastream.formats.csv",
    "rayflink.datastream.formats.json",
    "rayflink.datastream.formats.orc",
    "rayflink.datastream.formats.parquet",
    "rayflink.datastream.functions",
    "rayflink.datastream.state",
    "rayflink.datastream.window",
    "rayflink.notebooks",
    "rayflink.spark",
    "rayflink.state_processor",
    "rayflink.table",
)
MODULES = (
    "rayflink.common.constants",
    "rayflink.datastream.async_retry_predicates",
    "rayflink.datastream.async_retry_strategies",
    "rayflink.datastream.connectors.base",
    "rayflink.dbapi",
    "rayflink.metrics",
    "rayflink.table.expression",
    "rayflink.table.expressions",
    "rayflink.table.planner",
    "rayflink.table.udf",
    "rayflink.table.window",
    "rayflink.testing",
)
"""Modules that users import from beside the packages."""
FLUENT = (
    "rayflink.datastream.StreamExecutionEnvironment",
    "rayflink.datastream.DataStream",
    "rayflink.datastream.DataStreamSink",
    "rayflink.datastream.KeyedStream",
    "rayflink.datastream.ConnectedStreams",
    "rayflink.datastream.WindowedStream",
    "rayflink.datastream.AllWindowedStream",
    "rayflink.datastream.CoGroupedStreams",
    "rayflink.datastream.CoGroupedStreams.Where",
    "rayflink.datastream.CoGroupedStreams.EqualTo",
    "rayflink.datastream.CoGroupedStreams.WithWindow",
    "rayflink.datastream.JoinedStreams",
    "rayflink.datastream.JoinedStreams.WithWindow",
    "rayflink.datastream.IntervalJoin",
    "rayflink.datastream.IntervalJoined",
    "rayflink.state_processor.Savepoint",
    "rayflink.state_processor.SavedState",
    "rayflink.state_processor.StateChanges",
)


def public_names() -> list[str]:
    """Every exported name, and every method of the fluent classes with its parameters."""
    lines = [f"{package}.{name}" for package in (*PACKAGES, *MODULES) for name in import_module(package).__all__]
    for path in FLUENT:
        package, *names = re.split(r"\.(?=[A-Z])", path)
        cls = reduce(getattr, names, import_module(package))
        for method, value in sorted(inspect.getmembers(cls, callable)):
            if not method.startswith("_"):
                taken = [p for p in inspect.signature(value).parameters if p != "self"]
                lines.append(f"{path}.{method}({', '.join(taken)})")
    return lines


def test_the_public_names_are_those_of_the_golden_list():
    found = "\n".join(public_names()) + "\n"
    if os.environ.get("RAYFLINK_WRITE_GOLDEN"):
        GOLDEN.write_text(found, encoding="utf-8")
    assert found.splitlines() == GOLDEN.read_text(encoding="utf-8").splitlines()


def named(line: str) -> tuple[Any, ...]:
    """What a line of the list names, behind the module and the class it is in."""
    path = line.partition("(")[0]
    package = max((p for p in (*PACKAGES, *MODULES) if path.startswith(f"{p}.")), key=len)
    way = [import_module(package)]
    for part in path.removeprefix(f"{package}.").split("."):
        way.append(getattr(way[-1], part))
    return tuple(way)


def silent_parts(cls: type, path: str) -> Iterator[str]:
    """What has no docstring: the class of ours itself, its public methods, the public classes in it."""
    if not cls.__dict__.get("__doc__"):  # that of its base says what its base is
        yield path
    for name, value in vars(cls).items():
        if name.startswith("_"):
            continue
        if isinstance(value, type) and value.__qualname__.startswith(f"{cls.__qualname__}."):
            yield from silent_parts(value, f"{path}.{name}")
        elif isinstance(value, (staticmethod, classmethod, property)) or inspect.isfunction(value):
            held = value if isinstance(value, property) else getattr(cls, name)
            if not inspect.getdoc(held):
                yield f"{path}.{name}"


def test_every_public_name_has_a_docstring():
    silent = []
    for line in public_names():
        value = named(line)[-1]
        if isinstance(value, type):
            silent += silent_parts(value, line)
        elif not value.__doc__:
            silent.append(line)
    assert not silent


def test_what_has_no_docstring_is_found():
    class Told:
        """Told."""

        def silent(self) -> None: ...

        class Silent(int):
            pass

    assert list(silent_parts(Told, "Told")) == ["Told.silent", "Told.Silent"]


@pytest.mark.parametrize("package", PACKAGES)
def test_what_type_checkers_see_is_what_is_exported(package):
    tree = ast.parse(Path(import_module(package).__file__).read_text(encoding="utf-8"))
    seen = [
        alias.asname
        for block in tree.body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
        if alias.asname == alias.name
    ]
    assert sorted(seen) == sorted(import_module(package).__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_that_is_not_there_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Nonsense'"):
        _ = import_module(package).Nonsense


def test_names_are_listed_before_they_are_loaded():
    code = "import sys, rayflink; print('Types' in dir(rayflink), 'rayflink.common.typeinfo' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


def test_the_version_is_that_of_the_package():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{import_module("rayflink").__version__}"' in project


@pytest.mark.parametrize("version", [(3, 9, 18), (3, 15, 0)])
def test_other_pythons_are_refused_before_anything_is_loaded(version):
    text = ".".join(map(str, version))
    code = f"import sys; sys.version_info = {version}; sys.version = '{text} (x)'; import rayflink"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    message = f"ImportError: rayflink runs on Python 3.10 to 3.14, found {text};"
    assert message in done.stderr
