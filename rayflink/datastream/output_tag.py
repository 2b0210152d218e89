"""Names of side outputs, under PyFlink's module path."""

from __future__ import annotations

from rayflink.common.output_tag import OutputTag

__all__ = ["OutputTag"]
