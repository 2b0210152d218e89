"""Serializers that write objects to a stream of bytes, under PyFlink's module path."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import BinaryIO, Generic, TypeVar

T = TypeVar("T")


class TypeSerializer(ABC, Generic[T]):
    """Writes objects of one kind to a stream of bytes and reads them; two of one class with equal fields are equal.

    A custom window assigner may give one for its windows, as in PyFlink. State has no need of it: windows are pickled.

    >>> from rayflink.datastream.window import CountWindowSerializer
    >>> CountWindowSerializer() == CountWindowSerializer()
    True
    """

    @abstractmethod
    def serialize(self, element: T, stream: BinaryIO) -> None:
        """Write one object."""

    @abstractmethod
    def deserialize(self, stream: BinaryIO) -> T:
        """Read one object."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, self.__class__) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


__all__ = ["TypeSerializer"]
