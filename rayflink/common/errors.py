"""The errors that users meet, each with what was found against what was wanted, and the remedy.

Arguments are positional, so that every error survives the way from one process to another.
"""

from __future__ import annotations

from typing import NoReturn

from rayflink.state.errors import RayflinkError

from .text_output.bounded_text import TookTooLong, bounded_repr, bounded_str

__all__ = [
    "ConfigError",
    "ConnectorError",
    "ControlPlaneTimeout",
    "InvalidFunction",
    "InvalidTypesError",
    "JobCancelled",
    "JobExecutionError",
    "JobFailed",
    "NoResourceAvailable",
    "NotSerializable",
    "PlanError",
    "RayCannotStart",
    "RayflinkError",
    "SuppressRestarts",
    "TaskLost",
    "TypeMismatch",
    "assert_never",
    "described",
    "shorten",
]


def assert_never(value: NoReturn) -> NoReturn:
    """Close a `match` over all members of a union: mypy rejects the call while a member is missing.

    `typing.assert_never` is the same from Python 3.11 on.

    Raises:
        AssertionError: a value that the union does not have got here.
    """
    raise AssertionError(f"found {shorten(value)}, which no branch handles; this is a defect of the runtime")


def shorten(value: object, limit: int = 200) -> str:
    """Return `repr(value)` in at most `limit` characters, from 20; a repr that raises becomes the name of the type.

    So does one that takes longer than a second.
    """
    try:
        text, note = bounded_repr(value, limit)
    except TookTooLong as late:
        return f"<{type(value).__name__} whose repr {late}>"[:limit]
    except Exception as error:  # a user's __repr__ may raise anything, and must not hide the error being reported
        return f"<{type(value).__name__} whose repr raises {type(error).__name__}>"[:limit]
    return text[: limit - len(note)] + note if note else text


def described(error: BaseException) -> str:
    """Return the name of an error's type and its text, cut after 10,000 characters.

    Where `__str__` itself raises or takes longer than a second, that is said instead.
    """
    kind = type(error).__name__
    try:
        return f"{kind}: {bounded_str(error)}"
    except TookTooLong as late:
        return f"{kind}: <its str() {late}>"
    except Exception as second:  # a user's __str__ may raise anything, and must not hide the error being reported
        return f"{kind}: <its str() raises {type(second).__name__}>"


class ConfigError(RayflinkError):
    """An option or an environment variable has a value that it cannot take.

    Args:
        key: of the option; the name of the variable, in capitals.
        value: what it has.
        wanted: what it takes.
        remedy: what to change.
        line: where it was set, as `Configuration.origin` says; "" where that is not known.
    """

    def __init__(self, key: str, value: str, wanted: str, remedy: str, line: str = "") -> None:
        super().__init__(key, value, wanted, remedy, line)
        self.key, self.value, self.wanted, self.remedy, self.line = key, value, wanted, remedy, line

    def __str__(self) -> str:
        origin = f" ({self.line})" if self.line else ""
        what = "environment variable" if self.key.isupper() else "option"
        return f"{what} {self.key!r}{origin}: found {self.value}, wanted {self.wanted}; {self.remedy}"


