"""`rayflink`: run and explain programs; list, show, end and read the logs of jobs; savepoints and state; options."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import rayflink
from rayflink.common.errors import ConfigError, RayflinkError
from rayflink.common.options.option_values import LOG_LEVELS

from .argument_types import EXPORT_FORMATS, at_least_one, seconds, wanted_parallelism
from .given_options import options_file, show_logs_as_chosen, show_options
from .script import FAILED, INTERRUPTED, OK, USAGE, print_error

if TYPE_CHECKING:
    Subcommands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

Command: TypeAlias = Callable[[argparse.Namespace], int]
"""A command: from the arguments to the exit code."""
_ENDED = "`list -a`, `status` and `logs` also show jobs that have ended, as long as their nodes exist."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 success, 1 failure, 2 wrong usage, 130 interrupted or cancelled."""
    own_arguments, script_arguments = _split(list(sys.argv[1:] if arguments is None else arguments))
    parser = _parser()
    chosen, unknown = parser.parse_known_args(own_arguments)
    if unknown:
        takes_program = "script" in vars(chosen)
        remedy = "; put -- before arguments of the program that begin with a dash" if takes_program else ""
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{remedy}")
    chosen.script_arguments = script_arguments
    try:
        with options_file(chosen.config):
            show_logs_as_chosen(chosen)
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


def _command(module: str, function: str) -> Command:
    """Return a command whose module is loaded when it runs, so that `rayflink --help` loads no runtime."""

    def run(chosen: argparse.Namespace) -> int:
        command: Command = getattr(import_module(f".{module}", __package__), function)
        return command(chosen)

    return run


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Split the arguments into those of `rayflink` and those after `--`, which are the script's."""
    if "--" not in arguments:
        return arguments, []
    position = arguments.index("--")
    return arguments[:position], arguments[position + 1 :]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rayflink", description="Stream programs on Ray.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"rayflink {rayflink.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_programs(commands)
    _add_jobs(commands)
    _add_states(commands)

    _add_sql(commands)
    _add_gateway(commands)
    _add_cluster(commands)
    _add_pages(commands)
    _add_history_server(commands)

    config = commands.add_parser(
        "config", help="show options", description="Show options with type, default, meaning and value."
    )
    config.add_argument("name", metavar="NAME", nargs="?", help="key of an option (default: all options)")
    config.add_argument(
        "--set", action="store_true", help="show only options set by file, environment or -D, with their origin"
    )
    config.add_argument("--json", action="store_true", help="print JSON")
    config.set_defaults(command=show_options)
    _add_options(config)

    version = commands.add_parser("version", help="show the version", description="Show the version.")
    version.set_defaults(command=_version, config=None)
    return parser


def _add_programs(commands: Subcommands) -> None:
    about = "The arguments of the program follow it; put -- before arguments that begin with a dash."
    run = commands.add_parser("run", help="run a program", description=f"Run a program. {about}")
    _add_script(run)
    _add_python_options(run)
    run.add_argument("--local", action="store_true", help="run the program in this process instead of on Ray")
    text = "submit the jobs to the running cluster and do not wait for them"
    run.add_argument("-d", "--detached", action="store_true", help=text)
    text = "with -d: wait until all tasks are running; exit with 1 if the job ends before that"
    run.add_argument("--wait", action="store_true", help=text)
    text = "with -d: submit a job even if the cluster is too small, and let it wait for nodes"
    run.add_argument("--allow-waiting", action="store_true", help=text)
    text = "start the jobs of the program from this checkpoint or savepoint"
    run.add_argument("-s", "--from-savepoint", "--fromSavepoint", metavar="PATH", help=text)
    text = "start even if some of its state belongs to no operator of the job; that state is dropped"
    run.add_argument("-n", "--allow-non-restored-state", "--allowNonRestoredState", action="store_true", help=text)
    text = "instead of a program: start the stored job with this id or checkpoint folder, from its newest checkpoint"
    run.add_argument("--restore", choices=("latest",), help=text)
    text = "with --restore and an id: the checkpoint directory of the job, or its high-availability.storageDir"
    run.add_argument("--checkpoint-dir", metavar="DIR", help=text)
    run.set_defaults(command=_command("programs", "run"))

    explain = commands.add_parser(
        "explain", help="show the plan of a program", description=f"Show what execute() would run. {about}"
    )
    _add_script(explain)
    form = explain.add_mutually_exclusive_group()
    form.add_argument("--svg", metavar="FILE", type=Path, help="draw the job graph as SVG into FILE")
    form.add_argument("--json", action="store_true", help="print the execution plan as Flink's JSON")
    explain.set_defaults(command=_command("programs", "explain"), local=False, detached=False)


