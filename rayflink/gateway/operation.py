"""One statement that a client sent, from its arrival until it is closed."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from rayflink.common.errors import JobExecutionError
from rayflink.common.job_client import JobClient
from rayflink.common.types import Row
from rayflink.table.types import DataType

from .gateway_errors import GatewayError
from .result_pages import ResultPages

__all__ = ["Operation", "OperationStatus", "StatementResult"]

log = logging.getLogger(__name__)


class OperationStatus(Enum):
    """The states of a statement; the names are Flink's."""

    INITIALIZED = "INITIALIZED"
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    CANCELED = "CANCELED"
    CLOSED = "CLOSED"
    ERROR = "ERROR"


@dataclass(frozen=True)
class StatementResult:
    """The rows or the job that a statement gave.

    Args:
        names: of the columns.
        types: of the columns.
        rows: all there, or as a job gives them.
        is_query: a job gives the rows.
        is_done: there is nothing to see but that it was done.
        job: that was started; None: there is none.
        zone: in which instants are shown as text.
    """

    names: tuple[str, ...]
    types: tuple[DataType, ...]
    rows: Iterator[Row]
    is_query: bool = False
    is_done: bool = False
    job: JobClient | None = None
    zone: str = "UTC"


class Operation:
    """A statement and its result; several threads ask it.

    Args:
        text: the statement.
        options: that hold for it alone.
        limit: rows that wait to be fetched.
    """

    def __init__(self, text: str, options: dict[str, str], limit: int) -> None:
        self.handle = str(uuid.uuid4())
        self.text, self.options, self._limit = text, options, limit
        self._changed = threading.Condition()
        self._status = OperationStatus.PENDING
        self._job: JobClient | None = None
        self._failure: BaseException | None = None
        self._result: StatementResult | None = None
        self._pages = ResultPages(limit)

    @property
    def status(self) -> OperationStatus:
        """Return where it stands."""
        return self._status

    @property
    def is_fetched(self) -> bool:
        """Return whether nothing is left of it to fetch."""
        return self._status in _FAILED or self._pages.is_fetched

    def begin(self) -> bool:
        """Note that it is run now; False: it was cancelled while it waited."""
        with self._changed:
            if self._status is not OperationStatus.PENDING:
                return False
            self._status = OperationStatus.RUNNING
            return True

    def follow_job(self, job: JobClient) -> None:
        """Take the job that the statement started; it is cancelled where the statement is already."""
        with self._changed:
            self._job = job
            is_cancelled = self._status is not OperationStatus.RUNNING
        if is_cancelled:
            job.cancel()

    def finish(self, result: StatementResult) -> None:
        """Take the result; rows of a job are drawn in a thread of their own, while there is room for them."""
        with self._changed:
            self._job = result.job
            if self._status is OperationStatus.RUNNING:
                self._result, self._status = result, OperationStatus.FINISHED
                if not result.is_query:
                    self._pages = ResultPages.of(result.rows)
            is_wanted = self._status is OperationStatus.FINISHED
            self._changed.notify_all()
        if result.is_query:
            if not is_wanted and result.job is not None:
                result.job.cancel()  # it may give no row, by which `_draw` would see that the result is closed
            name = f"rows of {self.handle}"
            threading.Thread(target=self._draw, args=(result.rows,), name=name, daemon=True).start()

    def fail(self, error: BaseException) -> None:
        """Take what the statement raised; where it was cancelled, that was to be expected."""
        with self._changed:
            if self._status is OperationStatus.RUNNING:
                self._failure, self._status = error, OperationStatus.ERROR
            self._changed.notify_all()

    def ready(self, wait_s: float) -> tuple[StatementResult, ResultPages] | None:
        """Return the result and its rows; None: it has none within the time.

        Raises:
            GatewayError: it was cancelled or closed.
            BaseException: what the statement raised.
        """
        with self._changed:
            waiting = (OperationStatus.PENDING, OperationStatus.RUNNING)
            self._changed.wait_for(lambda: self._status not in waiting, wait_s)
            if self._failure is not None:
                raise self._failure
            if self._status in waiting:
                return None
            if self._status is not OperationStatus.FINISHED or self._result is None:
                problem = f"Can not fetch results from the {self.handle} in {self._status.value} status"
                raise GatewayError(problem, "run the statement again")
            return self._result, self._pages

    def cancel(self) -> OperationStatus:
        """End it, with its job if that gives the rows, or is waited for; one that has ended stays as it is.

        Raises:
            GatewayError: it has ended.
        """
        with self._changed:
            is_over = self._status is OperationStatus.FINISHED and self._pages.is_exhausted
            if is_over or self._status in _FAILED:
                change = f"from {self._status.value} to CANCELED for {self.handle}"
                raise GatewayError(f"Failed to convert the Operation Status {change}", "close it")
        self._end(OperationStatus.CANCELED)
        return OperationStatus.CANCELED

    def close(self) -> None:
        """Forget the result, and end the job that gives its rows; that of an INSERT goes on unless it is waited for."""
        self._end(OperationStatus.CLOSED)

    def _end(self, status: OperationStatus) -> None:
        with self._changed:
            is_waited_for = self._status is OperationStatus.RUNNING
            gives_rows = self._result is not None and self._result.is_query and not self._pages.is_exhausted
            job = self._job if is_waited_for or gives_rows else None
            self._status = status
            self._pages.close()
            self._changed.notify_all()
        if job is not None:
            job.cancel()

    def _draw(self, rows: Iterator[Row]) -> None:
        failure: BaseException | None = None
        try:
            for row in rows:
                if not self._pages.put(row):
                    break
            close = getattr(rows, "close", None)
            if close is not None:
                close()
        except JobExecutionError as error:  # cancelled, or failed
            failure = error
        except BaseException as error:  # whatever a job raises, also KeyboardInterrupt, is what its client is to read
            log.warning("rows of a query ended early", extra={"operation": self.handle}, exc_info=error)
            failure = error
        self._pages.complete(failure)

    def __repr__(self) -> str:
        return f"Operation({self.handle}, {self._status.value})"


_FAILED = (OperationStatus.ERROR, OperationStatus.CANCELED, OperationStatus.CLOSED)
