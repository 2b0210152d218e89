"""`rayflink restart`: start a job of a session cluster again, by the program that the cluster has stored."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any

from rayflink.common.options import registry as options
from rayflink.launch.cluster_client import ClusterClient, ClusterRequest, ClusterUnreachable, RequestRefused
from rayflink.state.storage.storage_schemes import from_root

from .given_options import configuration_of, of_command_line
from .jobs import one_job
from .render import printable
from .script import FAILED, OK, USAGE

__all__ = ["restart"]

LOOK_EVERY_S = 0.3
MOST_ASKED = 5
"""Dispatchers that are asked for the same new start."""
_OF_CLIENT = ("execution.target", "rest.", "security.ssl.", "rayflink.ray.")
"""The beginnings of the keys of options by which the command finds the cluster."""


def restart(chosen: argparse.Namespace) -> int:
    """Start a job again, wait until that is done, print the id of the new job, and return the exit code."""
    configuration = configuration_of(chosen)
    if configuration.get(options.TARGET) is not options.Target.REMOTE:
        remedy = "use -D execution.target=remote; without a cluster, `rayflink run --restore latest` or run it with -s"
        print(f"rayflink: a session cluster stores programs, and no other place does: {remedy}", file=sys.stderr)
        return USAGE
    job_status = one_job(chosen, ended=True)
    if job_status is None:
        return FAILED
    client = ClusterClient.of(configuration)
    try:
        outcome = _outcome(client, f"/rayflink/jobs/{job_status['jid']}/restart", _body(chosen))
    finally:
        client.close()
    if failure := outcome.get("failure-cause"):
        print(f"rayflink: {_reason(failure)}", file=sys.stderr)
        return FAILED
    start_from = outcome["start-from"] or "nothing"
    print(f"{printable(job_status['name'])}  {outcome['jobid']}  started from {start_from}")
    return OK


def _body(chosen: argparse.Namespace) -> dict[str, Any]:
    path = chosen.from_savepoint
    different = of_command_line(chosen).to_dict()
    return {
        "jobId": os.urandom(16).hex(),
        "startFrom": "NOTHING" if chosen.from_nothing else "NEWEST" if path is None else "PATH",
        "savepointPath": "" if path is None else from_root(path),
        "allowNonRestoredState": chosen.allow_non_restored_state,
        "parallelism": dict(chosen.wanted),
        "configuration": {key: str(value) for key, value in different.items() if not key.startswith(_OF_CLIENT)},
    }


def _outcome(client: ClusterClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Ask for a new start, and wait for its outcome; a dispatcher that has come meanwhile is asked for the same."""
    ask = ClusterRequest("POST", path, body=json.dumps(body).encode())
    for _ in range(MOST_ASKED):
        request_id = client.document(ask)["request-id"]
        try:
            return _awaited(client, f"{path}/{request_id}")
        except RequestRefused as error:
            if error.status != 404:
                raise
    raise ClusterUnreachable(client.url, "its dispatcher is replaced again and again", "look for the job in its list")


def _awaited(client: ClusterClient, path: str) -> dict[str, Any]:
    """Return the outcome of a request. Raises: `RequestRefused`: with 404 where the dispatcher does not know of it."""
    while True:
        answer = client.document(ClusterRequest("GET", path))
        if answer["status"]["id"] == "COMPLETED":
            outcome: dict[str, Any] = answer["operation"]
            return outcome
        time.sleep(LOOK_EVERY_S)


def _reason(failure: dict[str, Any]) -> str:
    """Return the words of a failure, without the class of its exception."""
    first = str(failure["stack-trace"]).splitlines()[0]
    return first.removeprefix(f"{failure['class']}: ")