def _add_sql(commands: Subcommands) -> None:
    about = "Run statements of SQL: typed in a terminal, from files, from -e, or from a pipe."
    sql = commands.add_parser("sql", help="run statements of SQL, typed or from files", description=about)
    text = "run the statements of FILE and end (repeatable)"
    sql.add_argument("-f", "--file", metavar="FILE", action="append", default=[], help=text)
    text = "run these statements and end (repeatable)"
    sql.add_argument("-e", "--execute", metavar="SQL", action="append", default=[], help=text)
    text = "run the statements of FILE first, such as CREATE CATALOG (repeatable)"
    sql.add_argument("-i", "--init", metavar="FILE", action="append", default=[], help=text)
    sql.add_argument("--format", choices=("text", "csv", "json"), help="format of the rows (default: text)")
    sql.add_argument("--local", action="store_true", help="run jobs in this process instead of on Ray")
    sql.add_argument("--gateway", metavar="URL", help="run the statements at a SQL gateway, such as localhost:8083")
    sql.set_defaults(command=_command("sql_shell", "run"))
    _add_options(sql)


def _add_gateway(commands: Subcommands) -> None:
    about = "Run statements that Flink's SQL client, its JDBC driver and others send by HTTP."
    gateway = commands.add_parser("sql-gateway", help="serve Flink's SQL client and JDBC driver", description=about)
    ways = gateway.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, text in (
        ("run", "run the gateway until Ctrl-C"),
        ("start", "start the gateway in the background"),
        ("stop", "stop the gateway of the background"),
        ("status", "show the gateway of the background"),
    ):
        subparser = ways.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        subparser.set_defaults(command=_command("sql_gateway", name))
        _add_options(subparser)
        if name in ("run", "start"):
            subparser.add_argument("--local", action="store_true", help="run jobs in this process instead of on Ray")
        if name == "run":
            subparser.add_argument("--state-file", metavar="FILE", help="write its process id and address to FILE")


def _add_cluster(commands: Subcommands) -> None:
    about = "Run a session cluster: a dispatcher that takes jobs, looks after them, and answers Flink's REST interface."
    cluster = commands.add_parser("cluster", help="start, stop, recover a session cluster", description=about)
    ways = cluster.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, text in (
        ("start", "start the dispatcher on the running Ray cluster"),
        ("run", "run the dispatcher in this process until Ctrl-C"),
        ("stop", "stop the dispatcher; its jobs on Ray go on"),
        ("status", "show the cluster that was started here"),
        ("recover", "start the dispatcher on another cluster, and wait until all its jobs run again"),
        ("upgrade", "let dispatcher and jobs go on with the installed version, one after the other, by savepoints"),
    ):
        subparser = ways.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        subparser.set_defaults(command=_command("cluster", name))
        _add_options(subparser)
        if name in ("run", "start", "recover", "upgrade"):
            text = "run dispatcher and jobs in one process of this machine, without Ray"
            subparser.add_argument("--local", action="store_true", help=text)
    ways.choices["run"].add_argument("--state-file", metavar="FILE", help="write its process id and address to FILE")
    text = "cancel all jobs first"
    ways.choices["stop"].add_argument("--cancel-jobs", action="store_true", help=text)
    text = "do nothing, and show what would become of each job; the exit code is 1 where one would not be upgraded"
    ways.choices["upgrade"].add_argument("--dry-run", action="store_true", help=text)


