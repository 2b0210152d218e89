"""A job as it was at one moment, as one JSON object: what stays of it when it has ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rayflink.actors.job.job_document import job_document

from .cluster_job import Document, JobView

__all__ = ["JobSnapshot"]


class JobSnapshot:
    """A `JobView` over one JSON object, in the form of `job_document`.

    Args:
        document: of the job.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document

    @classmethod
    def of(cls, view: JobView) -> JobSnapshot:
        """Read everything of a job that can be read, at once.

        Raises: what the view raises.
        """
        read = job_document(view.status(), view.description(), view.checkpoints, view.accumulators())
        snapshot: dict[str, Any] = json.loads(json.dumps(read, default=str))
        return cls(snapshot)

    @property
    def job_id(self) -> str:
        """Return the job's id: 32 hex digits."""
        return str(self.document["status"]["jid"])

    @property
    def state(self) -> str:
        """Return the state in which the job was."""
        return str(self.document["status"]["state"])

    @property
    def ended_ms(self) -> int:
        """Return when the job came into its state, epoch milliseconds."""
        return int(self.document["status"]["timestamps"].get(self.state, 0))

    def status(self) -> Document:
        document: Document = self.document["status"]
        return document

    def description(self) -> Document:
        document: Document = self.document["description"]
        return document

    def checkpoints(self, checkpoint_id: int | None = None) -> Document | None:
        if checkpoint_id is None:
            statistics: Document = self.document["checkpoints"]
            return statistics
        details: Mapping[str, Document] = self.document["details"]
        return details.get(str(checkpoint_id))

    def accumulators(self) -> Document:
        document: Document = self.document["accumulators"]
        return document
