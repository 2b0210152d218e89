"""The examples of docs/formats.md run and give what they show."""

from __future__ import annotations

import doctest
import tempfile
from pathlib import Path

import pytest

from tests.connectors.avro.registry_server import RegistryServer

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"


@pytest.mark.slow
def test_the_examples_of_the_page_run(
    registry: RegistryServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    names = {"registry_url": registry.url}
    flags = doctest.NORMALIZE_WHITESPACE
    found = doctest.testfile(str(PAGE), module_relative=False, globs=names, optionflags=flags)
    assert found.attempted >= 25
    assert found.failed == 0
