"""The places where statements run: this process, and a gateway of ours."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest

from rayflink import dbapi
from rayflink.common.configuration import Configuration

Connect = Callable[..., dbapi.Connection]


@pytest.fixture(scope="session")
def gateway_url() -> Iterator[str]:
    """Yield the address of a gateway of ours."""
    from rayflink.gateway.sql_gateway import SqlGateway

    options = {"sql-gateway.endpoint.rest.port": "0", "execution.target": "local"}
    gateway = SqlGateway(Configuration.from_dict(options), options)
    gateway.start()
    yield gateway.url
    gateway.stop()


@pytest.fixture(scope="session", params=["in process", "gateway_url"])
def connect(request: pytest.FixtureRequest) -> Connect:
    """Return a function that opens a session at each of the places."""
    gateway = None if request.param == "in process" else request.getfixturevalue(request.param)

    def open_session(**arguments: object) -> dbapi.Connection:
        options = {"execution.target": "local", **arguments.pop("options", {})}
        return dbapi.connect(gateway, options=options, **arguments)

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
