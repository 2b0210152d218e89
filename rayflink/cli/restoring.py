"""`rayflink run --restore latest`: start a stored job from its newest checkpoint, without its program at hand."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import replace

from rayflink import launch
from rayflink.actors.job.submission import Stored, read_submission
from rayflink.actors.on_ray.driver.user_program import unpack
from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError, DriverEnded, JobCancelled, JobExecutionError
from rayflink.common.options import registry as options
from rayflink.common.options.store_options import storage_options
from rayflink.common.user_code.python_files import IMPORT_REMEDY, check_python_file, put_on_path, unpacked
from rayflink.graph.job_graph import JobGraph
from rayflink.state.storage import ledger
from rayflink.state.storage.storage_schemes import from_root

from .script import INTERRUPTED, OK, USAGE

_ID = re.compile(r"[0-9a-f]{32}")


def run_stored(chosen: argparse.Namespace, overrides: Configuration, around: Configuration) -> int:
    """Start the stored job that is meant, wait for its end, and return the exit code.

    Args:
        overrides: options of the command line, which win over those of the stored job.
        around: these, and those of the options file and the environment.
    """
    words = [*chosen.script, *chosen.script_arguments]
    if chosen.module is not None or len(words) != 1:
        problem = "--restore latest takes one argument: the id of a job, or the folder of its checkpoints"
        print(f"rayflink: {problem}; the program is stored with them", file=sys.stderr)
        return USAGE
    idle = {"-p": chosen.parallelism, "-s": chosen.from_savepoint}
    for flag in (flag for flag, value in idle.items() if value is not None):
        problem = f"{flag} cannot be combined with --restore latest, which continues the job as it was"
        print(f"rayflink: {problem}; use `rayflink rescale`, or run the program with -s", file=sys.stderr)
        return USAGE
    graph = stored_graph(words[0], chosen.checkpoint_dir, around)
    overrides.remove_config(options.PYTHON_FILES.key)  # the stored job has them, beside its own
    graph = replace(graph, configuration={**graph.configuration, **overrides.to_dict()})
    configuration = Configuration.from_dict(graph.configuration)
    _must_not_run(graph, configuration)
    print(f"job {graph.name!r} ({graph.id}) continues from its newest checkpoint", file=sys.stderr)
    job = launch.submit(graph, configuration)
    if not configuration.get(options.ATTACHED, True):
        job.detach()
        return OK
    try:
        job.get_job_execution_result().result()
    except (JobCancelled, DriverEnded) as error:
        print(f"rayflink: {error}", file=sys.stderr)
        return INTERRUPTED
    return OK


def stored_graph(what: str, folder: str | None, configuration: Configuration) -> JobGraph:
    """Read the stored job.

    Args:
        what: its id, or the folder of its checkpoints, or that of one of them.
        folder: directory of checkpoints (or of high availability) in which the id is looked for; None: as the options
            say.

    Raises:
        ConfigError: no option says where it is stored.
        JobExecutionError: it is not stored there, or by another Python, or in a folder that does not bear its id, or a
            module that it imports is not here.
        StorageError, DamagedFileError, VersionMismatch: it cannot be read.
    """
    how = storage_options(configuration.to_dict())
    if not _ID.fullmatch(what):
        stored = Stored(from_root(re.sub(r"/chk-\d+(/_metadata)?$", "", what.rstrip("/"))), how)
    else:
        above = folder or configuration.get(options.HA_STORAGE_DIR) or configuration.get(options.CHECKPOINT_DIRECTORY)
        if not above:
            remedy = "give --checkpoint-dir, or the folder of the job's checkpoints instead of its id"
            raise ConfigError(options.CHECKPOINT_DIRECTORY.key, "nothing", "the directory of checkpoints", remedy)
        stored = Stored(f"{from_root(above).rstrip('/')}/{what}", how)
    storage = stored.open()
    directory, _, name = stored.url.rpartition("/")
    submission = read_submission(storage, name)
    files = [file.strip() for file in (configuration.get(options.PYTHON_FILES) or "").split(",") if file.strip()]
    files = [check_python_file(file) for file in files]
    if submission.modules:
        files.append(unpacked(submission.modules))
    put_on_path(files)
    graph = _unpacked(submission.program, name)
    extra_options = {options.PYTHON_FILES.key: ",".join(files)} if files else {}
    if storage.list(ledger.FOLDER):  # also where the folder was moved since
        if name != graph.id:
            raise JobExecutionError(graph.id, f"is stored in {stored.url}", "give that folder the job's id as its name")
        extra_options[options.CHECKPOINT_DIRECTORY.key] = directory
    return replace(graph, configuration={**graph.configuration, **extra_options})


def _unpacked(program: bytes, job_id: str) -> JobGraph:
    """Unpack the job of a stored program.

    Raises:
        JobExecutionError: a module of it is not here.
    """
    try:
        graph: JobGraph = unpack(program)
    except ModuleNotFoundError as error:
        reason = f"was stored without a module that its program imports: {error}"
        file = f"{(error.name or 'module').partition('.')[0]}.py"
        remedy = f"{IMPORT_REMEDY}: rayflink run --restore latest -D python.files={file} {job_id}"
        raise JobExecutionError(job_id, reason, remedy) from error
    return graph


def _must_not_run(graph: JobGraph, configuration: Configuration) -> None:
    """Check with the cluster at hand that the job does not run; a coordinator elsewhere is fenced when it begins here.

    Raises:
        JobExecutionError: it runs there.
    """
    target = configuration.get(options.TARGET)
    if target is not None and target.name == "LOCAL":
        return
    for job in launch.list_jobs(configuration):
        if job["jid"] == graph.id:
            reason = f"is on this cluster already ({job['state']})"
            raise JobExecutionError(graph.id, reason, f"wait for it, or end it first: rayflink cancel {graph.id[:8]}")


__all__ = ["run_stored", "stored_graph"]
