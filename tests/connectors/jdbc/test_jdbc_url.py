"""URLs of JDBC become connection strings of PostgreSQL."""

from __future__ import annotations

import doctest

import psycopg
import pytest

from rayflink.connectors.jdbc import jdbc_url
from rayflink.connectors.jdbc.jdbc_url import dsn_of
from rayflink.connectors.postgres.postgres_session import PostgresError


def address(url: str, *more: str) -> dict[str, object]:
    return dict(psycopg.conninfo.conninfo_to_dict(dsn_of(url, *more)))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("jdbc:postgresql://h/d", {"host": "h", "port": "5432", "dbname": "d"}),
        ("jdbc:postgresql://h1:1,h2/d", {"host": "h1,h2", "port": "1,5432", "dbname": "d"}),
        ("jdbc:postgresql://[::1]:99/my%20db", {"host": "::1", "port": "99", "dbname": "my db"}),
        ("jdbc:postgresql:d", {"host": "localhost", "port": "5432", "dbname": "d"}),
        ("jdbc:postgresql://h/", {"host": "h", "port": "5432"}),
        ("jdbc:postgresql://%2Ftmp%2Fpg/d", {"host": "/tmp/pg", "port": "5432", "dbname": "d"}),
        (
            "jdbc:postgresql://h/d?ssl=true&ApplicationName=me&loginTimeout=3&reWriteBatchedInserts=true",
            {"host": "h", "port": "5432", "dbname": "d", "sslmode": "verify-full", "application_name": "me",
             "connect_timeout": "3"},
        ),
        (
            "jdbc:postgresql://h/d?targetServerType=preferSecondary&currentSchema=a, b&user=u&password=p%26q",
            {"host": "h", "port": "5432", "dbname": "d", "target_session_attrs": "prefer-standby", "user": "u",
             "options": "-c search_path=a,b", "password": "p&q"},
        ),
    ],
)  # fmt: skip
def test_urls_are_read_as_java_reads_them(url: str, expected: dict[str, object]) -> None:
    assert address(url) == expected


def test_user_and_password_of_options_win() -> None:
    found = address("jdbc:postgresql://h/d?user=a&password=b", "me", "it's")
    assert (found["user"], found["password"]) == ("me", "it's")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("jdbc:mysql://me:s3cret@h/d", "is one of JDBC for 'mysql', and only PostgreSQL is supported; write a source"),
        ("postgresql://me:s3cret@h/d", "is none of JDBC; write 'jdbc:postgresql://host:port/database'"),
        ("jdbc:postgresql://me:s3cret@h/d", "has a user before the host, where JDBC has none"),
        ("jdbc:postgresql://h:port/d", "has the host 'h:port'; write host:port"),
        ("jdbc:postgresql://h/d?password=s3cret&colour=red", "has the parameter 'colour', which is unknown"),
        ("jdbc:postgresql://h/d?targetServerType=best", "'targetServerType'"),
    ],
)
def test_urls_that_cannot_be_used_are_refused_without_their_password(url: str, message: str) -> None:
    with pytest.raises(PostgresError) as raised:
        dsn_of(url)
    assert message in str(raised.value) and "s3cret" not in str(raised.value)


def test_the_example_of_the_docstring_runs() -> None:
    found = doctest.testmod(jdbc_url)
    assert found.attempted > 0 and found.failed == 0
