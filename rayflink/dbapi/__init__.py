"""DB-API 2.0 (PEP 249): SQL of rayflink for programs and tools that speak to databases.

- `connection` and `cursor`: what a program uses. `exceptions`, `type_objects`: the names that PEP 249 wants.
- `parameters`: values in the places of question marks.
- `statements`: what runs statements, seen from a cursor. `in_process` runs them in this process; `gateway_client` sends
  them to a SQL gateway, of rayflink or of Flink, and `gateway_values` reads what it answers.

Statements are run by `rayflink.table`, and a gateway is served by another part; neither belongs here.

    >>> from rayflink import dbapi
    >>> options = {"execution.target": "local"}
    >>> with dbapi.connect(options=options) as connection, connection.cursor() as cursor:
    ...     cursor.execute("SELECT n * ? AS product FROM (VALUES (1), (2)) AS t (n) ORDER BY n", (10,)).fetchall()
    [(10,), (20,)]
"""

from .connection import Connection, connect
from .cursor import Cursor
from .exceptions import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from .gateway_client import Gateway
from .type_objects import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

apilevel = "2.0"
threadsafety = 1
"""Threads may share the module, not connections."""
paramstyle = "qmark"

__all__ = [
    "BINARY", "Binary", "Connection", "Cursor", "DATETIME", "DataError", "DatabaseError", "Date", "DateFromTicks",
    "Error", "Gateway", "IntegrityError", "InterfaceError", "InternalError", "NUMBER", "NotSupportedError",
    "OperationalError", "ProgrammingError", "ROWID", "STRING", "Time", "TimeFromTicks", "Timestamp",
    "TimestampFromTicks", "Warning", "apilevel", "connect", "paramstyle", "threadsafety",
]  # fmt: skip
