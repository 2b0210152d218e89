"""Type variables of state, for type checkers; a class whose parameters are left out has `Any` there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=Any)
    K = TypeVar("K", default=Any)
    V = TypeVar("V", default=Any)
    IN = TypeVar("IN", default=Any)
    OUT = TypeVar("OUT", default=Any)
    Added = TypeVar("Added", contravariant=True, default=Any)
    Got = TypeVar("Got", covariant=True, default=Any)
else:
    from typing import TypeVar

    T, K, V, IN, OUT = TypeVar("T"), TypeVar("K"), TypeVar("V"), TypeVar("IN"), TypeVar("OUT")
    Added, Got = TypeVar("Added", contravariant=True), TypeVar("Got", covariant=True)

__all__ = ["IN", "OUT", "Added", "Got", "K", "T", "V"]
