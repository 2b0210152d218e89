"""Fixtures of the tests on object stores."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rayflink.connectors.file_systems import object_store

from .stores import Server, s3_store


@pytest.fixture(scope="session")
def s3_server() -> Iterator[Server]:
    with s3_store() as server:
        yield server


@pytest.fixture
def s3(s3_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """An empty bucket; pauses before further tries are short."""
    monkeypatch.setattr(object_store, "PAUSES_S", (0.001,) * 4)
    s3_server.empty()
    return s3_server
