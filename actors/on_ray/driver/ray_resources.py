"""What the cluster has, for people."""

from __future__ import annotations

from collections.abc import Iterable

import ray

_UNITS = {"CPU": "CPUs", "GPU": "GPUs"}


def cluster_has(names: Iterable[str] = ("CPU",)) -> str:
    """How much of some resources the whole cluster has, and how much of that nobody has taken."""
    total, free = ray.cluster_resources(), ray.available_resources()  # type: ignore[no-untyped-call]
    each = (f"{total.get(name, 0):g} {_UNITS.get(name, name)}, {free.get(name, 0):g} of them free" for name in names)
    return f"the cluster has {' and '.join(each)}"
