"""The exceptions of PEP 249."""

from __future__ import annotations

import builtins

__all__ = [
    "DataError", "DatabaseError", "Error", "IntegrityError", "InterfaceError", "InternalError", "NotSupportedError",
    "OperationalError", "ProgrammingError", "Warning",
]  # fmt: skip


class Warning(builtins.Warning):  # the name that PEP 249 wants
    """Warns of something important; nothing raises it."""


class Error(Exception):
    """Base of all errors of a connection."""


class InterfaceError(Error):
    """The module is used wrongly: a connection or cursor is closed, or a parameter has no form in SQL."""


class DatabaseError(Error):
    """A statement failed."""


class DataError(DatabaseError):
    """A value cannot be computed or stored."""


class OperationalError(DatabaseError):
    """The job of a statement failed, or the gateway cannot be reached or refuses the connection."""


class IntegrityError(DatabaseError):
    """A constraint is violated, such as NOT NULL of a sink."""


class InternalError(DatabaseError):
    """The gateway answers what no gateway should."""


class ProgrammingError(DatabaseError):
    """A statement means nothing: wrong syntax, an unknown table, a wrong number of parameters."""


class NotSupportedError(DatabaseError):
    """Something that SQL on streams does not have, such as a rollback."""