def _add_history_server(commands: Subcommands) -> None:
    about = "Show jobs that have ended, from the archives in historyserver.archive.fs.dir."
    history = commands.add_parser("history-server", help="serve the pages of jobs that have ended", description=about)
    ways = history.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, text in (
        ("run", "run the history server until Ctrl-C"),
        ("start", "start the history server in the background"),
        ("stop", "stop the history server of the background"),
        ("status", "show the history server of the background"),
    ):
        subparser = ways.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        subparser.set_defaults(command=_command("history_server", name))
        _add_options(subparser)
        if name == "run":
            subparser.add_argument("--state-file", metavar="FILE", help="write its process id and address to FILE")


def _add_pages(commands: Subcommands) -> None:
    about = "Show jobs with their rates, lags and load, and what holds them up, in a terminal or once."
    top = commands.add_parser("top", help="show live figures of all jobs in a terminal", description=about)
    top.add_argument("--address", metavar="URL", help="of the cluster (default: the one that was started here, or Ray)")
    top.add_argument("--every", metavar="SECONDS", type=seconds, default=2.0, help="time between two looks (default 2)")
    top.add_argument("--once", action="store_true", help="print the list of jobs once")
    top.set_defaults(command=_command("top", "top"))
    _add_options(top)
    about = "Open the dashboard of the cluster in a browser; without a cluster, serve that of the jobs on Ray."
    page = commands.add_parser("ui", help="open the dashboard in a browser", description=about)
    text = "port to listen on where no cluster was started here (default: a free one)"
    page.add_argument("--port", type=int, default=0, help=text)
    page.add_argument("--no-browser", action="store_true", help="only print the address")
    page.set_defaults(command=_command("ui", "ui"))
    _add_options(page)


def _add_jobs(commands: Subcommands) -> None:
    listing = commands.add_parser(
        "list", help="list the jobs of the cluster", description=f"List the running jobs. {_ENDED}"
    )
    listing.add_argument("-a", "--all", action="store_true", help="also list jobs that have ended")
    listing.set_defaults(command=_command("jobs", "list_jobs"))
    _add_options(listing)
    for name, text, command in (
        ("status", "show the states, records, rates, watermarks and failures of a job", _command("status", "status")),
        ("cancel", "cancel a job and wait until it has ended", _command("jobs", "cancel")),
        ("rescale", "change the parallelism of operators of a running job", _command("rescaling", "rescale")),
        ("stop", "stop a job with a savepoint and wait until it has ended", _command("savepoints", "stop")),
        ("restart", "start a job of a session cluster again", _command("restarts", "restart")),
        ("checkpoints", "show the statistics of a job's checkpoints", _command("savepoints", "checkpoints")),
        ("logs", "show the output and log lines of a job's tasks and coordinator", _command("jobs", "show_log")),
    ):
        about = f"{text[0].upper()}{text[1:]}. {_ENDED}"
        subparser = commands.add_parser(name, help=text, description=about)
        subparser.add_argument("job", metavar="JOB", help="id of the job, the beginning of its id, or its name")
        subparser.set_defaults(command=command)
        _add_options(subparser)
    text = "uid, name or id of an operator, and its new parallelism; operators chained to it get the same"
    rescaling = commands.choices["rescale"]
    rescaling.add_argument("wanted", metavar="OPERATOR=N", nargs="+", type=wanted_parallelism, help=text)
    _add_restart(commands.choices["restart"])
    logs = commands.choices["logs"]
    logs.add_argument("--vertex", metavar="NAME", help="only lines of vertices whose name contains NAME")
    logs.add_argument("--subtask", type=int, metavar="N", help="only lines of subtask N, counted from 0")
    text = "only log lines of this level or a higher one"
    logs.add_argument("--level", choices=LOG_LEVELS, type=str.upper, help=text)
    logs.add_argument("-f", "--follow", action="store_true", help="continue until the job has ended")
    stop = commands.choices["stop"]
    stop.add_argument(
        "--drain", action="store_true", help="first fire all timers and windows, as at the end of the input"
    )
    text = "parent folder of the savepoint (default: execution.checkpointing.savepoint-dir)"
    stop.add_argument("-p", "--savepoint-path", metavar="DIR", help=text)
    text = "take no savepoint: end the sources and process the records already read"
    stop.add_argument("--no-savepoint", action="store_true", help=text)
    checkpoints = commands.choices["checkpoints"]
    text = "number of a checkpoint: show its details per vertex"
    checkpoints.add_argument("checkpoint", metavar="NUMBER", nargs="?", type=at_least_one, help=text)
    text = "with NUMBER: show the details per subtask"
    checkpoints.add_argument("--subtasks", action="store_true", help=text)
    checkpoints.add_argument("--json", action="store_true", help="print JSON; with NUMBER, per subtask")
    shown = commands.choices["status"]
    form = shown.add_mutually_exclusive_group()
    form.add_argument("--metrics", action="store_true", help="show every metric of the job with its identifier")
    form.add_argument("--json", action="store_true", help="print JSON; with --watch one object per line")
    text = "refresh every SECONDS (default 2) until the job has ended"
    shown.add_argument("--watch", metavar="SECONDS", nargs="?", type=seconds, const=2.0, help=text)


