"""Runs a user's script as `python script.py args` would, or one of SQL; reports its failure without a frame of ours."""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TextIO

from rayflink.common.errors import DriverEnded, JobCancelled, JobFailed, NotSerializable, RayflinkError
from rayflink.common.options.option_sources import COMMAND_LINE_VARIABLE, as_words
from rayflink.common.options.registry import PYTHON_FILES
from rayflink.common.user_code.python_files import listed_python_files, put_on_path
from rayflink.common.user_code.tracebacks import users_traceback

OK, FAILED, USAGE, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143
"""Exit codes: all went well; program or job failed; the command line is wrong; Ctrl-C or a cancelled job; SIGTERM."""


def run_script(program: str, arguments: Sequence[str], options: Mapping[str, str], is_module: bool = False) -> int:
    """Run a program to its end in this process, as `__main__`; failures are printed to standard error.

    Args:
        program: path of the script, of Python or, where its name ends in .sql, of SQL; or dotted name of the module.
        arguments: what it finds in `sys.argv[1:]`; a script of SQL takes none.
        options: option key -> value, of the command line.
        is_module: whether `program` is the name of a module, as in `python -m`.

    Returns: the exit code.
    """
    path = module_file(program) if is_module else program
    if path is None:
        return USAGE
    if arguments and not is_module and is_sql(program):
        remedy = "write its options as SET 'key' = 'value' or -D key=value"
        print(f"rayflink: an SQL script takes no arguments, found {' '.join(arguments)}; {remedy}", file=sys.stderr)
        return USAGE
    try:
        with _as_main(path, arguments, options, os.getcwd() if is_module else os.path.dirname(os.path.abspath(path))):
            if is_module:
                runpy.run_module(program, run_name="__main__", alter_sys=True)
            elif is_sql(program):
                return _run_sql(program)
            else:
                runpy.run_path(path, run_name="__main__")
    except SystemExit as exit:
        return _exit_code(exit)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except RayflinkError as error:
        print_error(error, path)
        ended = (error, error.__cause__)  # that of a statement is the cause of the script's
        return INTERRUPTED if any(isinstance(failure, (JobCancelled, DriverEnded)) for failure in ended) else FAILED
    except Exception as error:
        _print_users_traceback(error, path, sys.stderr)
        return FAILED
    return OK


def is_sql(program: str) -> bool:
    """Return whether the name of a program says that it is of SQL."""
    return program.lower().endswith(".sql")


def _run_sql(path: str) -> int:
    """Run the statements of a file; returns the exit code."""
    from rayflink.table import EnvironmentSettings, TableEnvironment  # slow: it loads pyarrow and sqlglot

    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror or error if isinstance(error, OSError) else f"it is not UTF-8 ({error})"
        print(f"rayflink: cannot read {path}: {problem}; give an SQL file in UTF-8", file=sys.stderr)
        return USAGE
    TableEnvironment.create(EnvironmentSettings.new_instance().build()).execute_script(text, origin=path)
    return OK


def module_file(name: str) -> str | None:
    """Return the file that `python -m name` would run; None, with a message, where there is none."""
    sys.path.insert(0, os.getcwd())
    problem = f"there is no module {name!r}"
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            problem = f"{name!r} is a package without __main__.py"
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError as error:
        problem, spec = f"{problem}: {error}", None
    finally:
        sys.path.remove(os.getcwd())
    if spec is not None and spec.origin is not None and spec.origin.endswith(".py"):
        return spec.origin
    remedy = "give a module that can be imported from there, as for `python -m`"
    print(f"rayflink: {problem} in {os.getcwd()} or on Python's path; {remedy}", file=sys.stderr)
    return None


def print_error(error: RayflinkError, path: str = "") -> None:
    """Print one of our errors with what is wrong and what to do; where the script is known, with the line in it."""
    text = str(error)
    line = _line_of(error.__traceback__, path)
    knows_better = isinstance(error, (JobFailed, NotSerializable)) or bool(getattr(error, "line", None))
    if line and not knows_better and line not in text:  # where it was raised is not where the mistake is
        text += f"\n  at {line}"
    print(f"rayflink: {text}", file=sys.stderr)


@contextmanager
def _as_main(path: str, arguments: Sequence[str], options: Mapping[str, str], folder: str) -> Iterator[None]:
    argv, search, before = sys.argv, list(sys.path), os.environ.get(COMMAND_LINE_VARIABLE)
    sys.argv = [path, *arguments]
    os.environ[COMMAND_LINE_VARIABLE] = as_words(options)
    try:
        put_on_path(listed_python_files(options.get(PYTHON_FILES.key)))  # the program itself may import from them
        sys.path.insert(0, folder)
        yield
    finally:
        sys.argv, sys.path[:] = argv, search
        if before is None:
            os.environ.pop(COMMAND_LINE_VARIABLE, None)
        else:
            os.environ[COMMAND_LINE_VARIABLE] = before


def _exit_code(exit: SystemExit) -> int:
    if exit.code is None:
        return OK
    if isinstance(exit.code, int):
        return exit.code
    print(exit.code, file=sys.stderr)
    return FAILED


def _print_users_traceback(error: Exception, path: str, stream: TextIO) -> None:
    """Print the traceback from the script's first frame on, without ours; a script that does not compile has none."""
    tb = error.__traceback__
    while tb is not None and not _is_script(tb, path):
        tb = tb.tb_next
    if tb is None:
        stream.write("".join(traceback.format_exception(type(error), error, None)))
    else:
        stream.write(users_traceback(error, tb))


def _line_of(tb: TracebackType | None, path: str) -> str:
    """Return "file:line" of the innermost frame of the script."""
    line = ""
    while path and tb is not None:
        if _is_script(tb, path):
            line = f"{path}:{tb.tb_lineno}"
        tb = tb.tb_next
    return line


def _is_script(tb: TracebackType, path: str) -> bool:
    return os.path.abspath(tb.tb_frame.f_code.co_filename) == os.path.abspath(path)


__all__ = ["FAILED", "INTERRUPTED", "OK", "TERMINATED", "USAGE", "is_sql", "module_file", "print_error", "run_script"]
