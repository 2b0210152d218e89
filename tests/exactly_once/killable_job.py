"""A program in a process of its own, on the local runner, which can be killed and goes on from its checkpoints."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.exactly_once.running import ROOT, RoundFailed

SCRIPT = Path(__file__).parent / "stream_job.py"


class KillableJob:
    """`stream_job.py` with the checkpoints, the log and the configuration that it needs.

    Args:
        folder: for checkpoints and the log.
        arguments: of the script, but for the configuration.
        checkpoint_ms: the interval of checkpoints.
    """

    def __init__(self, folder: Path, arguments: Sequence[str], checkpoint_ms: int) -> None:
        self.folder, self._arguments, self.checkpoint_ms = folder, list(arguments), checkpoint_ms
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0
        self.parallelism = 0

    def start(self, parallelism: int) -> None:
        """Start it, from the newest complete checkpoint if there is one."""
        self.parallelism = parallelism
        path = self._newest()
        self._starts += 1
        options = {
            "execution.target": "local",
            "parallelism.default": parallelism,
            "execution.checkpointing.interval": f"{self.checkpoint_ms} ms",
            "execution.checkpointing.dir": str(self.folder / f"checkpoints-{self._starts}"),
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": 1_000_000,
            "restart-strategy.fixed-delay.delay": "100 ms",
            "io.tmp.dirs": str(self.folder),
        }
        if path is not None:
            options["execution.state-recovery.path"] = str(path)
        command = [sys.executable, str(SCRIPT), *self._arguments, "--crash", str(self.folder / "crash")]
        command += [part for option in options.items() for part in ("--option", "=".join(map(str, option)))]
        with (self.folder / "job.log").open("ab") as log:
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)

    def await_checkpoints(self, count: int, within_s: float) -> None:
        """Wait until so many more checkpoints of this process are complete.

        Raises:
            RoundFailed: it ended, or took too long.
        """
        first, deadline = self.number(), time.monotonic() + within_s
        while self.number() < first + count:
            if self._process is None or self._process.poll() is not None:
                raise RoundFailed(f"the job ended before its rounds did\n{self.log()}")
            if time.monotonic() > deadline:
                raise RoundFailed(f"checkpoint {first + count} was not complete within {within_s:.0f} s\n{self.log()}")
            time.sleep(0.02)

    def kill(self) -> None:
        """End it with signal 9."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=30)

    def fail(self, within_s: float) -> None:
        """Make a function of it raise, and so fail a task, which the process starts again.

        Raises:
            RoundFailed: none has raised in time.
        """
        asked, deadline = self.folder / "crash", time.monotonic() + within_s
        asked.touch()
        while asked.exists():
            if time.monotonic() > deadline:
                raise RoundFailed(f"no function has raised within {within_s:.0f} s\n{self.log()}")
            time.sleep(0.02)

    def wait(self, within_s: float) -> None:
        """Wait until it ends by itself.

        Raises:
            RoundFailed: it took too long or failed.
        """
        assert self._process is not None
        try:
            code = self._process.wait(timeout=within_s)
        except subprocess.TimeoutExpired:
            raise RoundFailed(f"the job did not end within {within_s:.0f} s\n{self.log()}") from None
        if code:
            raise RoundFailed(f"the job failed\n{self.log()}")

    def log(self) -> str:
        """The end of what it has logged."""
        return (self.folder / "job.log").read_text(errors="replace")[-3000:]

    def number(self) -> int:
        """The number of the newest complete checkpoint of this process; 0: there is none."""
        return _number(_complete(self.folder / f"checkpoints-{self._starts}"))

    def _newest(self) -> Path | None:
        for start in range(self._starts, 0, -1):
            path = _complete(self.folder / f"checkpoints-{start}")
            if path is not None:
                return path
        return None


def _complete(folder: Path) -> Path | None:
    while True:
        try:
            paths = [path.parent for path in folder.glob("*/chk-*/_metadata")]
        except FileNotFoundError:  # an older checkpoint was deleted while the folder was listed
            continue
        return max(paths, key=_number, default=None)


def _number(path: Path | None) -> int:
    return 0 if path is None else int(path.name.removeprefix("chk-"))