def _add_restart(parser: argparse.ArgumentParser) -> None:
    text = "uid, name or id of an operator, and its new parallelism; the others have as many subtasks as before"
    parser.add_argument("wanted", metavar="OPERATOR=N", nargs="*", type=wanted_parallelism, help=text)
    start = parser.add_mutually_exclusive_group()
    text = "start from this checkpoint or savepoint (default: the newest; a running job takes a savepoint and stops)"
    start.add_argument("-s", "--from-savepoint", metavar="PATH", help=text)
    start.add_argument("--from-nothing", action="store_true", help="start without state, and read the input again")
    text = "start even if some state belongs to no operator of the job; that state is dropped"
    parser.add_argument("-n", "--allow-non-restored-state", action="store_true", help=text)


def _add_states(commands: Subcommands) -> None:
    taken = commands.add_parser(
        "savepoint",
        help="take or delete a savepoint, or check a program against one",
        usage="rayflink savepoint JOB [DIR] | --dispose PATH | check JOB.py SAVEPOINT [-- ARG ...]",
        description="Take a savepoint of a running job, which continues; delete a savepoint; or check for each state "
        "of a savepoint whether a program would keep, migrate or refuse it (exit code 1 if it refuses one).",
    )
    taken.add_argument(
        "words", nargs="*", metavar="JOB [DIR]", help="id or name of the job; parent folder of the savepoint"
    )
    taken.add_argument("-d", "--dispose", metavar="PATH", help="delete the savepoint at PATH")
    taken.add_argument("--json", action="store_true", help="with check: print the verdicts as JSON")
    text = "with check: allow dropping the state of operators that the program does not have"
    taken.add_argument("-n", "--allow-non-restored-state", action="store_true", help=text)
    text = "with check: do not call `open` of the program's functions, where most states are declared"
    taken.add_argument("--no-open", action="store_true", help=text)
    taken.set_defaults(command=_command("savepoints", "savepoint"))
    _add_options(taken)

    state = commands.add_parser("state", help="show, compare or export the state in a savepoint",
                                description="Read savepoints and checkpoints without their job.")  # fmt: skip
    ways = state.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, text, command in (
        ("show", "list operators and states, or the rows of a state", _command("states", "show")),
        ("diff", "compare two savepoints: added, removed and changed rows", _command("states", "diff")),
        ("export", "write the rows of a state to a file", _command("states", "export")),
    ):
        subparser = ways.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        subparser.set_defaults(command=command)
        for place in ("before", "after") if name == "diff" else ("path",):
            subparser.add_argument(place, metavar="PATH", help="folder of a savepoint or checkpoint")
        text = "import and call the classes and functions that the snapshot names, not only plain types"
        subparser.add_argument("--trust", action="store_true", help=text)
        count = None if name == "export" else "?"
        subparser.add_argument("operator", metavar="OPERATOR", nargs=count, help="uid, name or id of the operator")
        subparser.add_argument("state", metavar="STATE", nargs=count, help="name of the state")
        _add_options(subparser)
        if name == "export":
            subparser.add_argument(
                "file", metavar="FILE", help="file to write: .parquet, .csv or .json (one object per line)"
            )
            subparser.add_argument(
                "--format", choices=EXPORT_FORMATS, help="format of the file (default: by its extension)"
            )
        else:
            subparser.add_argument("--json", action="store_true", help="print JSON")
    shown = ways.choices["show"]
    shown.add_argument("--limit", type=int, default=20, metavar="N", help="number of rows to show (default 20; 0: all)")
    shown.add_argument("--count", action="store_true", help="count the rows of each state; this reads all of them")
    ways.choices["diff"].add_argument("--all", action="store_true", help="also list states without differences")
    _add_matches(ways)


