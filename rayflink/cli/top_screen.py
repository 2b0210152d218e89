"""The page of `rayflink top`: what it shows, and what keys do; nothing here knows a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rayflink.cluster.jobs.findings import command
from rayflink.common.metrics.job_report import moment, short
from rayflink.common.metrics.live_table import lag_text
from rayflink.common.text_output.plain_table import table

__all__ = ["TopScreen", "duration_text", "load_bar", "size_text"]

Document = Mapping[str, Any]
BAR_CHARACTERS = 10
FINDING_SIGNS = {"problem": "✕", "warning": "▲", "note": "i"}
JOB_COLUMNS = ("job", "state", "uptime", "subtasks", "records/s", "lag", "load", "back-pressure", "restarts", "late",
               "checkpoint")  # fmt: skip
VERTEX_COLUMNS = ("vertex", "subtasks", "in/s", "out/s", "records in", "busy", "back-pressure", "lag", "skew", "late",
                  "dropped")  # fmt: skip
ORDERS: Mapping[str, Callable[[Document], Any]] = {
    "begin": lambda job: -job["begin_ms"],
    "records/s": lambda job: -(job["read_per_second"] or 0),
    "lag": lambda job: -(job["lag_ms"] or 0),
    "load": lambda job: -(job["busy_ms_per_second"] or 0),
    "name": lambda job: str(job["name"]),
}
"""Orders of the list of jobs; one that has ended stands behind those that run."""
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"))
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")


class TopScreen:
    """The list of jobs, or one job with its vertices.

    >>> screen = TopScreen("http://127.0.0.1:8081")
    >>> screen.key("q")
    False

    Args:
        source: where the figures come from, for the head.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._jobs: list[Document] = []
        self._order, self._chosen = next(iter(ORDERS)), 0
        self.job_id: str | None = None
        """The job that is shown; None: the list is."""
        self._job: Document | None = None
        self._findings: Sequence[Document] = ()
        self._now_ms = 0
        self.problem = ""
        """Reason why the figures are not those of now; "": they are."""

    def take_jobs(self, document: Document) -> None:
        """Show these jobs from now on."""
        self._now_ms = document["now_ms"]
        self._jobs = list(document["jobs"])
        self._sort()

    def take_job(self, figures: Document, findings: Sequence[Document]) -> None:
        """Show these figures of the job that is shown."""
        self._now_ms, self._job, self._findings = figures["now_ms"], figures, findings

    def key(self, key: str) -> bool:
        """Do what a key says: "q", "up", "down", "enter", "escape" or "s"; return False for the end."""
        if key == "q":
            return False
        if key in ("escape", "left"):
            self.job_id = self._job = None
        elif self.job_id is None and self._jobs:
            if key in ("enter", "right"):
                self.job_id = str(self._jobs[self._chosen]["jid"])
            elif key == "s":
                names = list(ORDERS)
                self._order = names[(names.index(self._order) + 1) % len(names)]
                self._sort()
            elif key in ("up", "down"):
                step = 1 if key == "down" else -1
                self._chosen = min(max(self._chosen + step, 0), len(self._jobs) - 1)
        return True

    @property
    def marked_line(self) -> int | None:
        """Return the number of the line of the chosen job; None: a job is shown, or there is none."""
        return None if self.job_id is not None or not self._jobs else self._chosen + 4

    def lines(self) -> list[str]:
        """Return the lines of the page."""
        head = f"rayflink top  {self._source}  {moment(self._now_ms)} UTC"
        if self.problem:
            head += f"  STALE: {_printable(self.problem)}"
        return [head, *(self._list_lines() if self.job_id is None else self._job_lines())]

    def _list_lines(self) -> list[str]:
        states: dict[str, int] = {}
        for job in self._jobs:
            states[job["state"]] = states.get(job["state"], 0) + 1
        counts = ", ".join(f"{number} {state}" for state, number in sorted(states.items())) or "no jobs"
        rows = [_job_row(job, self._now_ms) for job in self._jobs]
        keys = f"q quit   up/down choose   Enter open   s order: {self._order}"
        return [counts, *(table(JOB_COLUMNS, rows).splitlines() if rows else []), "", keys]

    def _job_lines(self) -> list[str]:
        job = self._job
        if job is None:
            return ["", "waiting for the figures of the job"]
        head = f"{_printable(short(job['name'], 60))}  {job['jid']}  {job['state']}"
        facts = [
            f"read {_rate(job['read_per_second'])}/s", f"lag {_lag(job['lag_ms'])}", f"restarts {job['restarts']}",
            f"up {duration_text(job['uptime_ms'])}", f"checkpoint {_checkpoint(job, self._now_ms)}",
        ]  # fmt: skip
        rows = [_vertex_row(vertex) for vertex in job["vertices"]]
        lines = [head, "   ".join(facts), *([_printable(job["waiting"])] if job["waiting"] else []), ""]
        lines += [*table(VERTEX_COLUMNS, rows).splitlines(), ""]
        lines += [_finding(finding, job) for finding in self._findings] or ["nothing holds it up"]
        return [*lines, "", "q quit   Esc back"]

    def _sort(self) -> None:
        before = self._jobs[self._chosen]["jid"] if self._chosen < len(self._jobs) else None
        self._jobs.sort(key=lambda job: (job["has_ended"], ORDERS[self._order](job)))
        places = [index for index, job in enumerate(self._jobs) if job["jid"] == before]
        self._chosen = places[0] if places else min(self._chosen, max(len(self._jobs) - 1, 0))


