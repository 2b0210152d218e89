"""DataFrames in the object store: on each node an actor that keeps the blocks which Spark's workers there have put.

The actor owns the blocks, so they outlive Spark, the worker that put them and, with a job that holds them, the program.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import ray
from ray import exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rayflink.connectors.frames.frame_source import FrameLost, FramePart

from ..ray_handles import RayActor, RayActorClass, RayRef
from .ray_connection import join_address

if TYPE_CHECKING:
    import pyarrow

AUTH_MODE = "RAY_AUTH_MODE"
FRAMES = "frames"
"""Part of the names of these actors."""
LOOKS_EVERY_S = 5.0
"""Seconds between two checks of an actor whether its blocks are needed, and two heartbeats of a program."""
LEAVES_S = 5.0
"""Seconds that the last message of a program may take."""
SILENCE_S = 60.0
"""A program that was not heard of for so long has ended."""


class FrameKeeper:
    """Keeps the blocks of one DataFrame on one node until neither its program nor a job needs them.

    Args:
        namespace: Ray namespace of the jobs.
        silence_s: seconds after which a program that says nothing has ended.
    """

    def __init__(self, namespace: str, silence_s: float = SILENCE_S) -> None:
        self._namespace, self._silence_s = namespace, silence_s
        self._blocks: dict[tuple[int, int], dict[int, RayRef]] = {}
        self._kept: frozenset[tuple[int, int]] | None = None
        self._coordinators: set[str] = set()
        self._heard: float | None = time.monotonic()
        threading.Thread(target=self._watch, name="needed", daemon=True).start()

    def put(self, partition: int, attempt: int, number: int, block: pyarrow.RecordBatch) -> None:
        """Store a block of an attempt at a partition, unless other attempts have been chosen by now."""
        self.heard()
        if self._kept is None or (partition, attempt) in self._kept:
            self._blocks.setdefault((partition, attempt), {})[number] = ray.put(block)

    def keep(self, part_keys: Sequence[tuple[int, int]]) -> dict[tuple[int, int], int]:
        """Keep the blocks of these (partition, attempt) only, and return how many blocks each of them has."""
        self._kept = frozenset(part_keys)
        self._blocks = {part_key: blocks for part_key, blocks in self._blocks.items() if part_key in self._kept}
        return {part_key: len(blocks) for part_key, blocks in self._blocks.items()}

    def refs(self, partition: int, attempt: int) -> list[RayRef]:
        """Return the blocks of a partition, in order."""
        blocks = self._blocks.get((partition, attempt), {})
        return [blocks[number] for number in sorted(blocks)]

    def heard(self) -> None:
        """Note that the program lives."""
        if self._heard is not None:
            self._heard = time.monotonic()

    def leave(self) -> None:
        """Note that the program no longer needs the blocks."""
        self._heard = None

    def hold(self, coordinator: str) -> None:
        """Note that the job of that coordinator needs the blocks."""
        self._coordinators.add(coordinator)

    def _watch(self) -> None:
        while True:
            time.sleep(LOOKS_EVERY_S)
            lives = self._heard is not None and time.monotonic() - self._heard < self._silence_s
            if not lives and not any(map(self._is_there, tuple(self._coordinators))):
                with suppress(exceptions.RayError):  # then the next time
                    ray.kill(ray.get_runtime_context().current_actor)

    def _is_there(self, coordinator: str) -> bool:
        try:
            ray.get_actor(coordinator, namespace=self._namespace)
        except ValueError:
            return False
        except exceptions.RayError:  # the control service does not answer now
            return True
        return True


class RayFrames:
    """The blocks of one DataFrame in the object stores of the nodes on which they were put.

    Args:
        namespace: Ray namespace of the actors.
    """

    travels = False

    def __init__(self, namespace: str) -> None:
        self._namespace, self._address = namespace, ray.get_runtime_context().gcs_address
        self._name = f"{os.urandom(16).hex()}/{FRAMES}"
        self._keepers: dict[str, Any] = {}
        self._refs: dict[tuple[int, int], list[RayRef]] = {}
        self._left = threading.Event()
        self._teller: threading.Thread | None = None
        self._needed: Callable[[], bool] = lambda: True

    def __getstate__(self) -> dict[str, Any]:
        return {"_namespace": self._namespace, "_address": self._address, "_name": self._name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        fresh = {"_keepers": {}, "_refs": {}, "_left": threading.Event(), "_teller": None, "_needed": lambda: True}
        self.__dict__.update(state, **fresh)

    @property
    def surroundings(self) -> dict[str, str]:
        """Return the environment by which processes authenticate to this Ray, which is read when `ray` is imported."""
        return {AUTH_MODE: os.environ[AUTH_MODE]} if AUTH_MODE in os.environ else {}

    def open(self) -> RayFrames:
        """Announce from now on that this program lives and needs the blocks; `leave` ends it."""
        self._teller = threading.Thread(target=self._tell, name=f"{FRAMES} are needed", daemon=True)
        self._teller.start()
        atexit.register(self.leave)  # before Ray's own, after which a call would end the process
        return self

    def append(self, partition: int, attempt: int, number: int, block: pyarrow.RecordBatch) -> str:
        """Put a block into the object store of this node; return the name of the actor that keeps it."""
        join_address(self._address, self._namespace)
        node = ray.get_runtime_context().get_node_id()
        name = f"{self._name}/{node}"
        try:
            ray.get(self._keeper(name, node).put.remote(partition, attempt, number, block))
        except (exceptions.OutOfDiskError, exceptions.ObjectStoreFullError) as error:
            remedy = "free space in Ray's folder for spilled objects, start Ray with a larger object store"
            remedy += ", or write the DataFrame to files: env.from_spark(df, path=...)"
            raise OSError(f"a block of a DataFrame finds no space on node {node}; {remedy}") from error
        except exceptions.RayActorError as error:
            raise ConnectionError(f"the process on node {node} that keeps blocks has ended") from error
        return name

    def keep(self, parts: Sequence[FramePart]) -> None:
        """Drop the blocks of other attempts."""
        attempts = [(part.partition, part.attempt) for part in parts]
        there: dict[tuple[int, int], int] = {}
        for keeper in self._all():
            with suppress(exceptions.RayActorError):  # it has ended just now
                there |= ray.get(keeper.keep.remote(attempts))
        for part in parts:
            if there.get((part.partition, part.attempt), 0) < part.blocks:
                raise _gone(part.place)

    def hold(self) -> None:
        """Note that the job whose coordinator this process is needs the blocks."""
        name = ray.get_runtime_context().get_actor_name()
        for keeper in self._all() if name else ():
            with suppress(exceptions.RayActorError):  # readers of its blocks get an error
                ray.get(keeper.hold.remote(name))

    def read(self, part: FramePart, number: int) -> pyarrow.RecordBatch:
        """Read a block of a partition from this node's object store, and prefetch the next one."""
        part_key = part.partition, part.attempt
        join_address(self._address, self._namespace)
        try:
            if part_key not in self._refs:
                self._refs = {part_key: ray.get(self._keeper(part.place).refs.remote(*part_key))}
            refs = self._refs[part_key]
            if len(refs) != part.blocks:
                raise FrameLost(f"{len(refs)} of {part.blocks} blocks of partition {part.partition} are there")
            if number + 1 < len(refs):
                ray.wait([refs[number + 1]], timeout=0, fetch_local=True)
            block: pyarrow.RecordBatch = ray.get(refs[number])
        except (exceptions.RayActorError, exceptions.ObjectLostError) as error:
            raise _gone(part.place) from error
        return block

    def need_while(self, needed: Callable[[], bool]) -> None:
        """Keep the blocks for the program that opened them as long as the predicate, called now and then, is true."""
        self._needed = needed

    def leave(self) -> None:
        """Note that the program no longer needs the blocks."""
        if self._teller is None:
            return
        teller, self._teller = self._teller, None
        atexit.unregister(self.leave)
        self._left.set()
        if teller is not threading.current_thread():  # garbage is collected by any thread
            teller.join(LEAVES_S)
        if ray.is_initialized():
            with suppress(exceptions.RayError):  # they leave by themselves when nothing is heard of the program
                for keeper in self._all():
                    keeper.leave.remote()

    def _tell(self) -> None:
        while not self._left.wait(LOOKS_EVERY_S):
            if not ray.is_initialized():
                return
            if not self._needed():
                return self.leave()
            with suppress(exceptions.RayError):  # the control service does not answer now
                for keeper in self._all():
                    keeper.heard.remote()

    def _all(self) -> list[RayActor]:
        """Return the actors that exist."""
        keepers = []
        for entry in ray.util.list_named_actors(all_namespaces=True):
            if entry["namespace"] == self._namespace and entry["name"].startswith(self._name):
                with suppress(FrameLost):  # it has ended since the list was made
                    keepers.append(self._keeper(entry["name"]))
        return keepers

    def _keeper(self, name: str, makes_on: str = "") -> RayActor:
        """Return the actor of that name.

        Args:
            makes_on: the node on which it is made where there is none.
        """
        if name not in self._keepers:
            try:
                self._keepers[name] = self._made(name, makes_on) if makes_on else ray.get_actor(name, self._namespace)
            except ValueError as error:
                raise _gone(name) from error
        return self._keepers[name]

    def _made(self, name: str, node: str) -> RayActor:
        options: dict[str, Any] = {
            "num_cpus": 0,
            "max_restarts": 0,
            "name": name,
            "namespace": self._namespace,
            "lifetime": "detached",
            "get_if_exists": True,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False),
        }
        blueprint: RayActorClass = ray.remote(FrameKeeper)
        return blueprint.options(**options).remote(self._namespace)


def _gone(place: str) -> FrameLost:
    node = place.rpartition("/")[2]
    return FrameLost(f"the process on node {node} that keeps them has ended, or its program had before the job began")


__all__ = ["FRAMES", "FrameKeeper", "RayFrames"]
