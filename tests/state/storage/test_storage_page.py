"""The examples of docs/checkpoint-storage.md and of the docstrings around storages run and print what they show."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

from rayflink.common.configuration import Configuration
from rayflink.state.storage.object_store_options import client_configuration

MODULES = (
    "storage.manifest", "storage.manifest_format", "storage.memory_storage", "storage.retention", "storage.storage",
    "storage.storage_schemes", "storage.stored_checkpoints",
)  # fmt: skip


def test_the_examples_of_the_page_run(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(
        str(repository / "docs" / "checkpoint-storage.md"),
        module_relative=False,
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS,
    )
    assert found.attempted >= 20
    assert found.failed == 0


def test_the_options_of_the_page_are_those_of_a_storage(repository: Path, tmp_path: Path):
    page = (repository / "docs" / "checkpoint-storage.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```yaml\n(.*?)^```", page, re.M | re.S)
    (tmp_path / "config.yaml").write_text(block, encoding="utf-8")
    options = Configuration.from_file(tmp_path / "config.yaml")
    assert options.unknown_options() == {}
    config, _ = client_configuration("s3://bucket/folder", options.to_dict())
    assert config == {
        "endpoint": "http://minio:9000",
        "access_key_id": "flink",
        "secret_access_key": "...",
        "region": "us-east-1",
        "virtual_hosted_style_request": False,
    }


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_the_docstrings_run(name: str):
    found = doctest.testmod(importlib.import_module(f"rayflink.state.{name}"))
    assert found.attempted > 0 and found.failed == 0
