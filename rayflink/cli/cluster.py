"""`rayflink cluster`: the dispatcher of a session cluster, in this process, in the background, or on Ray."""

from __future__ import annotations

import argparse
import json
import secrets
import signal
import sys
import threading
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rayflink.actors.local.local_runs import apply_log_levels
from rayflink.actors.on_ray.driver.ray_services import RayService
from rayflink.cluster.cluster_server import ClusterServer, local_cluster, registry_address, server_settings
from rayflink.cluster.ray_cluster import ray_cluster
from rayflink.cluster.registry.job_registry import JobRegistry
from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options
from rayflink.common.options.store_options import storage_options
from rayflink.launch.background_server import BackgroundServer, own_server, state_folder
from rayflink.state.storage.storage_schemes import open_storage
from rayflink.version import __version__

from .background import Background, write_private
from .cluster_requests import ask
from .cluster_upgrade import JobUpgrade, JobUpgrades, show_upgrades
from .given_options import configuration_of, of_command_line
from .render import printable
from .script import FAILED, OK

BACKGROUND = Background("cluster", "cluster")
SERVICE = "rayflink/dispatcher"
"""The name of the dispatcher among the actors of a Ray cluster."""
RECOVERED_S = 300.0
"""Seconds that `recover` waits until all jobs run."""
CANCELLED_S = 120.0
"""Seconds that `stop --cancel-jobs` waits until all jobs have ended."""
LOOK_S = 0.5
_OVER = ("FINISHED", "CANCELED", "FAILED")


def run(chosen: argparse.Namespace) -> int:
    """Run the dispatcher in this process until SIGTERM, Ctrl-C or DELETE /cluster, and return the exit code."""
    configuration = _with_registry(configuration_of(chosen), chosen.local)
    level = configuration.get(options.LOG_LEVEL) or "INFO"
    apply_log_levels({**configuration.to_dict(), options.LOG_LEVEL.key: level})
    cluster = _cluster(configuration, chosen.local)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    cluster.start()
    if chosen.state_file:
        write_private(Path(chosen.state_file), json.dumps(asdict(own_server(cluster.url, cluster.token))))
    print(f"cluster listens on {cluster.url}", flush=True)
    while not stopped.wait(LOOK_S) and not cluster.shut_down.is_set():
        pass
    cluster.stop()
    if cluster.dispatcher.fenced is not None:
        print(f"rayflink: {cluster.dispatcher.fenced}", file=sys.stderr)
        return FAILED
    print("cluster stopped", flush=True)
    return OK


def start(chosen: argparse.Namespace) -> int:
    """Start the dispatcher in the background, or on the Ray cluster, and return the exit code, once it listens."""
    started = _start(chosen)
    if started is None:
        return FAILED
    where = "as an actor of the Ray cluster" if not started.pid else f"in process {started.pid}"
    print(f"cluster listens on {started.url}, {where}")
    print("submit jobs to it with: rayflink run -D execution.target=remote JOB.py")
    print("see them in a browser with: rayflink ui")
    return OK


def recover(chosen: argparse.Namespace) -> int:
    """Start the dispatcher on another cluster, wait until every job of the registry runs again, and show them.

    Returns: the exit code: 1 where a job does not come back.
    """
    configuration = _with_registry(configuration_of(chosen), chosen.local)
    where = str(registry_address(configuration))
    registry = JobRegistry(open_storage(where, storage_options(configuration.to_dict())))
    due = [entry.job_id for entry in registry.entries() if entry.is_due]
    wanted = {job.job_id: job.name for job in registry.accepted(due)}
    if not wanted:
        print(f"rayflink: the registry in {where} has no job that has not ended; nothing to recover", file=sys.stderr)
        return FAILED
    started = _start(chosen)
    if started is None:
        return FAILED
    until = time.monotonic() + RECOVERED_S
    while True:
        states = {job["jid"]: str(job["state"]) for job in _jobs(started)}
        late = [job_id for job_id in wanted if states.get(job_id) not in ("RUNNING", *_OVER)]
        if not late or time.monotonic() > until:
            break
        time.sleep(LOOK_S)
    for job_id, name in wanted.items():
        print(f"{job_id}  {states.get(job_id, 'MISSING')}  {printable(name)}")
    failed = [job_id for job_id in wanted if states.get(job_id) in (None, "FAILED")]
    if late or failed:
        print(f"rayflink: {len(set(late) | set(failed))} of {len(wanted)} jobs have not come back", file=sys.stderr)
        return FAILED
    print(f"{len(wanted)} jobs have come back; the cluster listens on {started.url}")
    return OK


