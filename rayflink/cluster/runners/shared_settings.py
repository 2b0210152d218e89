"""The settings of a process that is shared by the coordinators of several jobs of a session cluster."""

from __future__ import annotations

from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options
from rayflink.common.options.log_levels import LogLevels
from rayflink.launch.remote_submission import RemoteSubmission

__all__ = ["shared_settings"]


def shared_settings(submission: RemoteSubmission) -> str | None:
    """Return the settings of a process that may be that of several coordinators; None: the job has its own process.

    Its own has a job whose client follows it, and may keep it waiting, and one that has classes of its script, of which
    a process can have one of each name.
    """
    config = {**submission.submission.defaults, **submission.description["configuration"]}
    get = Configuration.from_dict(config).get
    is_followed = submission.submission.owner_timeout_ms is not None
    if is_followed or submission.has_classes or not get(options.SHARE_COORDINATORS):
        return None
    return repr(LogLevels.of(config))
