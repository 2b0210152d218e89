"""Operations of users on a session cluster that are under way when a part of it is killed."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.exactly_once.running import RoundFailed
from tests.exactly_once.session_cluster import SessionCluster, SubmittedLines

KINDS = ("nothing", "submission", "cancel", "savepoint", "rescale")
PAUSE_S = 0.5
"""Time between two attempts of a client, which repeats its request as ours do."""


@dataclass
class Meanwhile:
    """Begins operations, each in a thread, and says what came of them.

    Args:
        cluster: of the jobs.
        submit: returns another job and its bytes.
    """

    cluster: SessionCluster
    submit: Callable[[], tuple[SubmittedLines, bytes]]
    extra: list[SubmittedLines] = field(default_factory=list)
    """Jobs that were submitted by an operation, and not cancelled by another."""
    cancelled: set[str] = field(default_factory=set)
    _thread: threading.Thread | None = None
    _outcome: str = ""
    _wide: bool = False

    def begin(self, kind: str, job: SubmittedLines, folder: Path) -> None:
        """Begin an operation; a job is cancelled only if an operation has submitted it, else another is submitted.

        Args:
            job: for savepoints and rescales.
            folder: for savepoints.
        """
        self._outcome = kind
        if kind == "cancel" and not self.extra:
            kind = "submission"
        begin = {
            "nothing": lambda: None,
            "submission": self._submit,
            "cancel": self._cancel,
            "savepoint": lambda: self._ask(job, "savepoint", {"directory": str(folder), "stop": None}),
            "rescale": lambda: self._ask(job, "rescale", {"parallelism": {"running": self._next_parallelism()}}),
        }[kind]
        self._thread = threading.Thread(target=begin, name=kind, daemon=True)
        self._thread.start()

    def outcome(self, within_s: float) -> str:
        """Wait for the answer, and return what it was.

        Raises:
            RoundFailed: there is none.
        """
        assert self._thread is not None
        self._thread.join(within_s)
        if self._thread.is_alive():
            raise RoundFailed(f"{self._outcome} has had no answer for {within_s:.0f} s")
        return self._outcome

    def _next_parallelism(self) -> int:
        self._wide = not self._wide
        return 2 if self._wide else 1

    def _submit(self) -> None:
        job, body = self.submit()
        self._answer("POST", "/rayflink/jobs?client=kills&wait_s=0", body)
        self.extra.append(job)
        self._outcome = "submission, accepted"

    def _cancel(self) -> None:
        job = self.extra.pop()
        self.cancelled.add(job.job_id)
        self._answer("PATCH", f"/jobs/{job.job_id}?mode=cancel", None)
        self._outcome = "cancel, accepted"

    def _ask(self, job: SubmittedLines, what: str, body: dict[str, Any]) -> None:
        request = json.dumps({"request_id": uuid.uuid4().hex, **body}).encode()
        answer: dict[str, Any] = {}
        while not answer:
            answer = self._answer("POST", f"/rayflink/jobs/{job.job_id}/{what}?wait_s=1", request)
        if what == "savepoint" and answer["value"] and not Path(answer["value"], "_metadata").exists():
            self._outcome = f"savepoint {answer['value']}, which is not there"
            return
        self._outcome = f"{what}, {'failed' if answer['failure'] else 'done'}"

    def _answer(self, method: str, path: str, body: bytes | None) -> dict[str, Any]:
        """Return the answer to a request, which is repeated while the dispatcher does not answer or is not ready."""
        while True:
            try:
                return self.cluster.ask(method, path, body)
            except urllib.error.HTTPError as error:
                if error.code == 409:  # it is ended already
                    return {"value": None, "failure": "refused"}
                if error.code != 503:
                    raise
            except (OSError, ValueError):
                pass
            time.sleep(PAUSE_S)


__all__ = ["KINDS", "Meanwhile"]
