"""Jobs that programs have started by themselves: seen while they run, and remembered when they are gone.

Statuses of all jobs that run enter; those that have ended leave, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rayflink.actors.job.notes.job_archive import JobArchive

from ..jobs.cluster_job import Document
from ..runners.runner import Runner
from .job_documents import is_over, last_of_job
from .job_ends import archive_of_ended

__all__ = ["ForeignJobs"]


class ForeignJobs:
    """The jobs that run on a cluster without having been submitted to its dispatcher.

    They are shown and can be asked, and are not brought back: the dispatcher does not have their programs.

    Args:
        runner: of the cluster.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._statuses: dict[str, Document] = {}
        """The last status of each, by id."""

    def look(self, statuses: Mapping[str, Document], is_own: Callable[[str], bool]) -> Iterator[JobArchive]:
        """Remember the newest statuses, and yield the jobs that have ended since the last look.

        Args:
            statuses: of all jobs that run, by id.
            is_own: whether a job, by its id, was submitted to the dispatcher, or the dispatcher knows its end.
        """
        self._statuses |= {job_id: status for job_id, status in statuses.items() if not is_own(job_id)}
        for job_id, last in list(self._statuses.items()):
            if job_id in statuses and not is_over(statuses[job_id]):
                continue
            started = self._runner.find(job_id)
            if started is not None:
                archive = archive_of_ended(started)
            else:
                archive = last_of_job(self._runner.recorded(job_id) or last)
            if archive is not None:
                del self._statuses[job_id]
                yield archive
