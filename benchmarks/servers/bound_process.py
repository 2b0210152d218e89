"""Processes of tests that end with the test's process, however that ends: a kill with signal 9 leaves no server behind.

`setpriv` of util-linux asks the kernel to be killed with its parent, and then becomes the program. To the kernel the
parent is a thread, so all are started by one thread that lives as long as the process. Where there is no `setpriv` the
processes are plain ones.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

_BECOME = '[ "$PPID" = "$1" ] || exit 1; shift; exec "$@"'
"""For a parent that was gone before it was asked for."""
_starter = ThreadPoolExecutor(1, thread_name_prefix="starts-bound-processes")


def is_binding() -> bool:
    """Return whether processes end with this one."""
    return shutil.which("setpriv") is not None


def start_bound(command: Sequence[str | Path], **options: Any) -> subprocess.Popen[bytes]:
    """Start a program that is killed when this process ends.

    Args:
        command: the program and its arguments.
        options: of `subprocess.Popen`.
    """
    ask = ["setpriv", "--pdeathsig", "KILL", "--", "sh", "-c", _BECOME, "sh", str(os.getpid())]
    bound = ask if is_binding() else []
    return _starter.submit(lambda: subprocess.Popen([*bound, *map(str, command)], **options)).result()
