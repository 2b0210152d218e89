"""The golden jobs give their answers on Ray actors; those of `test_two_nodes` do so there."""

from __future__ import annotations

import pytest

from rayflink.actors.on_ray.driver.ray_cluster import RayJob, RayOptions
from tests.cluster import watching
from tests.cluster.test_two_nodes import SPREAD_OUT
from tests.golden_jobs import GOLDEN_JOBS, GoldenJob

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]


PACKED = [golden for golden in GOLDEN_JOBS if golden.name not in SPREAD_OUT]
IN_EVERY_RUN = {"side outputs", "collatz", "cancelled midway"}
"""The simulator and one process run all jobs each time; on Ray the others are long together."""


@pytest.mark.parametrize("golden", [
    pytest.param(golden, id=golden.name.replace(" ", "_"), marks=[pytest.mark.soak] * (golden.name not in IN_EVERY_RUN))
    for golden in PACKED
])  # fmt: skip
def test_gives_its_answer_on_ray(golden: GoldenJob):
    job = RayJob(golden.graph(), RayOptions(slot_cpus=0.25))
    if golden.cancelled_midway:
        watching.eventually(lambda: any(v["numRecordsIn"] for v in job.status()["vertices"]), within_s=30)
        job.cancel()
    golden.check(job.wait())
