"""One session: an environment, the statements that were sent to it, and the thread that runs them in turn."""

from __future__ import annotations

import logging
import queue
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from rayflink.common.configuration import shown_value
from rayflink.shell.completion import candidates
from rayflink.shell.sql_session import SqlSession
from rayflink.state.clock import Clock

from .gateway_errors import GatewayError
from .gateway_statements import GatewayStatements
from .local_jobs import LocalJobs
from .operation import Operation

__all__ = ["GatewaySession", "SessionLimits", "session_options"]

log = logging.getLogger(__name__)
CONFIGURE_S = 10.0
"""Seconds that a request to configure a session waits for the statement that runs."""
_OF_CLIENTS = ("$internal.", "rest.", "jobmanager.", "taskmanager.", "env.", "sql-gateway.", "blob.", "security.",
               "high-availability.", "execution.target", "execution.attached", "execution.shutdown-on-attached-exit",
               "pipeline.jars", "pipeline.classpaths", "table.resources.download-dir", "io.tmp.dirs")  # fmt: skip
"""Beginnings of options that say where and how the client's own Flink is installed, which it sends along."""


@dataclass(frozen=True)
class SessionLimits:
    """The bounds of a session.

    Args:
        operations: statements that are remembered.
        rows: of a query that wait to be fetched.
    """

    operations: int = 256
    rows: int = 5_000


def session_options(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a session, of what a client sends: all but those of its own installation.

    >>> session_options({"rest.port": "8081", "parallelism.default": "2"})
    {'parallelism.default': '2'}
    """
    return {key: value for key, value in properties.items() if not key.startswith(_OF_CLIENTS)}


class GatewaySession:
    """Runs the statements of a session in turn, and remembers them until they are closed.

    Args:
        name: that the client gave; "": none.
        session: the environment.
        limits: bounds.
        clock: for the time of the last request.
        local_jobs: let the jobs of INSERTs run.
    """

    def __init__(
        self, name: str, session: SqlSession, limits: SessionLimits, clock: Clock, local_jobs: LocalJobs
    ) -> None:
        self.handle, self.name = str(uuid.uuid4()), name
        self._session, self._limits, self._clock = session, limits, clock
        self._statements = GatewayStatements(session, local_jobs)
        self._lock = threading.Lock()
        """Held while `_operations` changes."""
        self._operations: dict[str, Operation] = {}
        self._waiting: queue.SimpleQueue[Operation | None] = queue.SimpleQueue()
        self._running = threading.Lock()
        """Held while the environment runs a statement."""
        self._last_s = clock.monotonic()
        self._is_closed = False
        threading.Thread(target=self._work, name=f"session {self.handle}", daemon=True).start()

    def touch(self) -> None:
        """Note that the client is there."""
        self._last_s = self._clock.monotonic()

    @property
    def idle_s(self) -> float:
        """Return the seconds since the last request."""
        return self._clock.monotonic() - self._last_s

    def submit(self, text: str, options: dict[str, str]) -> Operation:
        """Take a statement, which is run after those before it.

        Args:
            text: of it.
            options: hold for it alone.

        Raises:
            GatewayError: too many statements are remembered, or the session is closed.
        """
        operation = Operation(text, options, self._limits.rows)
        with self._lock:
            if self._is_closed:
                raise GatewayError(f"session {self.handle} is closed", "open another")
            if len(self._operations) >= self._limits.operations:
                self._forget_oldest()
            self._operations[operation.handle] = operation
        self._waiting.put(operation)
        return operation

    def _forget_oldest(self) -> None:
        oldest = next((operation for operation in self._operations.values() if operation.is_fetched), None)
        if oldest is None:
            problem = f"the session has {len(self._operations)} statements whose results are still to be fetched"
            raise GatewayError(problem, "close some of them, or raise sql-gateway.session.max-operations")
        del self._operations[oldest.handle]

    def operation(self, handle: str) -> Operation:
        """Return a statement.

        Raises:
            GatewayError: there is none.
        """
        operation = self._operations.get(handle)
        if operation is None:
            problem = f"Can not find the submitted operation in the OperationManager with the {handle}"
            raise GatewayError(problem, "it was closed, or belongs to another session; run the statement again")
        return operation

    def close_operation(self, handle: str) -> None:
        """Close a statement and forget it; nothing happens where there is none."""
        with self._lock:
            operation = self._operations.pop(handle, None)
        if operation is not None:
            operation.close()

    def configure(self, text: str) -> None:
        """Run a statement that sets an option or defines something, and wait for it.

        Raises:
            RayflinkError: it is another statement, or cannot be run.
        """
        if not self._running.acquire(timeout=CONFIGURE_S):
            problem = f"the session has been running another statement for {CONFIGURE_S:.0f} s"
            raise GatewayError(problem, "wait for it, or send this as a statement, which waits for its turn")
        try:
            self._statements.configure(text)
        finally:
            self._running.release()

    def properties(self) -> dict[str, str]:
        """Return the options as they are now, with secrets masked."""
        return {key: shown_value(key, value) for key, value in self._session.configuration.to_dict().items()}

    def completions(self, text: str, position: int) -> list[str]:
        """Return the words that may stand at a place of a statement."""
        vocabulary = self._session.vocabulary
        return [candidate.text for candidate in candidates(text[:position], text[position:], vocabulary)]

    def close(self) -> None:
        """Close all statements, and take no others; the jobs of INSERTs go on."""
        with self._lock:
            self._is_closed = True
            operations = list(self._operations.values())
            self._operations.clear()
        for operation in operations:
            operation.close()
        self._waiting.put(None)

    def _work(self) -> None:
        """Run statements until the session is closed."""
        while (operation := self._waiting.get()) is not None:
            if not operation.begin():
                continue
            try:
                with self._running:
                    result = self._statements.run(operation.text, operation.options, operation.follow_job)
            except BaseException as error:  # whatever it raises, also SystemExit, is its answer; the session goes on
                log.info("statement failed", extra={"operation": operation.handle}, exc_info=error)
                operation.fail(error)
                continue
            operation.finish(result)
