"""The committer of PostgreSQL sinks: it moves staged rows to their table, each chunk in one transaction and once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rayflink.common.connector_base.commits import CommitRequest
from rayflink.common.connector_base.sink import Committer
from rayflink.common.text_output.logs import get_logger

from .postgres_session import PostgresError, Session, driver, wait_at_most
from .postgres_writing import Chunk

if TYPE_CHECKING:
    import psycopg

log = get_logger(__name__)

KEPT_S = 86_400
"""Seconds for which the ledger keeps what was committed."""
LOCK_S = 10
"""Seconds that a move waits for locks, where the server sets none; then it is tried again after a pause."""
_PRUNED_EVERY = 1_000
_AT_ONCE = (0.0,)
"""A lost connection is opened again once; if that fails, there is a pause before the next try."""


class Mover(Committer):
    """Moves chunks to the target.

    Args:
        session: its own, for it commits in a thread of its own while the writer goes on.
    """

    most_at_once = 1
    in_background = True

    def __init__(self, session: Session) -> None:
        self._session, self._commits = session, 0

    def commit(self, requests: Sequence[CommitRequest[Chunk]]) -> None:
        psycopg = driver()
        for request in requests:
            chunk = request.get_committable()
            try:
                if not self._move_in_order(chunk, request.restored):
                    request.signal_already_committed()
                self._prune(chunk)
            except psycopg.OperationalError as error:
                _try_later(request, error)
            except PostgresError as error:
                if isinstance(error.__cause__, psycopg.OperationalError):
                    _try_later(request, error)
                else:
                    request.signal_failed_with_unknown_reason(error)
            except psycopg.Error as error:
                reason = f"{error.diag.message_primary or error}. {error.diag.message_detail or ''}".strip()
                problem = f"{chunk.rows} rows cannot be moved to table {'.'.join(chunk.tables.target)!r}: {reason}"
                remedy = "make the table as it was when they were staged"
                if isinstance(error, psycopg.IntegrityError):
                    remedy = "make room for them there, or give keys= where rows are to be replaced"
                request.signal_failed_with_unknown_reason(PostgresError(problem, remedy))

    def close(self) -> None:
        self._session.close()

    def _move_in_order(self, chunk: Chunk, restored: bool) -> bool:
        """Move a chunk; of restored rows with keys, first what its subtask staged before; whether there was something.

        Restored chunks of one subtask may be distributed to several, of which each then moves the older ones too.
        """
        tables = chunk.tables
        if restored and tables.keys:
            text = "SELECT chunk, row_count, number, staging FROM {ledger} WHERE job_id = %s AND operator_id = %s "
            text += "AND subtask = %s AND number < %s AND committed_at IS NULL ORDER BY number"
            earlier = tables.statement(text)
            own = (chunk.job_id, chunk.operator_id, chunk.subtask, chunk.number)
            entries = self._session.run(lambda cursor: cursor.execute(earlier, own).fetchall(), _AT_ONCE)
            for before, rows, number, staging in entries:
                there = replace(tables, staging=staging)
                self._move(replace(chunk, id=str(before), tables=there, rows=rows, number=number))
        return self._move(chunk)

    def _move(self, chunk: Chunk) -> bool:
        outcome = self._session.run(lambda cursor: _moved(cursor, chunk), _AT_ONCE)
        if outcome is None and time.time() - chunk.staged_s < KEPT_S:
            ledger = f"{chunk.tables.schema}.rayflink_ledger"
            problem = f"{chunk.rows} staged rows, chunk {chunk.id}, are not in the ledger {ledger!r}"
            raise PostgresError(problem, "they were discarded, or this is another database; restore another checkpoint")
        if outcome is None:
            log.warning("chunk %s is no longer in the ledger: it was committed long ago", chunk.id)
        return bool(outcome)

    def _prune(self, chunk: Chunk) -> None:
        """Remove the records of old commits from time to time."""
        self._commits += 1
        if self._commits % _PRUNED_EVERY == 1:
            text = "DELETE FROM {ledger} WHERE chunk IN (SELECT chunk FROM {ledger} WHERE committed_at < "
            text += "now() - %s * interval '1 second' LIMIT 10000 FOR UPDATE SKIP LOCKED)"
            self._session.run(lambda cursor: cursor.execute(chunk.tables.statement(text), (KEPT_S,)) and None, _AT_ONCE)


def _moved(cursor: psycopg.Cursor[Any], chunk: Chunk) -> bool | None:
    """Move a chunk: True when that was done, False when it had been before, None when the database has no record of it.

    Raises:
        PostgresError: not all of its rows are there.
    """
    tables = chunk.tables
    wait_at_most(cursor, LOCK_S)
    text = "UPDATE {ledger} SET committed_at = now() WHERE chunk = %s AND committed_at IS NULL RETURNING 1"
    if cursor.execute(tables.statement(text), (chunk.id,)).fetchone() is None:
        known = tables.statement("SELECT 1 FROM {ledger} WHERE chunk = %s")
        return None if cursor.execute(known, (chunk.id,)).fetchone() is None else False
    if tables.has_deletes:
        staged = "(SELECT * FROM {staging} WHERE {chunk} = %s) AS staged"
        cursor.execute(tables.delete(staged, has_parameters=True), (chunk.id,))
    (moved,) = cursor.execute(tables.move(), (chunk.id,)).fetchone() or (0,)
    if moved != chunk.rows:
        problem = f"{moved} rows of chunk {chunk.id} are in {tables.schema}.{tables.staging}, {chunk.rows} were staged"
        raise PostgresError(problem, "somebody changed the staging table; put its rows back to go on")
    return True


def _try_later(request: CommitRequest[Chunk], error: Exception) -> None:
    """Try again, but for restored rows with keys: no newer row may come first, so the next attempt moves them."""
    if request.restored and request.get_committable().tables.keys:
        request.signal_failed_with_unknown_reason(error)
    else:
        request.retry_later(error)


__all__ = ["Mover"]
