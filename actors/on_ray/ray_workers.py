"""Workers of pools as Ray actors, which end with the process that made them."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import ray
from ray.exceptions import RayActorError, RayTaskError

from rayflink.operators.async_io.workers import MAKES_FUNCTION, WorkerLost, WorkerSpec
from rayflink.user_types import UserValue

from .driver.ray_resources import cluster_has
from .driver.user_program import pack
from .model_actor import ModelActor
from .ray_handles import RayActor, RayActorClass, RayRef


class RayWorker:
    """One worker as a Ray actor.

    Args:
        spec: what it holds and takes of the cluster.

    Raises:
        NotSerializable: the function cannot be sent to another process.
    """

    def __init__(self, spec: WorkerSpec) -> None:
        options: dict[str, Any] = {
            "num_cpus": spec.num_cpus,
            "num_gpus": spec.num_gpus,
            "resources": spec.resources,
            "max_restarts": 0,
            "max_task_retries": 0,
        }
        packed = pack(spec.function, f"the function of {spec.name!r}")
        blueprint: RayActorClass = ray.remote(**options)(ModelActor)
        self._actor: RayActor = blueprint.remote(packed)
        self._there = self._actor.__ray_ready__.remote().future()
        amounts = {"CPU": spec.num_cpus, "GPU": spec.num_gpus, **spec.resources}
        self._takes = [name for name, amount in amounts.items() if amount]

    async def ready(self) -> None:
        await _answer(self._actor.ready.remote())

    async def awaited(self) -> str:
        if self._there.done():
            return MAKES_FUNCTION
        return await asyncio.to_thread(cluster_has, self._takes or ["CPU"])

    async def call(self, data: UserValue) -> Any:
        if not isinstance(data, list):
            return await _answer(self._actor.call.remote(data))
        return pickle.loads(await _answer(self._actor.call.remote(pack(data, "a batch"))))

    def close(self) -> None:
        ray.kill(self._actor)


async def _answer(ref: RayRef) -> Any:
    try:
        return await asyncio.wrap_future(ref.future())
    except RayTaskError as error:
        if isinstance(error.cause, Exception):
            raise error.cause from error
        raise
    except RayActorError as error:
        raise WorkerLost(str(error).strip().splitlines()[0]) from error


__all__ = ["RayWorker"]