def upgrade(chosen: argparse.Namespace) -> int:
    """Let the dispatcher, then each job, go on with the version that is installed now, and show what became of them.

    The dispatcher is replaced while the jobs run. Each job takes a savepoint and goes on from there in new processes;
    one that cannot goes on as it was. A command that was interrupted can be given again.

    Returns: the exit code: 1 where a job was not upgraded.
    """
    running = BACKGROUND.running()
    if running is None:
        print("rayflink: no cluster was started here; `rayflink cluster start` starts one", file=sys.stderr)
        return FAILED
    if chosen.dry_run:
        return _would_upgrade(JobUpgrades(running), chosen.local)
    same = [f"{options.REST_TOKEN.key}={running.token}", f"{options.REST_PORT.key}={urlsplit(running.url).port}"]
    chosen.options = [*same, *chosen.options]
    started = _replace(running, chosen)
    if started is None:
        return FAILED
    upgrades = JobUpgrades(started)
    jobs = upgrades.jobs()
    if chosen.local:
        print(f"dispatcher and jobs run rayflink {__version__} at {started.url}: {len(jobs)} jobs")
        return OK if show_upgrades(map(upgrades.of_process, jobs), "have begun anew") else FAILED
    print(f"the dispatcher runs rayflink {__version__} at {started.url}; {len(jobs)} jobs follow", flush=True)
    done: list[JobUpgrade] = []
    try:
        for job in jobs:
            done.append(upgrades.renew(job))
            print(f"{done[-1].job_id}  {printable(done[-1].name)}  {done[-1].outcome}", file=sys.stderr)
    finally:  # Ctrl-C too
        is_whole = show_upgrades(done, "were not upgraded")
    return OK if is_whole else FAILED


def _would_upgrade(upgrades: JobUpgrades, is_local: bool) -> int:
    """Show what `upgrade` would do; the exit code is 1 where a job would not be upgraded."""
    print(f"the dispatcher would be replaced by one of rayflink {__version__}, and nothing is done now")
    what, of_left = upgrades.would_renew, "would not be upgraded"
    if is_local:
        what, of_left = upgrades.of_process, "would begin anew"
    return OK if show_upgrades(map(what, upgrades.jobs()), of_left) else FAILED


def _replace(running: BackgroundServer, chosen: argparse.Namespace) -> BackgroundServer | None:
    """Stop the dispatcher and start another; where that fails on Ray, its address and token stay for another try."""
    started = None
    try:
        if _stop(running, chosen):
            started = _start(chosen)
    finally:
        if started is None and not running.pid and BACKGROUND.running() is None:
            BACKGROUND.note(running)
    return started


def stop(chosen: argparse.Namespace) -> int:
    """Stop the dispatcher, and return the exit code.

    Jobs on Ray go on; those in the dispatcher's own process come back with the next one that has its registry.
    """
    running = BACKGROUND.running()
    if running is None:
        print("rayflink: no cluster was started here; `rayflink cluster start` starts one", file=sys.stderr)
        return FAILED
    if chosen.cancel_jobs and not _cancel_all(running):
        return FAILED
    if not _stop(running, chosen):
        return FAILED
    print("cluster stopped")
    return OK


