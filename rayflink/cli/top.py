"""`rayflink top`: the figures of the dashboard in a terminal, with the keys of a terminal."""

from __future__ import annotations

import argparse
import os
import select
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from rayflink.cluster.jobs.findings import findings
from rayflink.cluster.jobs.job_figures import job_figures, job_row
from rayflink.common.errors import RayflinkError
from rayflink.common.metrics.live_table import is_terminal
from rayflink.common.options import registry as options
from rayflink.launch.background_server import BackgroundServer
from rayflink.launch.cluster_client import ClusterRequest
from rayflink.serving.http_server import ServerError

from .cluster import BACKGROUND
from .cluster_requests import cluster_client
from .given_options import configuration_of
from .jobs import NO_SHARED_CLUSTER, running_jobs
from .script import FAILED, OK, print_error
from .top_screen import TopScreen

__all__ = ["top"]

Document = Mapping[str, Any]
ANSWER_S = 10.0
_FULL_SCREEN, _NORMAL_SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _END_OF_LINE, _END_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"
_MARKED, _PLAIN = "\x1b[7m", "\x1b[0m"
_KEYS = {
    b"\x1b[A": "up", b"\x1bOA": "up", b"k": "up", b"\x1b[B": "down", b"\x1bOB": "down", b"j": "down",
    b"\x1b[C": "right", b"\x1b[D": "left", b"\r": "enter", b"\n": "enter", b"\x1b": "escape", b"\x7f": "escape",
    b"q": "q", b"Q": "q", b"\x03": "q", b"s": "s",
}  # fmt: skip


class Feed(Protocol):
    """A source of figures."""

    @property
    def title(self) -> str:
        """Return its name for the head of the page."""
        ...

    def jobs(self) -> Document:
        """Return "now_ms" and the rows of "jobs"."""
        ...

    def job(self, job_id: str) -> tuple[Document, Sequence[Document]]:
        """Return the figures of a job, and what holds it up."""
        ...


class DispatcherFeed:
    """The figures that a dispatcher answers.

    Args:
        server: the dispatcher.
    """

    def __init__(self, server: BackgroundServer) -> None:
        self._client = cluster_client(server, ANSWER_S)

    @property
    def title(self) -> str:
        return self._client.url

    def jobs(self) -> Document:
        return self._ask("/rayflink/live")

    def job(self, job_id: str) -> tuple[Document, Sequence[Document]]:
        path = f"/rayflink/jobs/{job_id}"
        reasons = self._ask(f"{path}/findings")["findings"]
        return self._ask(f"{path}/live"), reasons

    def _ask(self, path: str) -> Document:
        return self._client.document(ClusterRequest("GET", path))


class RayFeed:
    """The figures of the jobs of a Ray cluster on which there is no dispatcher.

    Args:
        chosen: options of the command.
    """

    def __init__(self, chosen: argparse.Namespace) -> None:
        self._chosen = chosen

    @property
    def title(self) -> str:
        return "jobs on Ray"

    def jobs(self) -> Document:
        now_ms = _now_ms()
        return {"now_ms": now_ms, "jobs": [job_row(status, now_ms) for status in running_jobs(self._chosen)]}

    def job(self, job_id: str) -> tuple[Document, Sequence[Document]]:
        now_ms = _now_ms()
        for status in running_jobs(self._chosen):
            if status["jid"] == job_id:
                reasons = findings(status, {}, now_ms)
                return job_figures(status, {}, now_ms), [reason.describe() for reason in reasons]
        raise ServerError(f"the job {job_id} does not run any more", "press Esc for the list")


def top(chosen: argparse.Namespace) -> int:
    """Show the jobs until q or Ctrl-C, or once where the output is no terminal, and return the exit code."""
    feed = _feed(chosen)
    screen = TopScreen(feed.title)
    try:
        screen.take_jobs(feed.jobs())
    except RayflinkError as error:
        print_error(error)
        return FAILED
    if chosen.once or not (is_terminal(sys.stdout) and sys.stdin.isatty()):
        print("\n".join(screen.lines()[:-2]))
        if len(screen.lines()) <= 4 and isinstance(feed, RayFeed):
            print(f"rayflink: {NO_SHARED_CLUSTER}", file=sys.stderr)
        return OK
    with _full_screen(sys.stdin.fileno()):
        _show(screen, feed, chosen.every)
    return OK


def _feed(chosen: argparse.Namespace) -> Feed:
    configuration = configuration_of(chosen)
    if chosen.address:
        url = chosen.address if "://" in chosen.address else f"http://{chosen.address}"
        return DispatcherFeed(BackgroundServer(0, "", url.rstrip("/"), configuration.get(options.REST_TOKEN) or ""))
    running = BACKGROUND.running()
    return RayFeed(chosen) if running is None else DispatcherFeed(running)


def _show(screen: TopScreen, feed: Feed, every_s: float) -> None:
    due = 0.0
    while True:
        if time.monotonic() >= due:
            _look(screen, feed)
            due = time.monotonic() + every_s
        _draw(screen)
        ready, _, _ = select.select([sys.stdin], [], [], max(due - time.monotonic(), 0))
        if not ready:
            continue
        key, shown = _KEYS.get(os.read(sys.stdin.fileno(), 16), ""), screen.job_id
        if not screen.key(key):
            return
        if screen.job_id != shown:
            due = 0.0


def _look(screen: TopScreen, feed: Feed) -> None:
    """Take new figures; where there are none, the page says so and shows the last."""
    try:
        if screen.job_id is None:
            screen.take_jobs(feed.jobs())
        else:
            screen.take_job(*feed.job(screen.job_id))
        screen.problem = ""
    except RayflinkError as error:
        screen.problem = str(error)


def _draw(screen: TopScreen) -> None:
    size = os.get_terminal_size(sys.stdout.fileno())
    lines = screen.lines()
    if len(lines) > size.lines:
        lines = [*lines[: size.lines - 2], "...", lines[-1]]
    marked = screen.marked_line
    shown = []
    for number, line in enumerate(lines):
        cut = line[: size.columns]
        shown.append(f"{_MARKED}{cut}{_PLAIN}{_END_OF_LINE}" if number == marked else f"{cut}{_END_OF_LINE}")
    sys.stdout.write(_HOME + "\n".join(shown) + _END_OF_SCREEN)
    sys.stdout.flush()


@contextmanager
def _full_screen(terminal: int) -> Iterator[None]:
    """Give the page the whole screen and each key at once, within the block."""
    import termios  # not on every system
    import tty

    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    sys.stdout.write(_FULL_SCREEN)
    try:
        yield
    except KeyboardInterrupt:  # a way to end it
        pass
    finally:
        sys.stdout.write(_NORMAL_SCREEN)
        sys.stdout.flush()
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _now_ms() -> int:
    return int(time.time() * 1000)
