"""`rayflink`: run and explain programs; list, show and cancel jobs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rayflink
from rayflink.common import options
from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError, RayflinkError

from .script import FAILED, INTERRUPTED, OK, USAGE, print_error, run_script

FILE_VARIABLE = "RAYFLINK_CONF"
"""Where the environment of a program names the file of options it begins with."""
_ENDED = (
    "A job that has ended is gone once its driver has the result or the failure, and tells of it; where its driver is "
    "gone, it stays for a minute, with its failures."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted or cancelled."""
    given, script_arguments = _split(list(sys.argv[1:] if arguments is None else arguments))
    chosen = _parser().parse_args(given)
    chosen.script_arguments = script_arguments
    try:
        with _options_file(chosen.config):
            return int(chosen.command(chosen))
    except ConfigError as error:
        print_error(error)
        return USAGE
    except RayflinkError as error:
        print_error(error)
        return FAILED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output, such as `head`, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Our arguments, and those after `--`, which are the script's."""
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rayflink", description="Stream programs on Ray.")
    parser.add_argument("--version", action="version", version=f"rayflink {rayflink.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    run = commands.add_parser("run", help="run a program", description="Run a program; what follows -- is for it.")
    _add_script(run)
    run.add_argument("--local", action="store_true", help="run in this process instead of on Ray")
    run.set_defaults(command=_run)

    explain = commands.add_parser(
        "explain", help="show the plan of a program", description="Show what a program's execute() would run."
    )
    _add_script(explain)
    form = explain.add_mutually_exclusive_group()
    form.add_argument("--svg", metavar="FILE", type=Path, help="draw the job graph into a file")
    form.add_argument("--json", action="store_true", help="print the execution plan in Flink's JSON form")
    explain.set_defaults(command=_explain, local=False)

    listing = commands.add_parser(
        "list", help="list the jobs that run on the cluster", description=f"List the jobs that run. {_ENDED}"
    )
    listing.set_defaults(command=_list)
    for name, text, command in (
        ("status", "show a job that runs: states, records, watermarks", _status),
        ("cancel", "cancel a job and wait until it has ended", _cancel),
    ):
        about = f"{text[0].upper()}{text[1:]}. {_ENDED}"
        one = commands.add_parser(name, help=text, description=about)
        one.add_argument("job", metavar="JOB", help="id of the job, or the beginning of it, or its name")
        one.set_defaults(command=command)
    shown = commands.choices["status"]
    shown.add_argument("--metrics", action="store_true", help="show every metric of the job, by its identifier")
    for sub in (listing, *(commands.choices[name] for name in ("status", "cancel"))):
        _add_options(sub)
    return parser


def _add_script(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("script", metavar="JOB.py", help="the program")
    parser.add_argument("-p", "--parallelism", type=_at_least_one, metavar="N", help="subtasks of each operator")
    _add_options(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    text = "begin with the options of a file of `key: value` lines ($RAYFLINK_CONF)"
    parser.add_argument("--config", metavar="FILE", type=Path, help=text)
    parser.add_argument(
        "-D", action="append", default=[], dest="options", metavar="key=value", help="set an option (repeatable)"
    )


def _at_least_one(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found {text!r}, wanted a whole number of at least 1")
    return int(text)


def _defined(chosen: argparse.Namespace) -> Configuration:
    """The options given by -D.

    Raises:
        ConfigError: one does not parse, or is not known.
    """
    configuration, _ = Configuration.from_args([f"-D{pair}" for pair in chosen.options])
    for key, near in configuration.unknown_options().items():
        remedy = f"did you mean {near[0]}?" if near else "see docs/configuration.md for all options"
        raise ConfigError(key, "an option nobody reads", "one that rayflink knows", remedy)
    configuration.check()
    return configuration


def _configuration(chosen: argparse.Namespace) -> Configuration:
    """The options of the file, and over them those given by -D.

    Raises:
        ConfigError: one does not parse, or one given by -D is not known; the file cannot be read.
    """
    path = os.environ.get(FILE_VARIABLE)
    if not path:
        return _defined(chosen)
    try:
        configuration = Configuration.from_file(path)
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "not a text in UTF-8"
        remedy = "write one `key: value` a line, see docs/configuration.md"
        raise ConfigError("--config", f"{path}: {problem}", "a file of options", remedy) from None
    configuration.check()
    return configuration.add_all(_defined(chosen))


@contextmanager
def _options_file(path: Path | None) -> Iterator[None]:
    """Let programs and commands find the file of options that the command line names."""
    before = os.environ.get(FILE_VARIABLE)
    if path is not None:
        os.environ[FILE_VARIABLE] = str(path.absolute())
    try:
        yield
    finally:
        if before is not None:
            os.environ[FILE_VARIABLE] = before
        else:
            os.environ.pop(FILE_VARIABLE, None)


def _script_options(chosen: argparse.Namespace) -> dict[str, str]:
    _configuration(chosen)  # the file is read by the program: what is wrong in it is said before
    configuration = _defined(chosen)
    if chosen.parallelism is not None:
        configuration.set(options.PARALLELISM, chosen.parallelism)
    if chosen.local:
        configuration.set(options.TARGET, "local")
    return configuration.to_dict()


def _is_missing(script: str) -> bool:
    if os.path.isfile(script):
        return False
    print(f"rayflink: there is no program {script!r} in {os.getcwd()}; give the path of a Python file", file=sys.stderr)
    return True


def _run(chosen: argparse.Namespace) -> int:
    if _is_missing(chosen.script):
        return USAGE
    from rayflink.datastream.environment import written_steps

    given = _script_options(chosen)
    with written_steps() as written:
        code = run_script(chosen.script, chosen.script_arguments, given)
    forgotten = [line for line in written.values() if line]
    if code != OK or not forgotten:
        return code
    problem = f"{chosen.script} defined steps (the first at {forgotten[0]}) but never called execute(), so none ran"
    print(f"rayflink: {problem}; call execute() of the environment behind the last step", file=sys.stderr)
    return FAILED


def _explain(chosen: argparse.Namespace) -> int:
    from . import plans

    if _is_missing(chosen.script):
        return USAGE
    planned, code = plans.plans_of(chosen.script, chosen.script_arguments, _script_options(chosen))
    if not planned:
        if code == OK:
            message = f"rayflink: {chosen.script} called no execute(), so there is nothing to explain"
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
        print(f"rayflink: the program ended early, as no job ran; shown is the plan of {count}", file=sys.stderr)
    return OK


def _list(chosen: argparse.Namespace) -> int:
    from .render import moment, table

    rows = [
        (job["jid"], job["name"], job["state"], moment(min(job["timestamps"].values(), default=None)))
        for job in _jobs(chosen)
    ]
    print(table(("id", "name", "state", "since"), rows) if rows else "no jobs")
    return OK


def _status(chosen: argparse.Namespace) -> int:
    from .render import exceptions_table, metric_lines, user_metrics_table, vertex_table

    found = _one_job(chosen)
    if found is None:
        return FAILED
    if chosen.metrics:
        print(metric_lines(found))
        return OK
    print(f"{found['name']}  {found['jid']}  {found['state']}\n\n{vertex_table(found['vertices'])}")
    counted = user_metrics_table(found["vertices"])
    if counted:
        print(f"\n{counted}")
    if found["exceptions"]:
        print(f"\n{exceptions_table(found['exceptions'])}")
    return OK


def _cancel(chosen: argparse.Namespace) -> int:
    from rayflink import launch

    found = _one_job(chosen)
    if found is None:
        return FAILED
    job = launch.attach(found["jid"], _configuration(chosen))
    job.cancel()
    result = job.wait()
    print(f"{found['name']}  {found['jid']}  {result.status.value}")
    return OK


def _one_job(chosen: argparse.Namespace) -> dict[str, Any] | None:
    """The job that is meant; None, with a message, where none or several are."""
    wanted = str(chosen.job)
    jobs = _jobs(chosen)
    found = [job for job in jobs if job["jid"].startswith(wanted) or job["name"] == wanted]
    if len(found) == 1:
        return found[0]
    known = "".join(f"\n  {job['jid']}  {job['name']}  {job['state']}" for job in found or jobs)
    if found:
        print(f"rayflink: {wanted!r} means {len(found)} jobs; give more of the id:{known}", file=sys.stderr)
    else:
        none = "none runs there (how a job has ended, its driver tells), or there is no cluster (see RAY_ADDRESS)"
        where = f"; there are:{known}" if known else f"; {none}"
        print(f"rayflink: no job {wanted!r} on the cluster{where}", file=sys.stderr)
    return None


def _jobs(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    from rayflink import launch

    return launch.list_jobs(_configuration(chosen))


if __name__ == "__main__":
    raise SystemExit(main())
