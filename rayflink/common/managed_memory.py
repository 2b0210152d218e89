"""Managed memory of a slot: a budget in bytes that algorithms of batch jobs reserve from, and spill when it is short.

Nothing is allocated here or ahead: a reservation is leave to keep that size in memory. Streaming jobs ask for none
before their keyed state leaves its cache.

Source: apache/flink MemoryManager (reserveMemory, releaseMemory, releaseAllMemory, availableMemory).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["Allowance", "MemoryManager"]

T = TypeVar("T")


class MemoryManager:
    """Shares a budget among owners; every method may be called by any thread.

    >>> memory = MemoryManager(100)
    >>> memory.reserve("sort", 70), memory.reserve("join", 40), memory.available
    (True, False, 30)
    >>> memory.release("sort", 20)
    >>> memory.release_all("sort"), memory.used
    (50, 0)

    Args:
        total: bytes of the budget, >= 0.
    Raises: ValueError: the budget is negative.
    """

    def __init__(self, total: int) -> None:
        if total < 0:
            raise ValueError(f"managed memory of at least 0 bytes is wanted, found {total}")
        self.total = total
        self._available = total
        self._reserved: dict[str, int] = {}
        self._changing = threading.Lock()
        self._shared: dict[str, Any] = {}
        self._sharing = threading.Lock()

    def reserve(self, owner: str, size: int) -> bool:
        """Take `size` bytes for `owner`, all of them or, where fewer are left, none; it never waits.

        Args:
            owner: whose `release_all` gives them back at the latest; a task's attempt.
            size: bytes, >= 0.
        """
        assert size >= 0, f"found a reservation of {size} bytes"
        with self._changing:
            if size > self._available:
                return False
            self._available -= size
            self._reserved[owner] = self._reserved.get(owner, 0) + size
            return True

    def release(self, owner: str, size: int) -> None:
        """Give `size` bytes back.

        Raises:
            ValueError: the owner has not reserved as many.
        """
        with self._changing:
            left = self._reserved.get(owner, 0) - size
            if size < 0 or left < 0:
                raise ValueError(f"{owner} gives back {size} bytes of managed memory, it has {left + size}")
            self._available += size
            if left:
                self._reserved[owner] = left
            else:
                self._reserved.pop(owner, None)

    def release_all(self, owner: str) -> int:
        """Give back all that the owner still has and return the number of bytes."""
        with self._changing:
            size = self._reserved.pop(owner, 0)
            self._available += size
            return size

    def shared(self, name: str, make: Callable[[MemoryManager], T]) -> T:
        """Return the object that the tasks of the slot share under this name, made when it is first asked for.

        Source: apache/flink MemoryManager.getSharedMemoryResourceForManagedMemory.
        """
        with self._sharing:
            if name not in self._shared:
                self._shared[name] = make(self)
            resource: T = self._shared[name]
            return resource

    def reserved(self, owner: str) -> int:
        """Return the number of bytes that the owner has now."""
        return self._reserved.get(owner, 0)

    @property
    def available(self) -> int:
        """Return the number of bytes that are not reserved."""
        return self._available

    @property
    def used(self) -> int:
        """Return the number of bytes reserved by all owners."""
        return self.total - self._available


class Allowance:
    """The managed memory that one user of an owner may take: up to a limit, as far as the budget has it.

    >>> allowance = Allowance(MemoryManager(100), "sort", 60)
    >>> allowance.reserve(50), allowance.reserve(20), allowance.used
    (True, False, 50)

    Args:
        memory: where it takes from.
        owner: on whose account.
        most: bytes this user has at a time at most.
    """

    def __init__(self, memory: MemoryManager, owner: str, most: int) -> None:
        self._memory, self._owner, self._most = memory, owner, most
        self.used = 0

    def reserve(self, size: int) -> bool:
        """Take `size` bytes, or none where that exceeds the allowance or what is left of the budget."""
        if self.used + size > self._most or not self._memory.reserve(self._owner, size):
            return False
        self.used += size
        return True

    def release(self, size: int) -> None:
        """Give `size` bytes back."""
        self._memory.release(self._owner, size)
        self.used -= size

    def release_all(self) -> None:
        """Give back all that was taken by way of this allowance."""
        self.release(self.used)

    def shared(self, name: str, make: Callable[[MemoryManager], T]) -> T:
        """Return the object that all owners share; see `MemoryManager.shared`."""
        return self._memory.shared(name, make)

    @property
    def available(self) -> int:
        """Return the number of bytes that a request would be granted now."""
        return min(self._most - self.used, self._memory.available)

    def limited(self, most: int) -> Allowance:
        """Return a new allowance of the same owner with a limit in bytes."""
        return Allowance(self._memory, self._owner, min(most, self._most))

    def divided(self, parts: int) -> list[Allowance]:
        """Return a number of new allowances of equal size, together at most this one."""
        return [Allowance(self._memory, self._owner, self._most // parts) for _ in range(parts)]
