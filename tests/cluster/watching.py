"""What jobs hold on a Ray: actors with their processes, placement groups, shared memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

NAMESPACE = "rayflink"
STORE_SLACK = 1 << 20


def actors(alive: bool = True) -> list[dict[str, Any]]:
    """Actors of jobs, as the cluster's control service tells: name, state, pid."""
    from ray._private.state import actors as known

    found = []
    for actor in known().values():
        is_of_job = actor["ActorClassName"] in ("SlotActor", "SlotHost", "CoordinatorActor")
        if is_of_job and (actor["State"] != "DEAD") == alive:
            found.append(actor)
    return found


def drivers() -> int:
    """Jobs of Ray there have been on the cluster: each process that joined it was one."""
    import ray
    from ray._raylet import GcsClient

    return len(GcsClient(address=ray.get_runtime_context().gcs_address).get_all_job_info())


def pid_of(name_part: str) -> int:
    """The process of the one live actor whose name contains `name_part`."""
    (actor,) = [actor for actor in actors() if name_part in actor["Name"]]
    return int(actor["Pid"])


def leftovers(within_s: float) -> list[str]:
    """What is left of jobs once `within_s` seconds have passed; what goes by itself sooner is not left."""
    eventually(lambda: not _left(), within_s)
    return _left()


def eventually(condition: Callable[[], Any], within_s: float) -> Any:
    """The first true value of `condition`, or its last one when `within_s` seconds have passed."""
    for _ in moments(within_s):
        if value := condition():
            break
    return value


def moments(for_s: float, every_s: float = 0.1) -> Iterator[None]:
    """Now, then every `every_s` seconds until `for_s` seconds have passed."""
    until = time.monotonic() + for_s
    yield
    while time.monotonic() < until:
        time.sleep(every_s)
        yield


def waiter(gate: str) -> Callable[[Any], Any]:
    """A function for a job that goes on when there is a file `gate`, or after half a minute."""

    def wait(value: Any) -> Any:
        eventually(lambda: os.path.exists(gate), within_s=30)
        return value

    return wait


def _left() -> list[str]:
    import ray
    from ray.util.placement_group import placement_group_table

    left = [f"actor {actor['ActorClassName']} {actor['Name']} {actor['State']}" for actor in actors()]
    groups = placement_group_table().values()
    left += [f"placement group {group['name']} {group['state']}" for group in groups if group["state"] != "REMOVED"]
    total, free = ray.cluster_resources(), ray.available_resources()
    if free.get("CPU", 0) < total["CPU"]:
        left.append(f"CPUs in use: {total['CPU'] - free.get('CPU', 0)}")
    return left
