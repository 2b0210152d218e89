"""One virtual environment a peer, made from PyPI when first asked for."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_INSTALL_LIMIT_SECONDS = 1200


class Unavailable(Exception):
    """A contestant cannot run on this machine; the text says what is missing."""


def cache_directory() -> Path:
    """Where environments, compiled classes and data are kept: $RAYFLINK_BENCH_CACHE or ~/.cache/rayflink-bench."""
    chosen = os.environ.get("RAYFLINK_BENCH_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "rayflink-bench"


@dataclass(frozen=True)
class Environment:
    """A virtual environment of this interpreter's version with fixed requirements.

    Args:
        name: the directory under the cache, suffixed with the Python version.
        requirements: what pip installs, versions pinned.
        dependencies: whether pip brings what the requirements need in turn.
    """

    name: str
    requirements: tuple[str, ...]
    dependencies: bool = True

    def python(self, cache: Path) -> Path:
        """The environment's interpreter; builds the environment unless an equal one is complete.

        Raises: Unavailable: pip could not install the requirements.
        """
        cache.mkdir(parents=True, exist_ok=True)
        home = cache / f"{self.name}-py{sys.version_info[0]}.{sys.version_info[1]}"
        with (cache / f"{home.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            complete = home / "requirements.txt"
            wanted = "\n".join(self.requirements)
            if not complete.exists() or complete.read_text() != wanted:
                shutil.rmtree(home, ignore_errors=True)
                self._build(home)
                complete.write_text(wanted)
        return home / "bin" / "python"

    def site_packages(self, cache: Path) -> Path:
        """Where the requirements lie; builds the environment like `python`."""
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        return self.python(cache).parent.parent / "lib" / version / "site-packages"

    def _build(self, home: Path) -> None:
        python = str(home / "bin" / "python")
        install = [python, "-m", "pip", "install", "-q", *([] if self.dependencies else ["--no-deps"])]
        try:
            for step in ([sys.executable, "-m", "venv", str(home)], [*install, *self.requirements]):
                subprocess.run(step, check=True, capture_output=True, text=True, timeout=_INSTALL_LIMIT_SECONDS)
        except subprocess.CalledProcessError as failed:
            errors = [line.strip() for line in failed.stderr.splitlines() if "error" in line.lower()]
            reason = errors[-1] if errors else f"exit {failed.returncode}"
            raise Unavailable(f"cannot install {', '.join(self.requirements)}: {reason}") from failed
        except subprocess.TimeoutExpired as late:
            raise Unavailable(f"installing {', '.join(self.requirements)} took over {late.timeout:.0f} s") from late
