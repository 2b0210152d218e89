"""The progress of a job in a notebook."""

from __future__ import annotations

import threading
import time

from rayflink.common.errors import RayflinkError
from rayflink.common.job_client import JobClient
from rayflink.common.metrics.job_report import VERTEX_COLUMNS, html_table, state_text, vertex_row
from rayflink.common.text_output.plain_table import table

from .canvases import canvas, current_cell, show_elsewhere

__all__ = ["JobView", "follow"]

EVERY_S = 0.5
"""Seconds between two looks at the job."""


class JobView:
    """The progress of a job, drawn until it ends; `follow` makes it.

    Args:
        job: the job.
    """

    def __init__(self, job: JobClient) -> None:
        self._job, self._begin = job, time.monotonic()
        self._cell = current_cell()
        self._ended = threading.Event()
        self._error: RayflinkError | None = None
        self._canvas = canvas("Cancel job", self.cancel)
        self._draw(False)  # here, so that it is in the output of the cell that runs now
        self._waiter = threading.Thread(target=self._await_end, name="end of a job", daemon=True)
        self._painter = threading.Thread(target=self._paint, name="drawing of a job", daemon=True)
        self._waiter.start()
        self._painter.start()

    @property
    def is_running(self) -> bool:
        """Return whether the job has not ended."""
        return not self._ended.is_set()

    def cancel(self) -> None:
        """Cancel the job, without a savepoint."""
        self._job.cancel().result()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until the job has ended; an interrupt of the cell leaves it running.

        Args:
            timeout_s: at most so long; None: as long as it runs.

        Raises:
            RayflinkError: it failed, or was cancelled.
        """
        self._painter.join(timeout_s)
        if self._error is not None:
            raise self._error

    def _ipython_display_(self) -> None:
        """Show the state in a line, but not below the cell that draws it already."""
        show_elsewhere(self, self._cell)

    def __repr__(self) -> str:
        return f"JobView({self._job.get_job_id()}, {'running' if self.is_running else 'ended'})"

    def _await_end(self) -> None:
        try:
            self._job.get_job_execution_result().result()
        except RayflinkError as error:
            self._error = error
        finally:
            self._ended.set()

    def _paint(self) -> None:
        while not self._ended.wait(EVERY_S):
            self._draw(False)
        self._draw(True)

    def _draw(self, is_last: bool) -> None:
        try:
            status = self._job.status()
        except RayflinkError:  # its process is gone; what was drawn last stays
            return
        head = f"{time.monotonic() - self._begin:.0f} s  {status['name']}  {state_text(status)}"
        lines = table(VERTEX_COLUMNS, [vertex_row(vertex) for vertex in status["vertices"]])
        self._canvas.draw(html_table(status), f"{head}\n{lines}", is_last)


def follow(job: JobClient, block: bool = False) -> JobView:
    """Show the progress of a job: its state, and records and watermarks of its vertices, twice a second.

    With ipywidgets it has a button that cancels the job. Where there is no notebook, the end is printed.

    Args:
        job: such as `table.execute_insert("sink").get_job_client()`, or that of `env.execute_async()`.
        block: wait until it has ended; an interrupt of the cell leaves it running.

    Raises:
        RayflinkError: `block` is set, and the job failed.
    """
    view = JobView(job)
    if block:
        view.wait()
    return view
