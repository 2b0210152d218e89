"""The output of the tasks of a job in one process: text for the driver, and a log of the job."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import ray
from ray import ObjectRef

from rayflink.common.text_output.logs import identity
from rayflink.common.text_output.safe_write import write_text

from ..driver.terminal import Printed, PrintedStream, Text
from ..ray_job_files import job_folder
from ..shared_output import SharedStream
from ..task_log import LoggedPrinted, TaskLog
from .deployment_check import SlotAssignment


class JobOutput:
    """The output of a job in this process.

    Args:
        assignment: of the first slot that the job has here, which gives the log its name.
    """

    def __init__(self, assignment: SlotAssignment) -> None:
        name = str(assignment.slot).replace("/", "-")
        self.source: tuple[Path, str] = (job_folder(assignment.namespace, assignment.job_id), name)
        self.log = TaskLog(*self.source)
        self.printed: Printed = LoggedPrinted(self._send, self.log)
        self.streams = SharedStream(self.printed, False), SharedStream(self.printed, True)
        self.call: Callable[[list[Text]], ObjectRef[None]] | None = None
        """Calls the coordinator with text; set before a task runs."""

    def _send(self, chunks: list[Text]) -> Callable[[float], bool]:
        assert self.call is not None, "no task runs yet"
        call = self.call(chunks)
        return lambda timeout_s: bool(ray.wait([call], timeout=timeout_s)[0])


class OutputOfJobs(PrintedStream):
    """Stands for sys.stdout or sys.stderr of a process of several jobs: each thread writes to the output of its job.

    Text of a thread without a job, as one that a function has started, is of the only job that is there; where there
    are several, it goes to the log of each, and to no driver. That of a job that has left goes to Ray's log.

    Args:
        outputs: returns job id -> its output.
        to_stderr: whether it stands for standard error.
    """

    def __init__(self, outputs: Callable[[], Mapping[str, JobOutput]], to_stderr: bool) -> None:
        super().__init__(Printed(lambda chunks: lambda timeout_s: True), to_stderr)
        self._outputs, self._to_stderr = outputs, to_stderr

    def write(self, text: str) -> int:
        outputs = self._outputs()
        output = _of_thread(outputs)
        if output is not None:
            return output.streams[self._to_stderr].write(text)
        if not outputs or "job" in identity():
            write_text(sys.__stderr__ or sys.stderr, text)
            return len(text)
        for each in outputs.values():
            each.log.put("err" if self._to_stderr else "out", text)
        return len(text)

    def flush(self) -> None:
        output = _of_thread(self._outputs())
        if output is not None:
            output.streams[self._to_stderr].flush()


def _of_thread(outputs: Mapping[str, JobOutput]) -> JobOutput | None:
    job_id = identity().get("job")
    if job_id is None:
        return next(iter(outputs.values())) if len(outputs) == 1 else None
    return outputs.get(str(job_id))


__all__ = ["JobOutput", "OutputOfJobs"]
