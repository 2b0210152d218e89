"""Packs the user's program for a worker, whose `__main__` is another script.

Functions and classes of the job's script travel by value. On arrival its classes are given back their place in
`__main__`, so that plain pickle, which refers to a class by module and name, finds them in every process. The script
itself is never run again: it may have no `if __name__ == "__main__"`.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from rayflink.common.errors import NotSerializable
from rayflink.common.user_code.code_pickler import CodePickler, dumps
from rayflink.common.user_code.unpicklable import cause, failure_of
from rayflink.graph.job_graph import ChainedOperator, JobGraph


class _Pickler(CodePickler):
    """A pickler that notes which classes of `__main__` it met."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.main_classes: dict[str, type] = {}

    def reducer_override(self, obj: object) -> Any:
        if isinstance(obj, type) and obj.__module__ == "__main__" and "<locals>" not in obj.__qualname__:
            self.main_classes[obj.__qualname__] = obj
            name = obj.__qualname__.split(".")[0]  # a nested class is found through the outermost one
            outermost = getattr(sys.modules["__main__"], name, None)
            if isinstance(outermost, type):
                self.main_classes[name] = outermost
        return super().reducer_override(obj)


def pack(program: object, what: str = "the program") -> bytes:
    """Pack the object with all code of the job's script that it needs.

    Raises:
        NotSerializable: something in it cannot be sent to another process; it names the way there.
    """
    return pack_with_classes(program, what)[0]


def pack_with_classes(program: object, what: str) -> tuple[bytes, dict[str, type]]:
    """Pack the object, and return with it the classes of the job's script that are in it, by their qualified names.

    Raises:
        NotSerializable: something in it cannot be sent to another process; it names the way there.
    """
    file = io.BytesIO()
    pickler = _Pickler(file)
    try:
        pickler.dump(program)
    except Exception as error:
        raise not_serializable(program, what, error) from error
    # both in one pickle, so that a class met in both is one class on arrival
    return dumps((pickler.main_classes, program)), pickler.main_classes


def not_serializable(program: object, what: str, error: Exception) -> NotSerializable:
    """Return the error for a program that could not be pickled: for a job graph it names the step and its line.

    Args:
        what: the program, for the message.
        error: what pickling it raised.
    """
    for step in _steps(program):
        failure = failure_of(step)
        if failure is not None:
            return NotSerializable(f"step {step.name!r} of {what}", cause(step, failure), step.call_site)
    return NotSerializable(what, cause(program, error))


def _steps(program: object) -> Iterator[ChainedOperator]:
    if isinstance(program, JobGraph):
        for vertex in program.vertices:
            yield from vertex.operators


def unpack(data: bytes, main: ModuleType | None = None) -> Any:
    """Unpack an object; classes of the job's script are put into `main` (this process's `__main__`)."""
    main_classes, program = pickle.loads(data)
    home = main if main is not None else sys.modules["__main__"]
    for name, cls in main_classes.items():
        cls.__qualname__ = name  # cloudpickle sends the last part only
        if "." not in name:
            setattr(home, name, cls)
    return program
