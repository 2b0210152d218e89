"""Describes the resources of the cluster, for people."""

from __future__ import annotations

from collections.abc import Iterable

import ray

_UNITS = {"CPU": "CPUs", "GPU": "GPUs"}


def cluster_has(names: Iterable[str] = ("CPU",)) -> str:
    """Describe how much of some resources the whole cluster has, and how much of that is free."""
    total, free = ray.cluster_resources(), ray.available_resources()  # type: ignore[no-untyped-call]
    each = (f"{total.get(name, 0):g} {_UNITS.get(name, name)}, {free.get(name, 0):g} of them free" for name in names)
    return f"the cluster has {' and '.join(each)}"
