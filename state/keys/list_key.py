"""Lists as keys: an immutable list that can be looked up in a dict."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["ListKey"]


class ListKey(list[Any]):
    """A list whose items are keys in standard form; equal to lists with equal items, and to no tuple.

    It is what programs see as the current key where the key selector gave a list. `list(key)` or `key.copy()` is one
    that can be changed.

    >>> ListKey([1, 2]) == [1, 2], ListKey([1, 2]) == (1, 2), {ListKey([1]): "a"}[ListKey([True])]
    (True, False, 'a')
    >>> ListKey([1]).append(2)
    Traceback (most recent call last):
        ...
    TypeError: a list that is a key cannot be changed; change a copy, list(key)
    """

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash((ListKey, *self))

    def __reduce__(self) -> tuple[type[ListKey], tuple[list[Any]]]:
        return ListKey, (list(self),)

    def _refused(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a list that is a key cannot be changed; change a copy, list(key)")

    append = extend = insert = remove = pop = clear = sort = reverse = _refused
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refused
