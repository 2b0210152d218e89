"""Runs a user's script as `python script.py args` would, and reports its failure without a frame of ours."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TextIO

from rayflink.common.errors import JobCancelled, JobFailed, RayflinkError
from rayflink.common.tracebacks import users_traceback

OPTIONS_VARIABLE = "RAYFLINK_OPTIONS"
"""Where the environment of a program finds the options of the command line: one `key=value` a line."""

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: all went well; the program or its job failed; the command line is wrong; Ctrl-C or a cancelled job."""


def run_script(path: str, arguments: Sequence[str], options: Mapping[str, str]) -> int:
    """Run the script to its end in this process, as `__main__`; failures are printed to standard error.

    Args:
        path: of the script.
        arguments: what it finds in `sys.argv[1:]`.
        options: option key -> value; they win over those the script sets itself.

    Returns: the exit code.
    """
    try:
        with _as_main(path, arguments, options):
            runpy.run_path(path, run_name="__main__")
    except SystemExit as exit:
        return _exit_code(exit)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except RayflinkError as error:
        print_error(error, path)
        return INTERRUPTED if isinstance(error, JobCancelled) else FAILED
    except Exception as error:
        _print_users_traceback(error, path, sys.stderr)
        return FAILED
    return OK


def print_error(error: RayflinkError, path: str = "") -> None:
    """One of our errors as people want it: what is wrong and what to do; where the script is known, the line in it."""
    text = str(error)
    line = _line_of(error.__traceback__, path)
    if line and not isinstance(error, JobFailed) and line not in text:
        text += f"\n  at {line}"
    print(f"rayflink: {text}", file=sys.stderr)


@contextmanager
def _as_main(path: str, arguments: Sequence[str], options: Mapping[str, str]) -> Iterator[None]:
    argv, search, before = sys.argv, list(sys.path), os.environ.get(OPTIONS_VARIABLE)
    sys.argv = [path, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    os.environ[OPTIONS_VARIABLE] = "\n".join(f"{key}={value}" for key, value in options.items())
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, search
        if before is None:
            os.environ.pop(OPTIONS_VARIABLE, None)
        else:
            os.environ[OPTIONS_VARIABLE] = before


def _exit_code(exit: SystemExit) -> int:
    if exit.code is None:
        return OK
    if isinstance(exit.code, int):
        return exit.code
    print(exit.code, file=sys.stderr)
    return FAILED


def _print_users_traceback(error: Exception, path: str, stream: TextIO) -> None:
    """The traceback from the script's first frame on, without ours; a script that does not compile has none."""
    tb = error.__traceback__
    while tb is not None and not _is_script(tb, path):
        tb = tb.tb_next
    if tb is None:
        stream.write("".join(traceback.format_exception(type(error), error, None)))
    else:
        stream.write(users_traceback(error, tb))


def _line_of(tb: TracebackType | None, path: str) -> str:
    """ "file:line" of the innermost frame of the script."""
    found = ""
    while path and tb is not None:
        if _is_script(tb, path):
            found = f"{path}:{tb.tb_lineno}"
        tb = tb.tb_next
    return found


def _is_script(tb: TracebackType, path: str) -> bool:
    return os.path.abspath(tb.tb_frame.f_code.co_filename) == os.path.abspath(path)


__all__ = ["FAILED", "INTERRUPTED", "OK", "OPTIONS_VARIABLE", "USAGE", "print_error", "run_script"]
