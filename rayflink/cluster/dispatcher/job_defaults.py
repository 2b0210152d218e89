"""Options of a cluster that hold for its jobs where they say nothing themselves, as with Flink.

They are added when a job is accepted and stored with it, so that it finds its checkpoints wherever it is brought back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rayflink.actors.job.submission import Stored
from rayflink.common.options import registry as options
from rayflink.common.text_output.masked import MASK, shown_value
from rayflink.launch.remote_submission import RemoteSubmission

__all__ = ["job_defaults", "with_defaults"]

PREFIXES = (
    "execution.checkpointing.", "state.", "restart-strategy", "s3.", "fs.", "gs.", "azure.", "io.tmp.dirs",
    "job.autoscaler.", "scheduler-mode", "slot.", "taskmanager.", "metrics.", "traces.", "task.cancellation.",
    "pekko.ask.timeout", "heartbeat.", "rayflink.log.", "rayflink.slot.", "rayflink.ray.slot",
)  # fmt: skip
"""The beginnings of the keys of such options. Those that a front end reads when it compiles a program are not there."""


def job_defaults(configuration: Mapping[str, object]) -> dict[str, str]:
    """Return the options of a cluster that hold for its jobs.

    >>> job_defaults({"execution.checkpointing.dir": "s3://bucket", "rest.port": 8081, "parallelism.default": 2})
    {'execution.checkpointing.dir': 's3://bucket'}
    """
    return {key: str(value) for key, value in configuration.items() if key.startswith(PREFIXES)}


def with_defaults(submission: RemoteSubmission, defaults: Mapping[str, str]) -> RemoteSubmission:
    """Return the submission with the options that it lacks, and the place where it stores its checkpoints then.

    Args:
        submission: of a client.
        defaults: option key -> value.
    """
    canonical = {name: option.key for option in options.all_options() for name in (option.key, *option.fallback_keys)}
    chosen = dict(submission.description.get("configuration", {}))
    present = {canonical.get(key, key) for key in chosen}
    lacking = {key: value for key, value in defaults.items() if canonical.get(key, key) not in present}
    if not lacking:
        return submission
    known = {**lacking, **{key: value for key, value in chosen.items() if MASK not in str(value)}}
    is_batch = submission.description.get("mode") == "BATCH"
    stored = submission.stored or Stored.of_options(submission.job_id, known, is_batch)
    shown = {**{key: shown_value(key, value) for key, value in lacking.items()}, **chosen}
    description = {**submission.description, "configuration": dict(sorted(shown.items()))}
    inner = replace(submission.submission, defaults={**submission.submission.defaults, **lacking})
    return replace(submission, stored=stored, description=description, submission=inner)
