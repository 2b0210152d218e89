"""PyFlink's module of this name is absent: an import of one of its names says what to use instead."""

from __future__ import annotations

from .absent_connectors import absent_names

__getattr__ = absent_names("cassandra")
