"""Connects a driver to Ray: the cluster it has joined, the cluster that runs, else one of its own on this machine."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import sys
import time
from typing import Any

import ray
from ray._private.authentication.authentication_token_setup import ensure_token_if_auth_enabled
from ray._private.services import find_bootstrap_address
from ray._raylet import GcsClient  # type: ignore[attr-defined]
from ray.exceptions import AuthenticationError, RpcError

from rayflink.common.errors import ConfigError, RayCannotStart, described
from rayflink.common.metrics.live_table import is_terminal

from ..coordinators.find_coordinator import job_names

RECONNECT_S = 60.0
"""Ray ends a process whose cluster's control service is gone for so long (RAY_gcs_rpc_server_reconnect_timeout_s)."""
PATIENCE = 0.75
"""The part of that time after which the program gets an error, so that it ends with one of its own."""
PROBE_EVERY_S = 1.0
"""Seconds between two checks of the control service."""
PROBE_S = 2.0
"""An address that does not accept a connection by then is no running cluster."""
MOST_OBJECT_STORE_BYTES = 1 << 30
"""Shared memory of a Ray started here: exchanges are bounded by credit and need far less."""
LEAST_OBJECT_STORE_BYTES = 80 << 20
"""Ray takes no less than 75 MB."""
SYSTEM_CONFIG = {"event_stats": False}
"""Settings of Ray itself, in a Ray started here.

- event_stats: each process of Ray wakes up 100 times a second, and would count that for Ray's own developers.
"""
_TOKEN = (
    "the token of the cluster",
    "`ray get-auth-token` on its head node prints the token, which is read from RAY_AUTH_TOKEN, "
    "RAY_AUTH_TOKEN_PATH or ~/.ray/auth_token",
)
"""The remedy for a process without a valid token, and the places it is read from."""

_started_here = False


def connect(cpus: int, namespace: str) -> bool:
    """Join the running cluster, or start Ray here with at least `cpus` CPUs.

    Returns: whether Ray was started by this process and ends with it.
    Raises:
        ConfigError: RAY_ADDRESS names a cluster that does not answer, or a cluster refuses this process.
        RayCannotStart: Ray does not start on this machine.
    """
    global _started_here
    if ray.is_initialized():
        present = ray.cluster_resources().get("CPU", 0)  # type: ignore[no-untyped-call]
        if _started_here and present < cpus and not job_names(namespace) and not _holds_data(namespace):
            ray.shutdown()
        else:
            return _started_here
    if join(namespace):
        _started_here = False
        return False
    if is_terminal(sys.stderr):
        print("rayflink: no cluster runs; a Ray starts on this machine, which takes a while", file=sys.stderr)
    try:
        _init(
            namespace,
            address="local",
            num_cpus=max(os.cpu_count() or 1, cpus),
            object_store_memory=object_store_bytes(),
            include_dashboard=False,
            _system_config=SYSTEM_CONFIG,
        )
    except Exception as error:  # whatever Ray, or the system it asks, says
        ray.shutdown()
        raise RayCannotStart(described(error)) from error
    _started_here = True
    return True


def join(namespace: str) -> bool:
    """Join the cluster that $RAY_ADDRESS or `ray start` on this machine names; False when there is none.

    With a cluster found on this machine, Ray takes a token that is there for granted; with an address it wants
    RAY_AUTH_MODE=token said, and so does this: a token is not sent wherever an address points.

    Raises:
        ConfigError: RAY_ADDRESS names a cluster that does not answer, or the cluster refuses this process.
    """
    if ray.is_initialized():
        return True
    named = os.environ.get("RAY_ADDRESS", "")
    if named == "local":
        return False
    address = started_cluster() if named in ("", "auto") else named
    if address is None:
        return False
    if "://" not in address and not answers(address):
        if named in ("", "auto"):
            return False  # the file of a cluster that crashed
        raise _no_cluster(f"{address}, where nothing answers")
    if "://" not in address and named not in ("", "auto") and not admitted(address):
        raise _no_cluster(f"{address}, where something else than Ray answers")
    try:
        _init(namespace)
    except ConnectionError as error:
        if named not in ("", "auto"):
            raise _no_cluster(f"{address} ({error})") from error
        admitted(address)
        return False
    return True


def join_address(address: str, namespace: str) -> None:
    """Join the cluster at host:port, in a process of another program that has not joined it yet."""
    if not ray.is_initialized():
        _init(namespace, address=address, configure_logging=False)


