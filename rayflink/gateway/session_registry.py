"""The sessions of a gateway."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from .gateway_errors import GatewayError
from .gateway_session import GatewaySession

__all__ = ["SessionRegistry"]

log = logging.getLogger(__name__)


class SessionRegistry:
    """Holds the sessions, of which there is a limit, and closes those that no client asks for.

    Args:
        limit: sessions at a time.
        idle_s: seconds without a request after which a session is closed; 0: never.
    """

    def __init__(self, limit: int, idle_s: float) -> None:
        self._limit, self._idle_s = limit, idle_s
        self._lock = threading.Lock()
        self._sessions: dict[str, GatewaySession] = {}
        self.expired = 0
        """Number of sessions that were closed because no client asked for them."""

    def open(self, create: Callable[[], GatewaySession]) -> GatewaySession:
        """Create a session.

        Raises:
            GatewayError: there are as many as there may be.
            RayflinkError: its options are wrong.
        """
        self._ensure_room()
        session = create()
        with self._lock:
            if len(self._sessions) < self._limit:
                self._sessions[session.handle] = session
                return session
        session.close()
        self._ensure_room()
        raise GatewayError("the session found no room", "open it again")

    def _ensure_room(self) -> None:
        if len(self._sessions) >= self._limit:
            problem = f"Failed to create session, the count of active sessions exceeds the max count: {self._limit}"
            raise GatewayError(problem, "close sessions, or raise sql-gateway.session.max-num")

    def session(self, handle: str) -> GatewaySession:
        """Return a session, whose client is there.

        Raises:
            GatewayError: there is none.
        """
        session = self._sessions.get(handle)
        if session is None:
            raise GatewayError(f"Session '{handle}' does not exist", "it was closed or has expired; open another")
        session.touch()
        return session

    def close(self, handle: str) -> None:
        """Close a session.

        Raises:
            GatewayError: there is none.
        """
        self.session(handle)
        with self._lock:
            session = self._sessions.pop(handle, None)
        if session is not None:
            session.close()

    def close_idle(self) -> None:
        """Close the sessions that no client has asked for in time."""
        if self._idle_s <= 0:
            return
        with self._lock:
            idle = [session for session in self._sessions.values() if session.idle_s > self._idle_s]
            for session in idle:
                del self._sessions[session.handle]
                self.expired += 1
        for session in idle:
            log.info("idle session closed", extra={"session": session.handle, "idle_s": round(session.idle_s)})
            session.close()

    def close_all(self) -> None:
        """Close all sessions."""
        with self._lock:
            sessions = list(self._sessions.values())
            self._sessions.clear()
        for session in sessions:
            session.close()

    def __len__(self) -> int:
        return len(self._sessions)
