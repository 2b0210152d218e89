"""The places where statements run: this process, and gateways."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest

from rayflink import dbapi

Connect = Callable[..., dbapi.Connection]


@pytest.fixture(scope="session", params=["in process"])
def connect(request: pytest.FixtureRequest) -> Connect:
    """Return a function that opens a session at each of the places."""

    def open_session(**arguments: object) -> dbapi.Connection:
        options = {"execution.target": "local", **arguments.pop("options", {})}
        return dbapi.connect(options=options, **arguments)

    return open_session


@pytest.fixture(scope="session")
def shared(connect: Connect) -> Iterator[dbapi.Connection]:
    """Yield one connection for many tests."""
    with connect() as connection:
        yield connection


@pytest.fixture
def unused_port() -> int:
    """Return a port at which nothing listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
