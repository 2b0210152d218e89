"""Public names of a package that are loaded on first use (PEP 562), so that importing the package stays cheap."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

Exports = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def lazy_exports(package: str, names_by_module: Mapping[str, str]) -> Exports:
    """Return the `__getattr__`, `__dir__` and `__all__` of a package.

    Args:
        package: its `__name__`.
        names_by_module: absolute name of a module -> the public names it holds, separated by blanks.
    """
    homes = {name: module for module, names in names_by_module.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, names, sorted(homes)


__all__ = ["lazy_exports"]
