"""Cached results on Ray: an actor that keeps the blocks in the object store, which spills what does not fit."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import ray
from ray import exceptions

from rayflink.common.errors import TaskLost

from ..ray_handles import RayActor

CACHE = "cache"
ANSWER_TIMEOUT_S = 10.0
"""Seconds that an actor that does not answer may be busy with blocks before it counts as there."""
_actors: dict[str, Any] = {}


class CacheActor:
    """Keeps the blocks of one cached result; `RayBlocks.open` makes the Ray actor."""

    def __init__(self) -> None:
        self._blocks: dict[int, list[ray.ObjectRef[bytes]]] = {}

    def append(self, partition: int, block: bytes) -> None:
        """Append a block to those of the partition."""
        self._blocks.setdefault(partition, []).append(ray.put(block))

    def process(self) -> int:
        """Return the id of the actor's process; the answer shows that it lives."""
        return os.getpid()

    def read(self, partition: int, position: int) -> bytes | None:
        """Return the block at a position; None behind the last."""
        blocks = self._blocks.get(partition, [])
        return ray.get(blocks[position]) if position < len(blocks) else None


class RayBlocks:
    """Blocks in the object store of the cluster, found by the name of the actor that keeps them.

    It takes the classes of the script whose job wrote the blocks to those that read them: records name their class, and
    the program that reads them need not mention it.

    Args:
        namespace: Ray namespace of the actor.
    """

    def __init__(self, namespace: str) -> None:
        self._name, self._namespace = f"{os.urandom(16).hex()}/{CACHE}", namespace
        self._classes: dict[str, type] = {}

    def open(self, classes: Mapping[str, type] = MappingProxyType({})) -> None:
        """Make the actor, which ends with this process or with `clear`.

        Args:
            classes: of the job's script, by their names.
        """
        self._classes = dict(classes)
        options: dict[str, Any] = {"num_cpus": 0, "max_restarts": 0}
        blueprint = ray.remote(**options)(CacheActor)
        _actors[self._name] = blueprint.options(name=self._name, namespace=self._namespace).remote()

    def append(self, partition: int, block: bytes) -> None:
        """Append a block to those of the partition."""
        self._ask("append", partition, block)

    def read(self, partition: int, position: int) -> tuple[bytes, int] | None:
        """Return the block at a position, the first at 0, and the position behind it; None behind the last."""
        block = self._ask("read", partition, position)
        return None if block is None else (block, position + 1)

    def clear(self) -> None:
        """End the actor; the store frees its blocks."""
        actor = _actors.pop(self._name, None)
        if actor is not None and ray.is_initialized():
            ray.kill(actor)

    @property
    def is_there(self) -> bool:
        """Return whether the actor still lives, as seen by the process that made it."""
        if self._name not in _actors or not ray.is_initialized():
            return False
        try:
            ray.get(_actors[self._name].process.remote(), timeout=ANSWER_TIMEOUT_S)
        except exceptions.GetTimeoutError:
            return True
        except exceptions.RayActorError:
            return False
        return True

    def _ask(self, what: str, *arguments: object) -> Any:
        try:
            return ray.get(getattr(self._actor(), what).remote(*arguments))
        except exceptions.RayActorError as error:
            gone = "the process that keeps its records has died, or its program has invalidated it"
            raise TaskLost("cached result", self._name, 0, gone) from error
        except exceptions.ObjectLostError as error:
            raise TaskLost("cached result", self._name, 0, "records of it were on a node that is gone") from error
        except (exceptions.OutOfDiskError, exceptions.ObjectStoreFullError) as error:
            remedy = "free space in Ray's folder for spilled objects, start Ray with a larger one, or cache less"
            raise OSError(f"cached result {self._name} cannot be written (no space is left); {remedy}") from error

    def _actor(self) -> RayActor:
        if self._name not in _actors:
            try:
                _actors[self._name] = ray.get_actor(self._name, namespace=self._namespace)
            except ValueError as error:
                gone = "the program that made it has ended, or has invalidated it"
                raise TaskLost("cached result", self._name, 0, gone) from error
        return _actors[self._name]


__all__ = ["CacheActor", "RayBlocks"]
