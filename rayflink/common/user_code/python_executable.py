"""The Python interpreter that runs the functions of a program on the nodes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from ..errors import ConfigError

KEY = "python.executable"
START_SECONDS = 60
"""Time that the interpreter may take to say its version."""


def is_own_interpreter(path: str) -> bool:
    """Return whether a path or a name is that of the interpreter of this process."""
    resolved = shutil.which(path) or path
    return path == sys.executable or os.path.realpath(resolved) == os.path.realpath(sys.executable)


def check_executable(path: str) -> None:
    """Check an interpreter that is on this machine; one in an archive is checked when it starts.

    Raises:
        ConfigError: it is not there, has another version of Python or Ray, or no rayflink.
    """
    if is_own_interpreter(path):
        return
    resolved = shutil.which(path)
    if resolved is None:
        if not os.path.isabs(path) and os.sep in path:
            return  # in an archive
        remedy = "give its path, or one in an archive such as env/bin/python"
        raise ConfigError(KEY, path, "an interpreter that exists", remedy)
    own = _versions(sys.executable)
    other = _versions(resolved)
    if own != other:
        remedy = "Ray wants the same Python and Ray on every node: make it from this interpreter's packages"
        raise ConfigError(KEY, f"{path} with {other}", f"an interpreter with {own}", remedy)


def refuse_executable_here(path: str) -> None:
    """Refuse another interpreter for functions that run in this process.

    Raises:
        ConfigError: it is another one.
    """
    if path and not is_own_interpreter(path):
        remedy = "functions run in this process with 'execution.target: local': start the program with that interpreter"
        raise ConfigError(KEY, path, sys.executable, remedy)


def _versions(executable: str) -> str:
    """Return the versions of Python and Ray of an interpreter.

    Raises:
        ConfigError: it does not start, or has no Ray or rayflink.
    """
    program = "import sys, ray, rayflink; print('Python %d.%d' % sys.version_info[:2], 'and Ray', ray.__version__)"
    try:
        ran = subprocess.run([executable, "-c", program], capture_output=True, text=True, timeout=START_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(KEY, executable, "an interpreter that starts", f"correct the path: {error}") from error
    if ran.returncode:
        reason = ran.stderr.strip().splitlines()[-1] if ran.stderr.strip() else f"it ended with {ran.returncode}"
        raise ConfigError(KEY, executable, "an interpreter with rayflink", f"`pip install rayflink` there: {reason}")
    return ran.stdout.strip()


__all__ = ["check_executable", "is_own_interpreter", "refuse_executable_here"]
