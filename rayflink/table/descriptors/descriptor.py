"""The base of descriptions by properties."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Descriptor(ABC):
    """Says something by properties, which are strings under dotted names."""

    @abstractmethod
    def to_properties(self) -> dict[str, str]:
        """Return the properties."""


__all__ = ["Descriptor"]
