"""Examples run as scripts of their own on a running Ray print what their docstrings state."""

from __future__ import annotations

import os
import signal

import pytest

from tests.cluster import watching
from tests.table.test_sql_page import TUTORIAL
from tests.test_examples import run_example, stated_output
from tests.test_site import DEPLOY, ON_A_CLUSTER, QUICK_START, WITH_RAY, check_session

ON_RAY = ["exactly_once", "socket_words"]
MORE = ["async_enrichment", "broadcast_rules", "connected_streams", "sessionisation"]
"""Examples that are run without Ray in each run."""
pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]


@pytest.mark.parametrize("name", [*ON_RAY, *(pytest.param(name, marks=pytest.mark.soak) for name in MORE)])
def test_an_example_prints_on_ray_what_its_docstring_states(name, tmp_path):
    assert run_example(f"{name}.py", "--ray", cwd=tmp_path) == stated_output(name)


def test_the_quick_start_prints_on_ray_what_stands_in_it(tmp_path):
    assert check_session(tmp_path, QUICK_START, WITH_RAY) >= 1


@pytest.mark.timeout(300)  # seven commands, each a process that joins the cluster
def test_the_page_on_deployment_prints_on_a_cluster_what_stands_in_it(tmp_path):
    try:
        assert check_session(tmp_path, DEPLOY, ON_A_CLUSTER) >= 7
    finally:
        for actor in watching.actors():
            os.kill(actor["Pid"], signal.SIGKILL)  # a coordinator would keep the result for a minute


@pytest.mark.soak
def test_the_sql_tutorial_prints_on_ray_what_stands_in_it(tmp_path):
    try:
        assert check_session(tmp_path, TUTORIAL, WITH_RAY) >= 6
    finally:
        for actor in watching.actors():
            os.kill(actor["Pid"], signal.SIGKILL)  # a coordinator would keep the result for a minute
