"""URLs of JDBC, as connection strings of PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote

from rayflink.connectors.postgres.postgres_session import PostgresError, driver

_URL = re.compile(r"jdbc:postgresql:(?://(?P<hosts>[^/?]*))?/?(?P<database>[^?]*)(?:\?(?P<parameters>.*))?", re.DOTALL)
_HOST = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]*)(?::(?P<port>\d+))?")
_SAME = frozenset(
    {"user", "password", "sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword", "options", "host", "hostaddr",
     "connect_timeout", "application_name", "keepalives_idle", "tcp_user_timeout", "target_session_attrs", "gssencmode"}
)  # fmt: skip
"""Parameters that PostgreSQL's library has under the same name."""
_RENAMED = {
    "ApplicationName": "application_name", "connectTimeout": "connect_timeout", "loginTimeout": "connect_timeout",
    "krbsrvname": "krbsrvname",
}  # fmt: skip
_SERVERS = {
    "any": "any", "primary": "primary", "master": "primary", "secondary": "standby", "slave": "standby",
    "preferSecondary": "prefer-standby", "preferSlave": "prefer-standby",
}  # fmt: skip
_OF_THE_DRIVER = frozenset(
    {"prepareThreshold", "preparedStatementCacheQueries", "preparedStatementCacheSizeMiB", "reWriteBatchedInserts",
     "defaultRowFetchSize", "stringtype", "binaryTransfer", "autosave", "preferQueryMode", "socketTimeout",
     "logUnclosedConnections", "assumeMinServerVersion", "disableColumnSanitiser", "loggerLevel", "loggerFile",
     "cancelSignalTimeout", "tcpKeepAlive", "escapeSyntaxCallMode", "readOnly", "readOnlyMode", "adaptiveFetch"}
)  # fmt: skip
"""Parameters about the inside of Java's driver, which have no meaning here and are left out."""


def dsn_of(url: str, user: str = "", password: str = "", parameters: Mapping[str, str] | None = None) -> str:
    """Return the connection string of a URL of JDBC.

    >>> dsn_of("jdbc:postgresql://db.example:5433/shop?sslmode=require&currentSchema=sales", "me")
    "host=db.example port=5433 dbname=shop sslmode=require options='-c search_path=sales' user=me"

    Args:
        user, password: in place of those in the URL; "": none.
        parameters: further ones of PostgreSQL's library.

    Raises:
        PostgresError: it is none, or of another database, or has a parameter that is unknown.
    """
    library = driver()
    match = _URL.fullmatch(url)
    if match is None:
        raise _not_ours(url)
    address = _address(match["hosts"] or "localhost", match["database"])
    for name, value in parse_qsl(match["parameters"] or "", keep_blank_values=True):
        address.update(_parameter(name, value, address))
    address.update({key: value for key, value in (("user", user), ("password", password)) if value})
    address.update(parameters or {})
    try:
        return str(library.conninfo.make_conninfo("", **address))
    except library.ProgrammingError as error:
        raise PostgresError(f"the URL of JDBC: {str(error).strip()}", "correct its parameters") from None


def _address(hosts: str, database: str) -> dict[str, str]:
    if "@" in hosts:
        problem = "the URL of JDBC has a user before the host, where JDBC has none"
        raise PostgresError(problem, "give 'username' and 'password' as options of their own")
    names, ports = [], []
    for part in hosts.split(","):
        matched = _HOST.fullmatch(part)
        if matched is None:
            raise PostgresError(f"the URL of JDBC has the host {part!r}", "write host:port, or several with commas")
        names.append(unquote(matched["host"]).strip("[]") or "localhost")
        ports.append(matched["port"] or "5432")
    address = {"host": ",".join(names), "port": ",".join(ports)}
    if database:
        address["dbname"] = unquote(database)
    return address


def _parameter(name: str, value: str, address: Mapping[str, str]) -> dict[str, str]:
    """Return a parameter of the URL as PostgreSQL's library has it."""
    if name in _SAME:
        return {name: value}
    if name in _RENAMED:
        return {_RENAMED[name]: value}
    if name in _OF_THE_DRIVER:
        return {}
    if name == "ssl":
        return {} if value == "false" or "sslmode" in address else {"sslmode": "verify-full"}
    if name == "currentSchema":
        return {"options": f"{address.get('options', '')} -c search_path={value.replace(' ', '')}".strip()}
    if name == "targetServerType" and value in _SERVERS:
        return {"target_session_attrs": _SERVERS[value]}
    if name == "loadBalanceHosts":
        return {"load_balance_hosts": "random"} if value == "true" else {}
    known = ", ".join(sorted({*_RENAMED, "currentSchema", "ssl", "sslmode", "targetServerType"}))
    problem = f"the URL of JDBC has the parameter {name!r}, which is unknown, or has an unknown value"
    raise PostgresError(problem, f"leave it out, or use one such as {known}")


def _not_ours(url: str) -> PostgresError:
    parts = url.split(":", 2)
    if len(parts) < 3 or parts[0] != "jdbc":
        return PostgresError("the URL is none of JDBC", "write 'jdbc:postgresql://host:port/database'")
    if parts[1] == "postgresql":
        return PostgresError("the URL of JDBC has no known form", "write 'jdbc:postgresql://host:port/database'")
    problem = f"the URL is one of JDBC for {parts[1]!r}, and only PostgreSQL is supported"
    remedy = "write a source or sink of your own with the Python driver of the database (docs/write-a-connector.md)"
    return PostgresError(problem, remedy)


__all__ = ["dsn_of"]
