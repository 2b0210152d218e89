"""`rayflink run` and `rayflink explain`: commands on a program."""

from __future__ import annotations

import argparse
import os
import sys

from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options
from rayflink.datastream.environment import written_steps
from rayflink.state.storage.storage_schemes import from_root

from . import plans
from .given_options import configuration_of, of_command_line
from .script import FAILED, OK, USAGE, module_file, run_script


def run(chosen: argparse.Namespace) -> int:
    """Run a program or a stored job and return the exit code."""
    for flag in ("--wait",) * chosen.wait + ("--allow-waiting",) * chosen.allow_waiting:
        if not chosen.detached:
            print(f"rayflink: {flag} requires -d; without -d `run` waits for the end of the jobs", file=sys.stderr)
            return USAGE
    if chosen.restore is not None:
        from .restoring import run_stored  # it needs Ray, which a program may run without

        return run_stored(chosen, Configuration.from_dict(_script_options(chosen)), configuration_of(chosen))
    if not _take_program(chosen):
        return USAGE
    script_options = _script_options(chosen)
    with written_steps() as written:
        code = run_script(chosen.program, chosen.script_arguments, script_options, chosen.is_module)
    forgotten = [line for line in written.values() if line]
    if code != OK or not forgotten:
        return code
    problem = f"{chosen.program} defined steps (the first at {forgotten[0]}) but never called execute(), so none ran"
    print(f"rayflink: {problem}; call execute() of the environment after the last step", file=sys.stderr)
    return FAILED


def explain(chosen: argparse.Namespace) -> int:
    """Show what a program would run and return the exit code."""
    if not _take_program(chosen):
        return USAGE
    script_options = _script_options(chosen)
    planned, code = plans.plans_of(chosen.program, chosen.script_arguments, script_options, chosen.is_module)
    if not planned:
        if code == OK:
            message = f"rayflink: {chosen.program} called no execute(), so there is nothing to explain"
            print(message, file=sys.stderr)
        return code or FAILED
    if chosen.svg is not None:
        try:
            written = plans.write_svg(planned, chosen.svg)
        except OSError as error:
            problem = f"cannot write {error.filename or chosen.svg}: {error.strerror or error}"
            print(f"rayflink: {problem}; give --svg a file in a folder that exists and can be written", file=sys.stderr)
            return USAGE
        for path in written:
            print(path)
    else:
        print(plans.as_json(planned) if chosen.json else plans.as_text(planned))
    if code != OK:
        count = "its first job" if len(planned) == 1 else f"its first {len(planned)} jobs"
        print(f"rayflink: the program ended early because no job ran; this is the plan of {count}", file=sys.stderr)
    return OK


def _take_program(chosen: argparse.Namespace) -> bool:
    """Set `program`, `is_module` and its arguments; False, with a message, where there is no such program."""
    named = list(chosen.script)
    chosen.is_module = chosen.module is not None
    if chosen.is_module:
        chosen.program = chosen.module
    elif named:
        chosen.program = named.pop(0)
    else:
        remedy = "give the path of a Python or SQL file, or a module with -m"
        print(f"rayflink: the program is missing; {remedy}", file=sys.stderr)
        return False
    chosen.script_arguments = [*named, *chosen.script_arguments]
    if chosen.is_module:
        return module_file(chosen.program) is not None
    if os.path.isfile(chosen.program):
        return True
    remedy = "give the path of a Python or SQL file"
    print(f"rayflink: there is no program {chosen.program!r} in {os.getcwd()}; {remedy}", file=sys.stderr)
    return False


def _script_options(chosen: argparse.Namespace) -> dict[str, str]:
    configuration_of(chosen)  # file and environment are read by the program: what is wrong there is said before
    configuration = of_command_line(chosen)
    if chosen.parallelism is not None:
        configuration.set(options.PARALLELISM, chosen.parallelism)
    if chosen.local:
        configuration.set(options.TARGET, "local")
    if chosen.detached:
        configuration.set(options.ATTACHED, False)
    if getattr(chosen, "wait", False):
        configuration.set(options.WAIT_UNTIL_RUNNING, True)
    if getattr(chosen, "allow_waiting", False):
        configuration.set(options.ALLOW_WAITING, True)
    if getattr(chosen, "from_savepoint", None) is not None:  # `explain` has none
        configuration.set(options.RESTORE_PATH, from_root(chosen.from_savepoint))
    if getattr(chosen, "allow_non_restored_state", False):
        configuration.set(options.IGNORE_UNCLAIMED_STATE, True)
    return configuration.to_dict()


__all__ = ["explain", "run"]
