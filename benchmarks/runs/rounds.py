"""Interleaved runs: A B C, A B C, ... so that the machine's noise falls on all alike."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.runs.contestants import ROOT, Contestant
from benchmarks.runs.environments import Unavailable
from benchmarks.runs.run_one import SPAWNED

_RUN_LIMIT_SECONDS = 900
_STOP_SECONDS = 20
_READ_BYTES = 1 << 20


class RunFailed(Exception):
    """A run ended without its JSON line or with a wrong count; the text says how."""


@dataclass
class Record:
    """What one contestant did: a result a round, or the reason why there is none.

    Args:
        words: what it was given to count; None where the benchmark has no file.
    """

    contestant: Contestant
    words: int | None
    results: list[dict[str, Any]] = field(default_factory=list)
    missing: str | None = None


def measure(
    contestants: Sequence[tuple[Contestant, int | None, Path | None]],
    runs: int,
    cache: Path,
    say: Callable[[str], None],
    limit_seconds: float = _RUN_LIMIT_SECONDS,
) -> list[Record]:
    """Run each contestant with its words and file once a round for `runs` rounds; one that fails sits out the rest.

    Files are read once before each run, so that all find them in memory.
    """
    records, commands = [], []
    for contestant, words, data in contestants:
        record = Record(contestant, words)
        records.append(record)
        say(f"preparing {contestant.name}")
        try:
            commands.append((record, contestant.command(cache, data), data))
        except Unavailable as reason:
            record.missing = str(reason)
    for number in range(1, runs + 1):
        for record, command, file in commands:
            if record.missing is None:
                say(f"run {number} of {runs}: {record.contestant.name}")
                _read_once(file)
                try:
                    record.results.append(_checked(run(command, limit_seconds), record.words))
                    say(f"run {number} of {runs}: {record.contestant.name}: {_line(record.results[-1])}")
                except RunFailed as failure:
                    record.missing = f"run {number}: {failure}"
    return records


def _line(result: dict[str, Any]) -> str:
    """Return the numbers of a run in one line.

    >>> _line({"rows": 8_000_000, "seconds_total": 4.5, "peak": 1.25, "queries": {}})
    'rows 8,000,000, seconds_total 4.5, peak 1.25'
    """
    return ", ".join(f"{name} {value:,.7g}" for name, value in result.items() if isinstance(value, (int, float)))


def _read_once(path: Path | None) -> None:
    """Bring a file into the kernel's cache, so that no run waits for a disk that another one had read for it."""
    if path is not None and path.is_file():
        with path.open("rb", buffering=0) as file:
            while file.read(_READ_BYTES):
                pass


def run(command: Sequence[str], limit_seconds: float = _RUN_LIMIT_SECONDS) -> dict[str, Any]:
    """The JSON object on the last line that `command` prints.

    Raises: RunFailed: it exits otherwise than with 0, prints no such line, or is not done within the limit, when it
        is stopped with all its children.
    """
    search = os.pathsep.join((str(Path(command[0]).parent), os.environ.get("PATH", "")))
    environment = {**os.environ, "PATH": search, "PYTHONPATH": str(ROOT), SPAWNED: repr(time.time())}
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # so that its children can be killed with it
        preexec_fn=_heed_interrupts,
    ) as process:
        try:
            output, errors = process.communicate(timeout=limit_seconds)
        except BaseException as stopped:
            _stop(process)
            if isinstance(stopped, subprocess.TimeoutExpired):
                raise RunFailed(f"not done within {limit_seconds:g} s") from stopped
            raise
    last = (output.strip().splitlines() or [""])[-1]
    if process.returncode:
        raise RunFailed(f"exit {process.returncode}: {errors.strip()[-400:]}")
    try:
        result = json.loads(last)
    except ValueError:
        result = None
    if not isinstance(result, dict):
        raise RunFailed(f"the last line is {last[:200]!r}, wanted a JSON object")
    return result


def _heed_interrupts() -> None:
    """A shell has what it starts in the background ignore them, and so all that this starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _stop(process: subprocess.Popen[str]) -> None:
    """Let it end what it has started and clear its files away; then kill it with all its children."""
    process.send_signal(signal.SIGINT)
    try:
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=_STOP_SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _checked(result: dict[str, Any], words: int | None) -> dict[str, Any]:
    if words is not None and result.get("rows") != words:
        raise RunFailed(f"counted {result.get('rows')} words, the file has {words}")
    return result
