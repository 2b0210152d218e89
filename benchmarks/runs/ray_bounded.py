"""A Ray of this benchmark's own on this machine: as many CPUs as slots are needed, a small object store."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

OBJECT_STORE_BYTES = 500 << 20


@contextmanager
def bounded_ray(slots: int) -> Iterator[str]:
    """Start Ray with `slots` CPUs, whatever else runs here, join it, and stop it in the end; gives its address."""
    import ray

    from rayflink.actors.on_ray.driver.ray_connection import SYSTEM_CONFIG

    ray.init(
        address="local",
        num_cpus=slots,
        object_store_memory=OBJECT_STORE_BYTES,
        include_dashboard=False,
        namespace="rayflink",
        log_to_driver=False,
        logging_level=logging.WARNING,
        _system_config=SYSTEM_CONFIG,
    )
    try:
        yield ray.get_runtime_context().gcs_address
    finally:
        ray.shutdown()
