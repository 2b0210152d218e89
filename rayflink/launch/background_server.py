"""Servers in the background of this machine, each found by a file that only its user may read.

The files enter, written by `rayflink.cli.background`; addresses and tokens leave.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from rayflink.common.process_begin import process_begin

__all__ = ["BackgroundServer", "own_server", "read_server", "state_folder"]


@dataclass(frozen=True)
class BackgroundServer:
    """A server in the background, as its file says.

    Args:
        pid: of its process; 0: it is an actor of a Ray cluster.
        begin: of that process, by which another process that gets its id is not taken for it.
        url: on which it listens.
        token: that its clients send; "": none.
    """

    pid: int
    begin: str
    url: str
    token: str = field(default="", repr=False)

    @property
    def is_alive(self) -> bool:
        """Return whether its process runs; of an actor that is not known, and True."""
        return not self.pid or bool(self.begin) and process_begin(self.pid) == self.begin


def own_server(url: str, token: str = "") -> BackgroundServer:
    """Return this process as a server of the background."""
    return BackgroundServer(os.getpid(), process_begin(os.getpid()), url, token)


def read_server(path: Path) -> BackgroundServer | None:
    """Return the server that a file is about; None: there is none, or its process has ended."""
    try:
        document = json.loads(path.read_text())
        server = BackgroundServer(
            int(document["pid"]), str(document["begin"]), str(document["url"]), str(document.get("token") or "")
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return server if server.is_alive else None


def state_folder() -> Path:
    """Return the folder of the files of servers: $XDG_STATE_HOME/rayflink."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "rayflink"
