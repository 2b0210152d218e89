"""One Ray of two nodes and one Spark on it for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.cluster import watching
from tests.cluster.conftest import two_nodes
from tests.spark.lake_jars import lake_configs

RUNNING = pytest.StashKey[dict[str, Any]]()
CPUS = 3
"""Of each node: one for an executor, the others for streams."""


@pytest.fixture
def running_spark(request: pytest.FixtureRequest) -> Any:
    """The Spark of the folder; it starts with the first test that asks and ends with the last of the folder."""
    pytest.importorskip("pyspark")
    pytest.importorskip("raydp")
    from rayflink.spark import spark_session

    folder = request.node.getparent(pytest.Directory)
    if RUNNING not in folder.stash:
        with ExitStack() as starting:
            address = starting.enter_context(two_nodes(CPUS))
            with_lakes = any("lake_spark" in getattr(item, "fixturenames", ()) for item in request.session.items)
            configs = lake_configs() if with_lakes else {}  # Spark starts more slowly with them
            options = {"num_executors": 2, "executor_memory": "600m", "configs": configs}
            spark = starting.enter_context(spark_session("tests", **options))
            folder.stash[RUNNING] = {"spark": spark, "address": address}
            starting.callback(folder.stash.__delitem__, RUNNING)
            folder.addfinalizer(starting.pop_all().close)
    return folder.stash[RUNNING]["spark"]


@pytest.fixture
def spark(running_spark: Any) -> Iterator[Any]:
    """The running Spark; at the end nothing of a job may be left on its Ray but what Spark itself takes."""
    yield running_spark
    assert watching.eventually(lambda: not watching.actors(), within_s=30) or watching.actors() == []
