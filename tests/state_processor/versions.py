"""Programs in two versions: a module of one name whose source is replaced."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from textwrap import dedent
from types import ModuleType


class Versions:
    """The versions of one module.

    Args:
        folder: of its source; put on the path while `load` imports it.
        name: of the module, which no other test has.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._number = 0

    def load(self, source: str) -> ModuleType:
        """Make this the module's source, and import it anew."""
        self._number += 1
        place = self._folder / f"version-{self._number}"
        place.mkdir()
        (place / f"{self._name}.py").write_text(dedent(source), encoding="utf-8")
        sys.modules.pop(self._name, None)
        importlib.invalidate_caches()
        sys.path.insert(0, str(place))
        try:
            return importlib.import_module(self._name)
        finally:
            sys.path.remove(str(place))

    def forget(self) -> None:
        """Forget the module."""
        sys.modules.pop(self._name, None)


__all__ = ["Versions"]
