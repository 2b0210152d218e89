"""The root of all errors that rayflink raises, and the errors about keys, values and stored state.

Every error says what was found, what was wanted and what to do. Arguments are positional, so that an error
unpickles in another process.
"""

from __future__ import annotations


class RayflinkError(Exception):
    """The root of all errors raised by rayflink; catch it to catch them all."""


class StateError(RayflinkError):
    """The root of errors about keys, values, snapshots and their storage."""


class InvalidKeyError(StateError, TypeError):
    """Raised when a value cannot be a key.

    Args:
        actual: the type (or value) found, as text.
        where: position inside the key, such as ``[1].name``; empty when the key itself is meant.
        remedy: what to key by instead.
    """

    def __init__(self, actual: str, where: str, remedy: str) -> None:
        super().__init__(actual, where, remedy)
        self.actual, self.where, self.remedy = actual, where, remedy

    def inside(self, step: str) -> InvalidKeyError:
        """Return the same error seen from one level further out; ``step`` is ``[2]`` or ``.name``."""
        return InvalidKeyError(self.actual, step + self.where, self.remedy)

    def __str__(self) -> str:
        return f"key{self.where} is {self.actual}, which cannot be a key; {self.remedy}"


class MalformedBytesError(StateError, ValueError):
    """Raised when bytes do not hold what they should hold.

    Args:
        wanted: what was being read.
        actual: what stood there instead, and at which byte.
    """

    def __init__(self, wanted: str, actual: str) -> None:
        super().__init__(wanted, actual)
        self.wanted, self.actual = wanted, actual

    def __str__(self) -> str:
        return (
            f"cannot read {self.wanted}: found {self.actual}; the bytes are damaged or were written by "
            "something else: restore from an older checkpoint, or check which serializer wrote them"
        )


class SerializationError(StateError):
    """Raised when the chosen serializer cannot turn a value into bytes.

    Args:
        serializer: name of the serializer.
        problem: the value's type, and what is wrong with it.
        remedy: what to change.
    """

    def __init__(self, serializer: str, problem: str, remedy: str) -> None:
        super().__init__(serializer, problem, remedy)
        self.serializer, self.problem, self.remedy = serializer, problem, remedy

    def __str__(self) -> str:
        return f"{self.serializer} cannot serialize {self.problem}; {self.remedy}"


class VersionMismatch(StateError):
    """Raised when bytes carry a format version that this program does not read.

    Args:
        written: the version found, as text (``tuple v2``).
        readable: the version this program reads, as text.
        state: name of the state, or what the bytes are.
        operator_uid: uid of the operator that owns the state; empty when the bytes belong to none.
    """

    def __init__(self, written: str, readable: str, state: str, operator_uid: str) -> None:
        super().__init__(written, readable, state, operator_uid)
        self.written, self.readable, self.state, self.operator_uid = written, readable, state, operator_uid

    def __str__(self) -> str:
        owner = f" of operator {str(self.operator_uid)!r}" if self.operator_uid else ""
        return (
            f"cannot read state {self.state!r}{owner}: it was written as {self.written}, this program reads "
            f"{self.readable}; run the version that wrote it and take a savepoint there, register a migration, "
            "or give the operator a new uid to start without this state"
        )


class SnapshotMismatch(StateError):
    """Raised when a snapshot does not fit the state the job declares.

    Args:
        state: name of the state.
        operator_uid: the operator that declares it, by its uid or name.
        written: the serializer in the snapshot, as text.
        declared: the serializer the job declares, as text.
        reason: why the two do not fit.
    """

    def __init__(self, state: str, operator_uid: str, written: str, declared: str, reason: str) -> None:
        super().__init__(state, operator_uid, written, declared, reason)
        self.state, self.operator_uid = state, operator_uid
        self.written, self.declared, self.reason = written, declared, reason

    def __str__(self) -> str:
        return (
            f"cannot restore state {self.state!r} of operator {str(self.operator_uid)!r}: snapshot holds "
            f"{self.written}, job declares {self.declared} ({self.reason}); declare the type that was written, "
            "rename the state to start it empty, or register a migration"
        )


class DuplicateStateError(StateError):
    """Raised when two different states of one operator have the same name.

    Args:
        state: the name.
        first: what was declared first, as text.
        second: what was declared then, as text.
    """

    def __init__(self, state: str, first: str, second: str) -> None:
        super().__init__(state, first, second)
        self.state, self.first, self.second = state, first, second

    def __str__(self) -> str:
        return (
            f"two states of one operator have the name {self.state!r}: {self.first}, and {self.second}; give each a "
            "name of its own"
        )


class UnresolvedClassError(StateError):
    """Raised when a class named in stored bytes cannot be found in this process.

    Args:
        name: ``module:qualname`` as stored.
        reason: what went wrong when it was looked up.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name, self.reason = name, reason

    def __str__(self) -> str:
        return (
            f"cannot find class {self.name!r}: {self.reason}; define it at the top level of an importable module "
            "and keep its module and name as they were when the state was written"
        )


class ParallelismError(StateError, ValueError):
    """Raised when a parallelism, max parallelism, subtask or key group is out of range.

    Args:
        name: which number.
        value: what it is.
        low: smallest allowed value.
        high: largest allowed value.
    """

    def __init__(self, name: str, value: int, low: int, high: int) -> None:
        super().__init__(name, value, low, high)
        self.name, self.value, self.low, self.high = name, value, low, high

    def __str__(self) -> str:
        return f"{self.name} is {self.value}, must be in [{self.low}, {self.high}]; set a {self.name} inside that range"


class DamagedFileError(StateError):
    """Raised when a stored file does not hold the bytes that were written.

    Args:
        file: its address.
        where: which part of it, as in "bytes 10 to 20".
        actual: what is there.
        wanted: what was written.
    """

    def __init__(self, file: str, where: str, actual: str, wanted: str) -> None:
        super().__init__(file, where, actual, wanted)
        self.file, self.where, self.actual, self.wanted = file, where, actual, wanted

    def __str__(self) -> str:
        return (
            f"{self.file} is damaged: {self.where} hold {self.actual}, wanted {self.wanted}; start from an older "
            "checkpoint or from a savepoint, and look for faults of that disk"
        )


class ForeignClassError(StateError):
    """Raised when a value of a snapshot cannot be read without classes that are not trusted.

    Args:
        names: of the classes, as `module:qualname`.
        problem: what failed without them.
    """

    def __init__(self, names: list[str], problem: Exception) -> None:
        super().__init__(names, problem)
        self.names, self.problem = names, problem

    def __str__(self) -> str:
        problem = f"a value is made with {', '.join(self.names)}, which are no plain types ({self.problem})"
        return f"{problem}; --trust imports and calls what the snapshot names"