def load_bar(busy: float | None, pressed: float | None) -> str:
    """Return a bar of the parts of a second: work, waits for room, idleness.

    >>> load_bar(500, 300), load_bar(None, None)
    ('█████▒▒▒..', '-')
    """
    if busy is None:
        return "-"
    work = round(min(busy, 1000) * BAR_CHARACTERS / 1000)
    wait = min(round((pressed or 0) * BAR_CHARACTERS / 1000), BAR_CHARACTERS - work)
    return "█" * work + "▒" * wait + "." * (BAR_CHARACTERS - work - wait)


def duration_text(ms: float | None) -> str:
    """Return milliseconds in the two largest units.

    >>> duration_text(7_265_000), duration_text(5_250), duration_text(-1)
    ('2 h 1 min', '5.2 s', '-')
    """
    if ms is None or ms < 0:
        return "-"
    for index, (size, unit) in enumerate(_UNITS):
        if ms >= size:
            rest = ms % size
            small, small_unit = _UNITS[index + 1] if index + 1 < len(_UNITS) else (1_000, "s")
            return f"{ms // size:.0f} {unit} {rest // small:.0f} {small_unit}"
    return f"{ms / 1000:.1f} s"


def size_text(size: float | None) -> str:
    """Return bytes in the largest unit.

    >>> size_text(1536), size_text(None)
    ('1.5 KiB', '-')
    """
    if size is None:
        return "-"
    for unit in _SIZES:
        if size < 1024 or unit == _SIZES[-1]:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError("the last unit takes all")


def _job_row(job: Document, now_ms: int) -> tuple[Any, ...]:
    subtasks = job["states"]
    running = f"{subtasks.get('RUNNING', 0)}/{sum(subtasks.values())}"
    uptime = job["uptime_ms"] if job["uptime_ms"] > 0 else job["duration_ms"]
    return (
        _printable(short(job["name"], 40)), job["state"], duration_text(uptime), running, _rate(job["read_per_second"]),
        _lag(job["lag_ms"]), load_bar(job["busy_ms_per_second"], job["back_pressured_ms_per_second"]),
        _percent(job["back_pressured_ms_per_second"]), job["restarts"], job["late_records"], _checkpoint(job, now_ms),
    )  # fmt: skip


def _vertex_row(vertex: Document) -> tuple[Any, ...]:
    skew = vertex["skew"]
    return (
        _printable(short(vertex["name"], 44)), vertex["parallelism"], _rate(vertex["records_in_per_second"]),
        _rate(vertex["records_out_per_second"]), vertex["records_in"],
        load_bar(vertex["busy_ms_per_second"], vertex["back_pressured_ms_per_second"]),
        _percent(vertex["back_pressured_ms_per_second"]), _lag(vertex["watermark_lag_ms"]),
        None if skew is None else f"{skew['ratio']:.2f}x", vertex["late_records"], vertex["dropped_records"],
    )  # fmt: skip


def _finding(finding: Document, job: Document) -> str:
    sign, remedy = FINDING_SIGNS.get(finding["severity"], "i"), command(finding, job)
    text = f"{sign} {_printable(finding['title'])}: {_printable(finding['detail'])}"
    return f"{text}  ({remedy})" if remedy else text


def _checkpoint(job: Document, now_ms: int) -> str:
    known = job["checkpoints"]
    if not known["completed"]:
        return f"{known['failed']} failed" if known["failed"] else "-"
    age = f"{duration_text(max(now_ms - known['last_ms'], 0))} ago, " if known["last_ms"] else ""
    return f"{age}{known['last_duration_ms'] or 0:,} ms, {size_text(known['last_bytes'])}"


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _lag(lag_ms: int | None) -> str:
    return "-" if lag_ms is None else lag_text(0, lag_ms)


def _percent(ms_per_second: float | None) -> str:
    return "-" if ms_per_second is None else f"{ms_per_second / 10:.0f} %"


def _printable(text: str) -> str:
    """Return a string without what a terminal would obey."""
    return "".join(_plain(str(text)))


def _plain(text: str) -> Iterable[str]:
    return (character if character.isprintable() else "�" for character in text.replace("\n", " "))