def _cancel_all(server: BackgroundServer) -> bool:
    """Cancel all jobs, wait until they have ended, and return whether they have; one that has not would come back."""
    jobs = {job["jid"]: printable(job["name"]) for job in _jobs(server) if job["state"] not in _OVER}
    for job_id in jobs:
        ask(server, "PATCH", f"/jobs/{job_id}?mode=cancel")
    until = time.monotonic() + CANCELLED_S
    while jobs:
        states = {job["jid"]: str(job["state"]) for job in _jobs(server)}
        for job_id in [job_id for job_id in jobs if states.get(job_id, _OVER[0]) in _OVER]:
            print(f"{job_id}  {states.get(job_id, 'ended')}  {jobs.pop(job_id)}")
        if jobs and time.monotonic() > until:
            running = ", ".join(f"{name} ({job_id})" for job_id, name in jobs.items())
            print(f"rayflink: the cluster goes on, as jobs have not ended yet: {running}; try again", file=sys.stderr)
            return False
        if jobs:
            time.sleep(LOOK_S)
    return True


def status(chosen: argparse.Namespace) -> int:
    """Show the cluster that was started here, and return the exit code: 0 where it answers."""
    running = BACKGROUND.running()
    if running is None:
        print("no cluster was started here")
        return FAILED
    print(f"cluster listens on {running.url}")
    states = Counter(str(job["state"]) for job in _jobs(running))
    for state, number in sorted(states.items()):
        print(f"  {state}: {number}")
    return OK


def _stop(running: BackgroundServer, chosen: argparse.Namespace) -> bool:
    if not running.pid and not RayService(SERVICE, _namespace(chosen)).stop():
        print("rayflink: the dispatcher has ended already", file=sys.stderr)
    return BACKGROUND.stop(running)


def _start(chosen: argparse.Namespace) -> BackgroundServer | None:
    configuration = _with_registry(configuration_of(chosen), chosen.local)
    if configuration.get(options.REST_TOKEN) is None:
        configuration.set(options.REST_TOKEN, secrets.token_urlsafe(32))
    token = str(configuration.get(options.REST_TOKEN))
    server_settings(configuration, token)  # reports what is wrong here and not in a log
    if (running := BACKGROUND.running()) is not None:
        print(f"rayflink: a cluster listens on {running.url} already; stop it first", file=sys.stderr)
        return None
    if chosen.local:
        settings = {**of_command_line(chosen).to_dict(), options.REST_TOKEN.key: token}
        return BACKGROUND.start(["cluster", "run", "--local"], settings)
    service = RayService(SERVICE, configuration.get(options.RAY_NAMESPACE))
    url = service.start("rayflink.cluster.ray_cluster:service", configuration.to_dict())
    server = BackgroundServer(0, "", url, token)
    BACKGROUND.note(server)
    return server


def _cluster(configuration: Configuration, is_local: bool) -> ClusterServer:
    registry = str(registry_address(configuration))
    if is_local:
        return local_cluster(configuration, registry)
    RayService(SERVICE, configuration.get(options.RAY_NAMESPACE)).join()
    return ray_cluster(configuration, registry)


def _with_registry(configuration: Configuration, is_local: bool) -> Configuration:
    """Return the options with a place for the registry: on this machine, where they name none."""
    if registry_address(configuration) is None:
        folder = state_folder() / "clusters"
        configuration.set(options.HA_STORAGE_DIR, str(folder))
        if not is_local:
            remedy = f"set {options.HA_STORAGE_DIR.key} to a place that every node reaches"
            print(f"rayflink: jobs are registered in {folder}, on this machine alone; {remedy}", file=sys.stderr)
    return configuration


def _jobs(server: BackgroundServer) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = ask(server, "GET", "/rayflink/jobs")["jobs"]
    return jobs


def _namespace(chosen: argparse.Namespace) -> str:
    return str(configuration_of(chosen).get(options.RAY_NAMESPACE))


__all__ = ["recover", "run", "start", "status", "stop", "upgrade"]