def admitted(address: str) -> bool:
    """Ask the cluster at host:port whether it admits this process; False when no control service of Ray answers.

    Where a token is missing or wrong, `ray.init` would try for 20 s and then name no cause.

    Raises:
        ConfigError: it wants a token, and this process sends none, or another.
    """
    mode = os.environ.get("RAY_AUTH_MODE", "")
    try:
        ensure_token_if_auth_enabled(create_token_if_missing=False)  # first: a client without its token aborts
    except AuthenticationError as error:
        raise ConfigError("RAY_AUTH_TOKEN", "no token, with RAY_AUTH_MODE=token", *_TOKEN) from error
    try:
        GcsClient(address=address)
    except AuthenticationError as error:
        if mode.lower() == "token":
            raise ConfigError("RAY_AUTH_TOKEN", f"a token that the cluster at {address} refuses", *_TOKEN) from error
        value = f"{mode or 'no value'}, but the cluster at {address} requires its token"
        remedy = f"export RAY_AUTH_MODE=token; {_TOKEN[1]}"
        raise ConfigError("RAY_AUTH_MODE", value, "token", remedy) from error
    except RpcError:
        return False
    return True


def started_cluster() -> str | None:
    """Return host:port of the cluster that `ray start` began on this machine last; it may have crashed since."""
    address: str | None = find_bootstrap_address(None)
    return address


def answers(address: str) -> bool:
    """Return whether something accepts connections at host:port."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PROBE_S).close()
    except (OSError, ValueError):
        return False
    return True


class ControlService:
    """Watches the control service (GCS) of the cluster that this process has joined.

    When it is lost, errors that end this process are printed without Ray's help.

    Args:
        address: its host:port.
        patience_s: it may be gone for so long; a head node may come back.
    """

    def __init__(self, address: str, patience_s: float) -> None:
        self.address, self._patience_s = address, patience_s
        self._seen = self._looked = time.monotonic()

    @classmethod
    def joined(cls) -> ControlService:
        """Return the control service of the cluster that this process has joined."""
        reconnect_s = float(os.environ.get("RAY_gcs_rpc_server_reconnect_timeout_s", RECONNECT_S))
        return cls(ray.get_runtime_context().gcs_address, PATIENCE * reconnect_s)

    def lost_for_s(self) -> float | None:
        """Return the seconds for which it has been gone, once that is longer than patience allows; None before."""
        now = time.monotonic()
        if now - self._looked < PROBE_EVERY_S:
            return None
        self._looked = now
        if answers(self.address):
            self._seen = now
            return None
        gone_s = now - self._seen
        if gone_s <= self._patience_s:
            return None
        if sys.excepthook.__module__.startswith("ray."):  # it asks the service before it prints the error
            sys.excepthook = sys.__excepthook__
        return gone_s


def object_store_bytes() -> int:
    """Return the bytes of a local Ray's object store: a fifth of the memory, at most 1 GiB and the free /dev/shm."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 8 << 30
    shared = shutil.disk_usage("/dev/shm").free * 9 // 10 if os.path.isdir("/dev/shm") else MOST_OBJECT_STORE_BYTES
    return max(LEAST_OBJECT_STORE_BYTES, min(MOST_OBJECT_STORE_BYTES, memory // 5, shared))


def _holds_data(namespace: str) -> bool:
    """Return whether there are cached results, DataFrames, or a Spark session, which has a namespace of its own."""
    named = ray.util.list_named_actors(all_namespaces=True)
    names = [a["name"] for a in named if a["namespace"] == namespace or a["name"].endswith("_SPARK_MASTER")]
    return any(name.endswith(("/cache", "_SPARK_MASTER")) or "/frames/" in name for name in names)


def _no_cluster(value: str) -> ConfigError:
    remedy = "start that cluster, or unset RAY_ADDRESS to run on this machine"
    return ConfigError("RAY_ADDRESS", value, "the address of a running cluster", remedy)


def _init(namespace: str, **how: Any) -> None:
    """Call `ray.init` quietly: only its errors, and the exceptions it raises, reach the terminal.

    Output of workers is not forwarded by Ray: what tasks print comes with the job's news, without Ray's prefix.
    """
    logger = logging.getLogger("ray")
    before = logger.level
    try:
        ray.init(namespace=namespace, log_to_driver=False, logging_level=logging.ERROR, **how)
    finally:
        logger.setLevel(before if before > logging.NOTSET else logging.WARNING)
