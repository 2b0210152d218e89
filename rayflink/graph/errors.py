"""Errors of a program before it runs; the messages begin with Flink's where Flink has one."""

from __future__ import annotations

from rayflink.common.errors import PlanError

__all__ = [
    "DuplicateUidError",
    "DuplicateVertexError",
    "EmptyProgramError",
    "ForwardParallelismError",
    "JobGraphVersionMismatch",
    "MissingTypeError",
    "PlanError",
    "UnknownTransformationError",
]


class EmptyProgramError(PlanError):
    """The program declares no operator."""

    def __init__(self) -> None:
        remedy = "Give a stream a sink, such as print(), before execute(); steps that have run are forgotten."
        super().__init__("No operators defined in streaming topology. Cannot execute.", remedy)
        self.args = ()

    def __str__(self) -> str:
        return f"{self.problem} {self.remedy}"


class UnknownTransformationError(PlanError):
    """The program holds a transformation of a kind the translation does not know."""

    def __init__(self, transformation: str) -> None:
        super().__init__(f"Unknown transformation: {transformation}", "use the kinds of rayflink.graph.transformations")
        self.args = (transformation,)


class MissingTypeError(PlanError):
    """The output type of a transformation was declared but cannot be determined."""

    def __init__(self, name: str, reason: str, line: str = "") -> None:
        problem = f"the output type of {name!r} cannot be determined: {reason}"
        super().__init__(problem, "correct output_type or leave it out", line)
        self.args = (name, reason, line)


class ForwardParallelismError(PlanError):
    """A forward edge joins operators of different parallelism."""

    def __init__(self, upstream: str, upstream_parallelism: int, downstream: str, downstream_parallelism: int) -> None:
        super().__init__(
            "Forward partitioning does not allow change of parallelism. "
            f"Upstream operation: {upstream} parallelism: {upstream_parallelism}, "
            f"downstream operation: {downstream} parallelism: {downstream_parallelism}",
            "You must use another partitioning strategy, such as broadcast, rebalance, shuffle or global.",
        )
        self.args = (upstream, upstream_parallelism, downstream, downstream_parallelism)

    def __str__(self) -> str:
        return f"{self.problem} {self.remedy}"


class DuplicateUidError(PlanError):
    """Two operators claim one identity, so their state could not be distinguished.

    Args:
        what: "uid" or "uid hash".
        value: what both have.
        first, second: each operator with the line that created it.
    """

    def __init__(self, what: str, value: str, first: str, second: str) -> None:
        super().__init__(f"{first} and {second} have the same {what} {value!r}", f"give one of them another {what}")
        self.args = (what, value, first, second)


class JobGraphVersionMismatch(PlanError):
    """A stored job graph was written in a format this version does not read."""

    def __init__(self, written: object, readable: int) -> None:
        super().__init__(
            f"cannot load the job graph: it has format version {written}, this rayflink reads version {readable}",
            "submit the program anew with this rayflink, or load the graph with the rayflink that wrote it",
        )
        self.args = (written, readable)


class DuplicateVertexError(PlanError):
    """A job graph names one vertex, or one data set, twice.

    Args:
        what: "job vertices" or "intermediate data set".
        identity: the id both have, 32 hex digits.
        previous, new: the two, in order of appearance.
    """

    def __init__(self, what: str, identity: str, previous: str, new: str) -> None:
        super().__init__(
            f"Encountered two {what} with ID {identity} : previous=[{previous}] / new=[{new}]",
            "give the operators they start with different uids",
        )
        self.args = (what, identity, previous, new)
