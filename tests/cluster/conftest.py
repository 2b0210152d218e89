"""One small Ray of two nodes for all tests of this folder, and the check that a job leaves nothing on it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.cluster import watching

NODE = {"num_cpus": 1, "object_store_memory": 100 << 20}
ROOT = Path(__file__).resolve().parent.parent.parent
ADDRESS = pytest.StashKey[str]()
HERE = Path(__file__).resolve().parent


@contextmanager
def two_nodes(cpus: int = 1) -> Iterator[str]:
    """A Ray of two nodes with so many CPUs each on loopback; programs of a test join it by RAY_ADDRESS."""
    import ray
    from ray.cluster_utils import Cluster

    before = {name: os.environ.get(name) for name in ("PYTHONPATH", "RAY_ADDRESS", "RAY_AUTH_MODE")}
    os.environ["PYTHONPATH"] = str(ROOT)
    node = {**NODE, "num_cpus": cpus}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        cluster.add_node(**node)
        os.environ["RAY_ADDRESS"] = cluster.address
        ray.init(address=cluster.address, namespace=watching.NAMESPACE, log_to_driver=False, logging_level="error")
        cluster.wait_for_nodes()
        yield cluster.address
    finally:
        readers = [thread.name for thread in threading.enumerate() if thread.name == "statuses"]
        ray.shutdown()
        cluster.shutdown()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
    assert not readers, "a RayRunner was not closed: Ray would end this process a minute after the cluster's end"


@pytest.fixture
def running_ray(request: pytest.FixtureRequest) -> str:
    """The address of the folder's Ray; it starts with the first test that asks and ends with the last of the folder.

    The folders of this one have it in common.

    Scope "package" would do that only where the folder is a Python package; elsewhere it is that of the session.
    """
    folders = [parent for parent in request.node.iter_parents() if isinstance(parent, pytest.Directory)]
    folder = next((each for each in folders if each.path == HERE), folders[0])
    if ADDRESS not in folder.stash:
        with ExitStack() as starting:
            folder.stash[ADDRESS] = starting.enter_context(two_nodes())
            starting.callback(folder.stash.__delitem__, ADDRESS)
            folder.addfinalizer(starting.pop_all().close)
    return folder.stash[ADDRESS]


@pytest.fixture
def cluster(running_ray: str) -> Iterator[str]:
    """The running Ray; at the end no actor, process, placement group or shared memory of a job may be left on it."""
    yield running_ray
    assert watching.leftovers(within_s=30) == []