def _add_matches(ways: Subcommands) -> None:
    text = "show the partial matches of patterns in words: their step, events and times"
    matches = ways.add_parser("matches", help=text, description=f"{text[0].upper()}{text[1:]}.")
    matches.set_defaults(command=_command("matches", "matches"))
    text = "folder of a savepoint or checkpoint; or id or name of a running job, whose newest checkpoint is read"
    matches.add_argument("path", metavar="PATH|JOB", help=text)
    text = "uid, name or id of the operator (default: the only one that matches a pattern)"
    matches.add_argument("operator", metavar="OPERATOR", nargs="?", help=text)
    matches.add_argument("key", metavar="KEY", nargs="?", help="the key as it is shown (default: all keys)")
    text = "number of partial matches to show (default 20; 0: all)"
    matches.add_argument("--limit", type=int, default=20, metavar="N", help=text)
    text = "import and call the classes and functions that the snapshot names, not only plain types"
    matches.add_argument("--trust", action="store_true", help=text)
    matches.add_argument("--json", action="store_true", help="print JSON, a line for each partial match")
    _add_options(matches)


def _add_script(parser: argparse.ArgumentParser) -> None:
    text = "the program and its arguments; or an SQL script, FILE.sql"
    parser.add_argument("script", metavar="JOB.py [ARG]", nargs="*", help=text)
    parser.add_argument("-m", "--module", metavar="MODULE", help="run a module, as `python -m` does")
    parser.add_argument("-p", "--parallelism", type=at_least_one, metavar="N", help="default parallelism of operators")
    _add_options(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    text = "read options from this YAML file first (default: $RAYFLINK_CONF, else rayflink.yaml in $RAYFLINK_CONF_DIR)"
    parser.add_argument("--config", metavar="FILE", type=Path, help=text)
    parser.add_argument(
        "-D", action="append", default=[], dest="options", metavar="key=value", help="set an option (repeatable)"
    )


def _add_python_options(parser: argparse.ArgumentParser) -> None:
    """Add Flink's names of the options by which a program takes code along."""
    for short, long, option, text in (
        ("-pyfs", "--pyFiles", "python.files", "modules to import: files, folders and zip files, with commas between"),
        ("-pyarch", "--pyArchives", "python.archives", "archives to unpack where functions run: FILE or FILE#FOLDER"),
        ("-pyreq", "--pyRequirements", "python.requirements", "a requirements file, or FILE#FOLDER with its packages"),
        ("-pyexec", "--pyExecutable", "python.executable", "interpreter that runs functions on Ray"),
    ):
        as_option = f"{option}={{}}".format
        parser.add_argument(
            short, long, action="append", default=[], dest="options", metavar="PATH", type=as_option, help=text
        )


def _version(chosen: argparse.Namespace) -> int:
    print(f"rayflink {rayflink.__version__}")
    return OK


if __name__ == "__main__":
    raise SystemExit(main())
