"""The rows of a result between the job that gives them and the client that fetches them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from rayflink.common.types import Row

from .gateway_errors import GatewayError
from .result_values import RowWriter

__all__ = ["Page", "ResultPages"]


@dataclass(frozen=True)
class Page:
    """Rows of one answer.

    Args:
        rows: as JSON.
        next_token: of the answer behind it; None: this one is the end, and has no rows.
    """

    rows: tuple[bytes, ...]
    next_token: int | None


class ResultPages:
    """Holds rows until they are fetched, with a bound, and gives each answer again until the next one is asked for.

    The token of the first answer is 0. A client that lost an answer asks with its token once more.

    >>> from rayflink.gateway.result_values import RowForm
    >>> from rayflink.table.types import DataTypes
    >>> pages, writer = ResultPages(10), RowWriter([DataTypes.INT()], RowForm.JSON, "UTC")
    >>> pages.put(Row(1)), pages.complete()
    (True, None)
    >>> pages.page(0, writer, 1000, 0)
    Page(rows=(b'{"kind":"INSERT","fields":[1]}',), next_token=1)
    >>> pages.page(1, writer, 1000, 0)
    Page(rows=(), next_token=None)

    Args:
        limit: rows that wait; whoever puts more of them waits.

    Source: apache/flink ResultFetcher, whose tokens these are.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._changed = threading.Condition()
        self._rows: deque[Row] = deque()
        self._previous: list[Row] = []
        self._token = 0
        self._is_complete, self._is_at_end, self._is_closed = False, False, False
        self._is_failure_raised = False
        self._failure: BaseException | None = None

    @staticmethod
    def of(rows: Iterable[Row]) -> ResultPages:
        """Return the pages of rows that are all there."""
        pages = ResultPages(1)
        pages._rows.extend(rows)
        pages.complete()
        return pages

    def put(self, row: Row) -> bool:
        """Add a row, once there is room; False: the result is closed."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._rows) < self._limit or self._is_closed)
            if self._is_closed:
                return False
            self._rows.append(row)
            if len(self._rows) == 1:
                self._changed.notify_all()
            return True

    def complete(self, failure: BaseException | None = None) -> None:
        """Note that no row comes after those that are there; behind them, a failure is raised."""
        with self._changed:
            self._is_complete, self._failure = True, failure
            self._changed.notify_all()

    def close(self) -> None:
        """Forget the rows; `put` refuses others."""
        with self._changed:
            self._is_closed = True
            self._rows.clear()
            self._changed.notify_all()

    @property
    def is_fetched(self) -> bool:
        """Return whether the end has been fetched, or the failure."""
        return self._is_at_end or self._is_failure_raised

    @property
    def is_exhausted(self) -> bool:
        """Return whether no job adds rows any more."""
        return self._is_complete or self._is_closed

    def page(self, token: int, writer: RowWriter, most_bytes: int, wait_s: float) -> Page:
        """Return the rows of a token, at least one where there is one.

        Args:
            token: that of the next answer, or of the last one once more.
            writer: of the rows.
            most_bytes: of rows, from which on the others come with the next token.
            wait_s: time in which a first row may come.

        Raises:
            GatewayError: another token is next.
            BaseException: the failure of the job, behind its rows.
        """
        with self._changed:
            if token == self._token - 1 and token >= 0 and not self._is_at_end:
                return Page(tuple(writer.write(row) for row in self._previous), self._token)
            if token != self._token:
                wanted = f"{self._token} or {self._token - 1}" if self._token else "0"
                problem = f"Expecting token to be {wanted}, but found {token}."
                raise GatewayError(problem, "ask for the nextResultUri of the last answer")
            if not self._is_at_end:
                self._changed.wait_for(lambda: self._rows or self._is_complete or self._is_closed, wait_s)
            if not self._rows and self._is_complete:
                if self._failure is not None:
                    self._is_failure_raised = True
                    raise self._failure
                self._is_at_end = True
                self._previous = []
            if self._is_at_end:
                return Page((), None)
            return self._next(writer, most_bytes)

    def _next(self, writer: RowWriter, most_bytes: int) -> Page:
        rows: list[bytes] = []
        size = 0
        for row in self._rows:
            if rows and size >= most_bytes:
                break
            rows.append(writer.write(row))
            size += len(rows[-1])
        self._previous = [self._rows.popleft() for _ in rows]  # all are there still where one cannot be written
        self._token += 1
        self._changed.notify_all()
        return Page(tuple(rows), self._token)
