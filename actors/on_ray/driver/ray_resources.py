"""The resources of a cluster: what it has, what a job lacks there, and whether an autoscaler may add nodes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

import ray
from ray.experimental.internal_kv import _internal_kv_get

from rayflink.common.errors import JobExecutionError
from rayflink.common.options import registry as options
from rayflink.graph.job_graph import JobGraph

from ...messages.scheduling import bundle_of, required_slots, too_much

_STATUS = "__autoscaling_status"
"""The key under which the monitor of a head node keeps its report, even without an autoscaler (`ray_constants`)."""
_VERSION_2 = ("__autoscaler_v2_enabled", "__autoscaler")
"""The key and namespace that show that the second autoscaler is on, which reports elsewhere."""
_ADDED_BY_HAND = re.compile(r"node_[0-9a-f]{32,}")
"""The type of a node that no autoscaler has started: one of its own."""
_UNITS = {"CPU": "CPUs", "GPU": "GPUs"}


def cluster_has(names: Iterable[str] = ("CPU",)) -> str:
    """Describe how much of some resources the whole cluster has, and how much of that is free."""
    total, free = ray.cluster_resources(), ray.available_resources()  # type: ignore[no-untyped-call]
    each = (f"{total.get(name, 0):g} {_UNITS.get(name, name)}, {free.get(name, 0):g} of them free" for name in names)
    return f"the cluster has {' and '.join(each)}"


def free_slots(slot_cpus: float) -> int:
    """Return the number of slots of `slot_cpus` CPUs that the free CPUs of the whole cluster are enough for."""
    free: dict[str, float] = ray.available_resources()  # type: ignore[no-untyped-call]
    return int(free.get("CPU", 0.0) / slot_cpus)


def lacking(graph: JobGraph, slot_cpus: float) -> str:
    """Return the resources that the job's slots want and the whole cluster does not have; "" for nothing."""
    bundles = [bundle_of(graph, slot, slot_cpus) for slot in required_slots(graph)]
    alive = [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
    return too_much(bundles, [node["Resources"] for node in alive])


def has_autoscaler() -> bool | None:
    """Return whether the cluster that this process has joined may add nodes by itself; None if that is unknown."""
    try:
        key, namespace = _VERSION_2
        return autoscaler_in(_internal_kv_get(_STATUS), _internal_kv_get(key, namespace=namespace))
    except Exception:  # a control service that does not answer, or another Ray
        return None


def autoscaler_in(status: bytes | None, is_version_2: bytes | None) -> bool | None:
    """Return whether Ray's own records mention an autoscaler; None where they do not say.

    Each head node has a monitor that reports on the nodes; one without an autoscaler gives each a type of its own.

    Args:
        status: the report of the monitor, None where there is none (yet).
        is_version_2: `b"1"` where the second autoscaler is on.

    >>> autoscaler_in(b'{"autoscaler_report": {"active_nodes": {"ray.head.default": 1}}}', b"0")
    True
    """
    if is_version_2 == b"1":
        return True  # somebody has asked for it
    try:
        report = json.loads(status or b"{}")["autoscaler_report"]
        if report["pending_launches"] or report["pending_nodes"]:
            return True
        types = {*report["active_nodes"], *(report.get("idle_nodes") or ())}
        return any(not _ADDED_BY_HAND.fullmatch(kind) for kind in types) if types else None
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def refuse_lack(graph: JobGraph, slot_cpus: float) -> None:
    """Refuse a job whose slots the cluster lacks where no autoscaler can add them.

    Raises:
        JobExecutionError: it is so.
    """
    wanted = lacking(graph, slot_cpus)
    if wanted and has_autoscaler() is False:
        reason = f"was not started: it wants {wanted}, and the cluster has no autoscaler that would add nodes"
        option = f"--allow-waiting ({options.ALLOW_WAITING.key})"
        remedy = f"lower the parallelism, add nodes by `ray start --address`, or have it wait for nodes by {option}"
        raise JobExecutionError(graph.id, reason, remedy)


def waiting_for(wanted: str, grows: bool | None) -> str:
    """Describe how a job that lacks slots waits.

    >>> waiting_for("3 CPU in all, of which the cluster has 2", grows=True)
    'wants 3 CPU in all, of which the cluster has 2: it waits for nodes of the autoscaler, at most slot.request.timeout'
    """
    who = "nodes of the autoscaler" if grows else "more nodes"
    return f"wants {wanted}: it waits for {who}, at most {options.SLOT_REQUEST_TIMEOUT.key}"


__all__ = ["autoscaler_in", "free_slots", "has_autoscaler", "lacking", "refuse_lack", "waiting_for"]
