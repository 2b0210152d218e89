"""Tables of connectors, under the module's name in PyFlink."""

from __future__ import annotations

from .schema import FormatDescriptor, TableDescriptor

__all__ = ["FormatDescriptor", "TableDescriptor"]
