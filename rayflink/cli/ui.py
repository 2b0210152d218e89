"""`rayflink ui`: the dashboard, of the cluster that runs, or of the jobs on Ray where there is no dispatcher."""

from __future__ import annotations

import argparse
import signal
import tempfile
import threading
import webbrowser

from rayflink.actors.on_ray.driver.ray_services import RayService
from rayflink.cluster.ray_cluster import ray_cluster
from rayflink.common.options import registry as options

from .cluster import BACKGROUND, SERVICE
from .given_options import configuration_of
from .script import OK

__all__ = ["ui"]


def ui(chosen: argparse.Namespace) -> int:
    """Open the dashboard in a browser, and return the exit code.

    Where no cluster was started here, this process serves the page of the jobs on Ray until Ctrl-C.
    """
    running = BACKGROUND.running()
    if running is not None:
        _open(running.url, chosen)
        return OK
    configuration = configuration_of(chosen).set(options.REST_PORT, chosen.port)
    RayService(SERVICE, configuration.get(options.RAY_NAMESPACE)).join()
    with tempfile.TemporaryDirectory(prefix="rayflink-ui-") as folder:
        cluster = ray_cluster(configuration, folder)
        stopped = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())
        cluster.start()
        _open(cluster.url, chosen)
        stopped.wait()
        cluster.stop()
    return OK


def _open(url: str, chosen: argparse.Namespace) -> None:
    print(f"the dashboard is at {url}", flush=True)
    if not chosen.no_browser:
        webbrowser.open(url)
