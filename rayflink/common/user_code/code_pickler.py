"""A pickler for programs, whose functions keep the files that they are of.

From version 3.1.3 on, cloudpickle leaves the name of the file out of a function that it sends by value. Tracebacks, the
line of an error and the place where a function hangs need it.
"""

from __future__ import annotations

import io
from collections import ChainMap
from collections.abc import Callable
from types import CodeType
from typing import Any

import cloudpickle


def dumps(value: object) -> bytes:
    """Pickle a value, with functions and classes by value where they have no name to be found by.

    >>> import pickle
    >>> function = pickle.loads(dumps(eval(compile("lambda: 1 / 0", "job.py", "eval"))))
    >>> function.__code__.co_filename
    'job.py'
    """
    file = io.BytesIO()
    CodePickler(file, protocol=5).dump(value)
    return file.getvalue()


def _reduce_code(code: CodeType) -> Any:
    make, arguments = cloudpickle.Pickler.dispatch_table[CodeType](code)
    return _code_of_file, (code.co_filename, make, arguments)


def _code_of_file(file: str, make: Callable[..., CodeType], arguments: tuple[Any, ...]) -> CodeType:
    """Make the code of a function that was pickled."""
    return make(*arguments).replace(co_filename=file)


class CodePickler(cloudpickle.Pickler):  # type: ignore[misc]
    """cloudpickle's pickler, but for the names of files, which it keeps."""

    dispatch_table = ChainMap({CodeType: _reduce_code}, cloudpickle.Pickler.dispatch_table)


__all__ = ["CodePickler", "dumps"]
