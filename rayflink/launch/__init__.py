"""The place where a job graph meets a runner, and where front ends and commands get the clients of jobs.

`submission` chooses the runner; `local_job`, `ray_jobs` and `remote_job` are the clients of the three, the last of them
through a `cluster_client` of the dispatcher at a `cluster_address`; `background_server` reads which one was started on
this machine. `cluster_jobs` finds the jobs of other processes; `frames` has the stores of DataFrames.

A job graph and its configuration enter; a client of the job leaves. How a job runs is not decided here, but in
`rayflink.actors`; what a program writes is in `rayflink.datastream`.
"""

from rayflink.actors.job.job_outcome import raise_if_failed

from .cluster_jobs import JobLog, attach, job_log, list_jobs, published_jobs, recorded_jobs
from .frames import dataset_source, frame_store, ray_dataset, reaches_frames
from .local_job import LocalJobClient
from .ray_jobs import AttachedJobClient, RayJobClient
from .remote_job import AttachedRemoteJob, RemoteJobClient
from .submission import KeptResult, submit
from .submitted_job import SubmittedJob

__all__ = [
    "AttachedJobClient",
    "AttachedRemoteJob",
    "JobLog",
    "KeptResult",
    "LocalJobClient",
    "RayJobClient",
    "RemoteJobClient",
    "SubmittedJob",
    "attach",
    "dataset_source",
    "frame_store",
    "job_log",
    "list_jobs",
    "published_jobs",
    "raise_if_failed",
    "ray_dataset",
    "reaches_frames",
    "recorded_jobs",
    "submit",
]
