"""Expressions whose type is known, under the module's name in PyFlink."""

from __future__ import annotations

from .resolved_schema import ResolvedExpression

__all__ = ["ResolvedExpression"]
