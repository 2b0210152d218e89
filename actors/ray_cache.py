"""Cached results on Ray: an actor that keeps the blocks in the object store, which spills what does not fit."""

from __future__ import annotations

import os
from typing import Any

import ray

from rayflink.common.errors import TaskLost

CACHE = "cache"
_actors: dict[str, Any] = {}


class CacheActor:
    """Keeps the blocks of one cached result; `RayBlocks.open` makes the Ray actor."""

    def __init__(self) -> None:
        self._blocks: dict[int, list[Any]] = {}

    def append(self, partition: int, block: bytes) -> None:
        """Put a block behind those that the partition has."""
        self._blocks.setdefault(partition, []).append(ray.put(block))

    def read(self, partition: int, position: int) -> bytes | None:
        """The block at a position; None behind the last."""
        blocks = self._blocks.get(partition, [])
        return ray.get(blocks[position]) if position < len(blocks) else None


class RayBlocks:
    """Blocks in the object store of the cluster, found by the name of the actor that keeps them.

    Args:
        namespace: Ray namespace of the actor.
    """

    def __init__(self, namespace: str) -> None:
        self._name, self._namespace = f"{os.urandom(16).hex()}/{CACHE}", namespace

    def open(self) -> None:
        """Make the actor, which ends with this process or with `clear`."""
        options: dict[str, Any] = {"num_cpus": 0, "max_restarts": 0}
        blueprint = ray.remote(**options)(CacheActor)
        _actors[self._name] = blueprint.options(name=self._name, namespace=self._namespace).remote()

    def append(self, partition: int, block: bytes) -> None:
        """Put a block behind those that the partition has."""
        ray.get(self._actor().append.remote(partition, block))

    def read(self, partition: int, position: int) -> tuple[bytes, int] | None:
        """The block at a position, which is 0 for the first, and the position behind it; None behind the last."""
        block = ray.get(self._actor().read.remote(partition, position))
        return None if block is None else (block, position + 1)

    def clear(self) -> None:
        """End the actor; the store frees its blocks."""
        actor = _actors.pop(self._name, None)
        if actor is not None and ray.is_initialized():
            ray.kill(actor)

    @property
    def is_there(self) -> bool:
        """Whether the actor still lives, asked where it was made."""
        if self._name not in _actors or not ray.is_initialized():
            return False
        named = ray.util.list_named_actors(all_namespaces=True)
        return any(actor["name"] == self._name for actor in named)

    def _actor(self) -> Any:
        if self._name not in _actors:
            try:
                _actors[self._name] = ray.get_actor(self._name, namespace=self._namespace)
            except ValueError as error:
                gone = "the program that made it has ended, or has invalidated it"
                raise TaskLost("cached result", self._name, 0, gone) from error
        return _actors[self._name]


__all__ = ["CacheActor", "RayBlocks"]
