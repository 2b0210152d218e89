"""One small Ray for all tests of this folder, and the check that a job leaves nothing on it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import watching

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="session")
def running_ray() -> Iterator[str]:
    """The address of a Ray of two CPUs on loopback; programs started by a test join it by RAY_ADDRESS."""
    import ray

    before = {name: os.environ.get(name) for name in ("PYTHONPATH", "RAY_ADDRESS", "RAY_AUTH_MODE")}
    os.environ["PYTHONPATH"] = str(ROOT)
    context = ray.init(
        address="local",
        num_cpus=2,
        object_store_memory=200 << 20,
        include_dashboard=False,
        namespace=watching.NAMESPACE,
        log_to_driver=False,
        logging_level="error",
    )
    os.environ["RAY_ADDRESS"] = context.address_info["gcs_address"]
    try:
        yield context.address_info["gcs_address"]
    finally:
        ray.shutdown()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@pytest.fixture
def cluster(running_ray: str) -> Iterator[str]:
    """The running Ray; at the end no actor, process, placement group or shared memory of a job may be left on it."""
    yield running_ray
    assert watching.leftovers(within_s=15) == []
