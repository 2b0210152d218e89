"""`rayflink run --restore latest`: start a stored job from its newest checkpoint, without its program at hand."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import replace

from rayflink.actors.ray_cluster import list_jobs
from rayflink.actors.recovery_path import storage_options
from rayflink.actors.submission import Stored, kept
from rayflink.actors.user_code import unpack
from rayflink.common import options
from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError, JobExecutionError
from rayflink.common.python_files import put_on_path, unpacked
from rayflink.graph.job_graph import JobGraph

from .script import INTERRUPTED, OK, USAGE

_ID = re.compile(r"[0-9a-f]{32}")


def run_stored(chosen: argparse.Namespace, given: Configuration, around: Configuration) -> int:
    """Start the stored job that is meant, and wait for its end; returns the exit code.

    Args:
        given: options of the command line, which win over those of the stored job.
        around: these, and those of the options file and the environment.
    """
    from rayflink import launch
    from rayflink.common.errors import JobCancelled

    words = [*chosen.script, *chosen.script_arguments]
    if chosen.module is not None or len(words) != 1:
        problem = "--restore latest takes one word: the id of a job, or the folder of its checkpoints"
        print(f"rayflink: {problem}; the program is stored there", file=sys.stderr)
        return USAGE
    graph = stored_graph(words[0], chosen.checkpoint_dir, around)
    configuration = Configuration.from_dict({**graph.configuration, **given.to_dict()})
    _must_not_run(graph, configuration)
    print(f"job {graph.name!r} ({graph.id}) goes on from its newest checkpoint", file=sys.stderr)
    job = launch.submit(graph, configuration)
    if not configuration.get(options.ATTACHED, True):
        job.detach()
        return OK
    try:
        job.get_job_execution_result().result()
    except JobCancelled as error:
        print(f"rayflink: {error}", file=sys.stderr)
        return INTERRUPTED
    return OK


def stored_graph(what: str, folder: str | None, configuration: Configuration) -> JobGraph:
    """The stored job.

    Args:
        what: its id, or the folder of its checkpoints, or that of one of them.
        folder: directory of checkpoints (or of high availability) in which the id is looked for; None: as the options
            say.

    Raises:
        ConfigError: nobody says where it is stored.
        JobExecutionError: it is not stored there, or by another Python.
        StorageError, DamagedFileError, VersionMismatch: it cannot be read.
    """
    how = storage_options(configuration.to_dict())
    if not _ID.fullmatch(what):
        url = re.sub(r"/chk-\d+(/_metadata)?$", "", what.rstrip("/"))
        stored = Stored(url, how)
    else:
        above = folder or configuration.get(options.HA_STORAGE_DIR) or configuration.get(options.CHECKPOINT_DIRECTORY)
        if not above:
            remedy = "give it by --checkpoint-dir, or name the folder of the job's checkpoints in place of its id"
            raise ConfigError(options.CHECKPOINT_DIRECTORY.key, "nothing", "the directory of checkpoints", remedy)
        stored = Stored(f"{above.rstrip('/')}/{what}", how)
    submission = kept(stored.open(), stored.url.rpartition("/")[2])
    if not submission.modules:
        graph: JobGraph = unpack(submission.program)
        return graph
    folder = unpacked(submission.modules)
    put_on_path([folder])
    graph = unpack(submission.program)
    return replace(graph, configuration={**graph.configuration, options.PYTHON_FILES.key: folder})


def _must_not_run(graph: JobGraph, configuration: Configuration) -> None:
    """Ask the cluster at hand; a coordinator elsewhere is fenced when the job begins here.

    Raises:
        JobExecutionError: it runs there.
    """
    target = configuration.get(options.TARGET)
    if target is not None and target.name == "LOCAL":
        return
    for job in list_jobs(configuration.get(options.RAY_NAMESPACE)):
        if job["jid"] == graph.id:
            reason = f"is on this cluster already ({job['state']})"
            raise JobExecutionError(graph.id, reason, f"wait for it, or end it first: rayflink cancel {graph.id[:8]}")


__all__ = ["run_stored", "stored_graph"]
