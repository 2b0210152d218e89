"""The examples of docs/connectors.md and of the connectors' docstrings run and give what they show."""

from __future__ import annotations

import doctest
import importlib
import tempfile
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "connectors.md"
MODULES = (
    "common.records.lossy_arrow_casts", "common.connector_base.commits", "common.connector_base.sink",
    "common.functions.two_phase_function", "operators.commits", "common.records.arrow_types",
    "common.records.csv_rows", "common.records.json_rows", "common.serialization", "connectors.files.buckets",
    "connectors.files.file_sink", "connectors.hybrid_source", "connectors.iteration",
    "connectors.formats.json_files",
)  # fmt: skip


def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted >= 40
    assert found.failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_the_docstrings_run(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"rayflink.{name}"))
    assert found.attempted > 0 and found.failed == 0
