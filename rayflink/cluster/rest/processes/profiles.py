"""Profiles that clients have asked for: each taken in a thread of its own, and kept as a page for a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Annotated, Literal

import msgspec

from rayflink.common.errors import RayflinkError, described
from rayflink.serving.json_requests import FileAnswer, Refusal

from ..operations import in_thread
from .flame_tree import flame_page, waiting

__all__ = ["ProfileRequest", "Profiles", "ProfilingInfo", "ProfilingList"]

LONGEST_S = 300
HISTORY = 10
"""Profiles of a process that are kept (rest.profiling.history-size)."""
MOST_PROCESSES = 50
Sample = Callable[[float, bool], "Sequence[tuple[str, int]]"]
"""Takes seconds, and whether threads that wait count, too."""
Mode = Literal["CPU", "WALL", "ITIMER", "ALLOC", "LOCK"]


class ProfileRequest(msgspec.Struct, frozen=True):
    """The body of a request for a profile.

    Args:
        mode: CPU or ITIMER: threads that run; WALL: all threads; LOCK: threads that wait; ALLOC is not measured here.
        duration: seconds for which samples are taken.
    """

    mode: Mode
    duration: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class ProfilingInfo(msgspec.Struct, rename="camel", frozen=True):
    """A profile.

    Args:
        status: RUNNING, FINISHED or FAILED.
        mode: what was measured.
        trigger_time: when it began, epoch milliseconds.
        finished_time: when it ended; None: it has not.
        duration: seconds.
        message: how it went.
        output_file: the page with its picture; None where there is none.
    """

    status: str
    mode: Mode
    trigger_time: int
    finished_time: int | None
    duration: int
    message: str | None
    output_file: str | None
    profiling_mode: Mode


class ProfilingList(msgspec.Struct, rename="camel", frozen=True):
    """The profiles of a process, the newest first."""

    profiling_list: list[ProfilingInfo]


class Profiles:
    """The profiles of all processes, with their pages.

    Args:
        now_ms: epoch milliseconds.
        start: lets work run, beside the caller.
    """

    def __init__(
        self,
        now_ms: Callable[[], int] = lambda: int(time.time() * 1000),
        start: Callable[[Callable[[], None]], None] = in_thread,
    ) -> None:
        self._now_ms, self._start = now_ms, start
        self._lock = threading.Lock()
        self._infos: dict[str, list[ProfilingInfo]] = {}
        self._pages: dict[tuple[str, str], bytes] = {}

    def begin(self, process: str, request: ProfileRequest, sample: Sample) -> ProfilingInfo:
        """Begin a profile.

        Args:
            process: whose.
            request: of the client.
            sample: takes the samples.

        Raises:
            Refusal: it is none that can be taken, or another one is being taken.
        """
        if not 0 < request.duration <= LONGEST_S:
            raise Refusal(400, f"`duration` must be set between (0s, {LONGEST_S}s].")
        if request.mode == "ALLOC":
            raise Refusal(400, "allocations are not measured here; send CPU, ITIMER, WALL or LOCK")
        now = self._now_ms()
        info = ProfilingInfo("RUNNING", request.mode, now, None, request.duration, None, None, request.mode)
        with self._lock:
            history = self._infos.setdefault(process, [])
            if any(earlier.status == "RUNNING" for earlier in history):
                raise Refusal(409, f"{process} is still under profiling; ask again when that has ended")
            history.insert(0, info)
            self._forget_old(process)
        self._start(lambda: self._take(process, info, sample))
        return info

    def list(self, process: str) -> ProfilingList:
        """Return the profiles of a process, the newest first."""
        with self._lock:
            return ProfilingList(list(self._infos.get(process, ())))

    def page(self, process: str, name: str) -> FileAnswer:
        """Return the page of a profile.

        Raises:
            Refusal: there is none of this name.
        """
        page = self._pages.get((process, name))
        if page is None:
            remedy = "the list of its profiles shows those that are"
            raise Refusal(404, f"no profile {name[:80]} of {process} is known; {remedy}")
        return FileAnswer(page, "text/html; charset=utf-8", {"Content-Disposition": f'attachment; filename="{name}"'})

    def _take(self, process: str, info: ProfilingInfo, sample: Sample) -> None:
        try:
            self._replace(process, info, *self._sampled(process, info, sample))
        except Exception as error:  # a profile that is never over would keep all others from being taken
            message = str(error) if isinstance(error, RayflinkError) else described(error)
            self._replace(process, info, msgspec.structs.replace(info, status="FAILED", message=message), b"")

    def _sampled(self, process: str, info: ProfilingInfo, sample: Sample) -> tuple[ProfilingInfo, bytes]:
        """Return a profile that was taken, with its page."""
        stacks = sample(info.duration, info.mode in ("WALL", "LOCK"))
        if info.mode == "LOCK":
            stacks = waiting(stacks, sample(info.duration, False))
        now = self._now_ms()
        stamp = time.strftime("%Y-%m-%d_%H_%M_%S", time.localtime(now / 1000))
        name = "".join(c if c.isalnum() or c in "-_." else "_" for c in f"{process}_{info.mode}_{stamp}.html")
        page = flame_page(f"{process}, {info.mode}, {info.duration} s, {stamp}", stacks)
        done = msgspec.structs.replace(
            info, status="FINISHED", finished_time=now, message="Profiling Successful", output_file=name
        )
        return done, page

    def _replace(self, process: str, info: ProfilingInfo, new: ProfilingInfo, page: bytes) -> None:
        with self._lock:
            history = self._infos.get(process, [])
            self._infos[process] = [new if known is info else known for known in history]
            if new.output_file is not None:
                self._pages[process, new.output_file] = page
            self._forget_old(process)

    def _forget_old(self, process: str) -> None:
        self._infos[process] = self._infos.pop(process, [])[:HISTORY]
        while len(self._infos) > MOST_PROCESSES:
            del self._infos[next(iter(self._infos))]
        named = {(owner, info.output_file) for owner, history in self._infos.items() for info in history}
        for key in list(self._pages):
            if key not in named:
                del self._pages[key]
