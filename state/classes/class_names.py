"""Stable class names: how stored bytes refer to a class, and how a worker finds it again.

A name is ``module:qualname``. A class of the job's own script is always named ``__main__:...``, whether the script
runs as ``__main__`` (in the driver) or was loaded under another name (in a worker, which says so by
``set_main_module``).
"""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib import import_module
from types import ModuleType

from ..errors import UnresolvedClassError
from .moved_modules import current_module

_main: list[ModuleType] = []


def set_main_module(module: ModuleType | None) -> None:
    """Name the module that stands for the job's script in this process; None takes it back."""
    _main[:] = [] if module is None else [module]
    class_name.cache_clear()
    resolve_class.cache_clear()


def main_module() -> ModuleType:
    """Return the module that holds the job's script: the one set, else this process's ``__main__``."""
    return _main[0] if _main else sys.modules["__main__"]


@lru_cache(maxsize=1024)
def class_name(cls: type) -> str:
    """Return the stable name of a class.

    Raises: UnresolvedClassError: the class could not be found again by that name.

    >>> from datetime import date
    >>> class_name(date)
    'datetime:date'
    """
    module = cls.__module__
    if _main and module == _main[0].__name__:
        module = "__main__"
    name = f"{module}:{cls.__qualname__}"
    if resolve_class(name) is not cls:
        raise UnresolvedClassError(name, "that name is bound to another class")
    return name


@lru_cache(maxsize=1024)
def resolve_class(name: str) -> type:
    """Return the class with a stable name; imports its module when needed.

    Raises: UnresolvedClassError: there is no such module, or no such class in it.
    """
    module_name, _, qualname = name.partition(":")
    try:
        result: object = main_module() if module_name == "__main__" else import_module(current_module(module_name))
        for part in qualname.split("."):
            result = getattr(result, part)
    except (ImportError, AttributeError, ValueError) as cause:
        raise UnresolvedClassError(name, str(cause)) from cause
    if not isinstance(result, type):
        raise UnresolvedClassError(name, f"that name is bound to a {type(result).__name__}")
    return result


def main_attribute(qualname: str) -> object:
    """Return the class or function that the job's script defines under a qualified name.

    Raises: UnresolvedClassError: it defines no such name.
    """
    result: object = main_module()
    try:
        for part in qualname.split("."):
            result = getattr(result, part)
    except AttributeError as cause:
        raise UnresolvedClassError(f"__main__:{qualname}", str(cause)) from cause
    return result