class ConnectorError(RayflinkError):
    """An outside system cannot be used as a connector needs it; each connector has a class of its own.

    >>> str(ConnectorError("no brokers are named", "call set_bootstrap_servers('host:9092')"))
    "no brokers are named; call set_bootstrap_servers('host:9092')"

    Args:
        problem: what was found, and what was wanted.
        remedy: what to do.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem, self.remedy = problem, remedy

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}"


class PlanError(RayflinkError):
    """A program asks for something no job graph can be made of."""

    def __init__(self, problem: str, remedy: str, line: str = "") -> None:
        super().__init__(problem, remedy, line)
        self.problem, self.remedy, self.line = problem, remedy, line

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}{_at(self.line)}"


class InvalidFunction(PlanError, TypeError):
    """A step of the program was passed a function that cannot be called as the step calls it."""


class InvalidTypesError(RayflinkError, TypeError):
    """A declared type is not one, or cannot be made of what was given."""

    def __init__(self, problem: str, remedy: str, line: str = "") -> None:
        super().__init__(problem, remedy, line)
        self.problem, self.remedy, self.line = problem, remedy, line

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}{_at(self.line)}"


class TypeMismatch(InvalidTypesError):
    """A value is not of the type the program declares.

    Args:
        where: what was being checked, for example ``result of map 'parse'``.
        path: position inside the value, for example ``.price`` or ``[2].f0``; empty for the value itself.
        actual: type and shortened form of what stands there.
        wanted: the declared type there.
        remedy: what to change.
        line: ``file:line`` of the program that declared the type, or empty.
    """

    def __init__(self, where: str, path: str, actual: str, wanted: str, remedy: str, line: str = "") -> None:
        super().__init__(f"{where}{path}: found {actual}, wanted {wanted}", remedy, line)
        self.args = (where, path, actual, wanted, remedy, line)
        self.where, self.path, self.actual, self.wanted = where, path, actual, wanted


class NotSerializable(RayflinkError):
    """Something of the program cannot be sent to another process."""

    def __init__(self, what: str, cause: str, line: str = "") -> None:
        super().__init__(what, cause, line)
        self.what, self.cause, self.line = what, cause, line
        self.remedy = "create it in open() instead of holding it in the program, or give its class __reduce__"

    def __str__(self) -> str:
        return f"could not serialize {self.what}: {self.cause}; {self.remedy}{_at(self.line)}"


class JobExecutionError(RayflinkError):
    """A job ended otherwise than by finishing."""

    def __init__(self, job_id: str, reason: str, remedy: str) -> None:
        super().__init__(job_id, reason, remedy)
        self.job_id, self.reason, self.remedy = job_id, reason, remedy

    def __str__(self) -> str:
        return f"job {self.job_id} {self.reason}; {self.remedy}"


class JobFailed(JobExecutionError):
    """A function of the program raised, and no restart was left.

    Args:
        job_id: 32 hex digits.
        operator: name of the operator.
        subtask: index in [0, parallelism).
        record: the record it worked on, shortened (see `shorten`); empty where there was none.
        user_traceback: the traceback as text, from the user's function on.
        call_site: ``file:line`` of the program that created the operator, or empty.
    """

    def __init__(
        self, job_id: str, operator: str, subtask: int, record: str, user_traceback: str, call_site: str = ""
    ) -> None:
        lines = user_traceback.strip().splitlines()
        origin = f" (created at {call_site})" if call_site else ""
        if len(lines) == 1:  # no line of the program was in it: what to correct stands in the reason
            where, remedy = f"{operator!r}{origin}", "correct that and submit the job again"
        else:
            where, remedy = repr(operator), f"correct {operator!r}{origin} and submit the job again"
        super().__init__(job_id, f"failed in {where}, subtask {subtask}: {lines[-1] if lines else ''}", remedy)
        self.args = (job_id, operator, subtask, record, user_traceback, call_site)
        self.operator, self.subtask, self.record = operator, subtask, record
        self.user_traceback, self.call_site = user_traceback, call_site

    def __str__(self) -> str:
        record = f"\nrecord: {self.record}" if self.record else ""
        traceback = self.user_traceback if "\n" in self.user_traceback.strip() else ""
        return f"{super().__str__()}{record}\n{traceback}".rstrip()


class JobCancelled(JobExecutionError):
    """A job was cancelled before it finished.

    Args:
        job_id: 32 hex digits.
        by: who wanted it to end, or the name of a signal.
        newest: path of its newest checkpoint or savepoint that stays; "" where there is none.
        deleted: how many of its checkpoints were deleted; 0 where it had none, or they stay.
        directory: where those were; "": in memory.
    """

    def __init__(self, job_id: str, by: str, newest: str = "", deleted: int = 0, directory: str = "") -> None:
        super().__init__(job_id, f"was cancelled by {by}", _after_cancellation(newest, deleted, directory))
        self.args = (job_id, by, newest, deleted, directory)
        self.by, self.newest, self.deleted, self.directory = by, newest, deleted, directory


def _after_cancellation(newest: str, deleted: int, directory: str) -> str:
    """Describe what happened to the checkpoints of a cancelled job, and how to go on from one."""
    anew = "from its start, and what its sinks have written already is written again"
    if newest:
        return f"it can go on from {newest} (-s, execution.state-recovery.path); without that it begins {anew}"
    if not deleted:
        return f"it had no checkpoint to go on from: started again, it begins {anew}"
    where = f"in {directory} " if directory else "in memory "
    keep = "execution.checkpointing.externalized-checkpoint-retention: RETAIN_ON_CANCELLATION"
    if not directory:
        keep = f"execution.checkpointing.dir and {keep}"
    kept_by = f"set {keep} to keep them, or end a job on a cluster by `rayflink stop`, which takes a savepoint"
    return f"its checkpoints {where}were deleted with it: started again, it begins {anew}; {kept_by}"


class DriverEnded(JobExecutionError):
    """A signal ended the program that waited for a job; the job goes on.

    Args:
        by: name of the signal.
    """

    def __init__(self, job_id: str, by: str) -> None:
        end = f"`rayflink cancel {job_id}` ends it now, `rayflink stop {job_id}` with a savepoint"
        remedy = f"{end}; set execution.shutdown-on-attached-exit to end it with its driver"
        super().__init__(job_id, f"goes on without its driver, which was ended by {by}", remedy)
        self.args = (job_id, by)
        self.by = by


class SuppressRestarts(RayflinkError):
    """An error that a restart would only repeat: the job fails at once, whatever its restart strategy.

    A function that raises it, or a subclass, or another error because of it (`raise ... from`), ends its job.
    Flink's SuppressRestartsException.

    >>> def parse(line):
    ...     if not line.startswith("v2,"):
    ...         raise SuppressRestarts("found a line of another version than 2", "read it with the old program")

    Args:
        problem: what is wrong.
        remedy: what to do about it.
    """

    def __init__(self, problem: str, remedy: str = "correct this, then submit the job again") -> None:
        super().__init__(problem, remedy)
        self.problem, self.remedy = problem, remedy

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}"


class TaskLost(RayflinkError):
    """The process of a task died or stopped answering.

    Args:
        task: its name and subtask.
        place: its host and process; empty where it died before it said so.
        silent_ms: time since it was heard of last; 0 where it never was.
        cause: what was seen of its end.
    """

    def __init__(self, task: str, place: str, silent_ms: int, cause: str) -> None:
        super().__init__(task, place, silent_ms, cause)
        self.task, self.place, self.silent_ms, self.cause = task, place, silent_ms, cause
        self.remedy = (
            "look in the node's logs for a memory kill, in its functions for os._exit() or a crash of native code, "
            "then submit the job again"
        )

    def __str__(self) -> str:
        place = f" on {self.place}" if self.place else ""
        silent = f", silent for {self.silent_ms} ms" if self.silent_ms else ""
        return f"lost task {self.task}{place}{silent}: {self.cause}; {self.remedy}"


class NoResourceAvailable(RayflinkError):
    """The cluster did not give the slots a job needs in time."""

    def __init__(self, wanted: str, resources: str, waited_ms: int) -> None:
        super().__init__(wanted, resources, waited_ms)
        self.wanted, self.resources, self.waited_ms = wanted, resources, waited_ms
        self.remedy = "lower the parallelism, add nodes, or raise slot.request.timeout"

    def __str__(self) -> str:
        return f"no slots after {self.waited_ms} ms: wanted {self.wanted}, found {self.resources}; {self.remedy}"


class RayCannotStart(RayflinkError):
    """No Ray runs for the job, and none can be started on this machine.

    Args:
        cause: what starting it raised.
    """

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause
        self.remedy = (
            "see whether `ray start --head` works, and whether memory and the disk of its folder (RAY_TMPDIR or /tmp) "
            "have room; set RAY_ADDRESS to join a running cluster; a job with `execution.target: local`, as by "
            "`rayflink run --local`, needs no Ray"
        )

    def __str__(self) -> str:
        return f"Ray could not be started on this machine: {self.cause}; {self.remedy}"


class ControlPlaneTimeout(RayflinkError):
    """A request to the coordinator or a task had no answer in time."""

    def __init__(self, request: str, target: str, waited_ms: int) -> None:
        super().__init__(request, target, waited_ms)
        self.request, self.target, self.waited_ms = request, target, waited_ms
        self.remedy = "see whether its node is alive (`ray status`); raise pekko.ask.timeout on a slow cluster"

    def __str__(self) -> str:
        return f"{self.request}: no answer from {self.target} within {self.waited_ms} ms; {self.remedy}"


def _at(line: str) -> str:
    return f" (at {line})" if line else ""
