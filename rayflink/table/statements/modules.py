"""The modules of functions: there is one, of the built-in functions, as Flink's `core`."""

from __future__ import annotations

from ..errors import SqlError

CORE = "core"


class ModuleEntry:
    """A module with its state, as `list_full_modules` returns it.

    >>> print(ModuleEntry("core", True))
    ModuleEntry{name='core', used=True}
    """

    def __init__(self, name: str, used: bool) -> None:
        self._name, self._used = name, used

    def name(self) -> str:
        """Return the name."""
        return self._name

    def used(self) -> bool:
        """Return whether functions are found in it."""
        return self._used

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModuleEntry) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self._name, self._used))

    def __repr__(self) -> str:
        return f"ModuleEntry{{name={self._name!r}, used={self._used}}}"


class Modules:
    """The methods of a `TableEnvironment` about modules: `core` is loaded and used, and there is no other."""

    def list_modules(self) -> list[str]:
        """Return the names of the modules in which functions are found, in the order of the search."""
        return [CORE]

    def list_full_modules(self) -> list[ModuleEntry]:
        """Return the modules that are loaded."""
        return [ModuleEntry(CORE, True)]

    def use_modules(self, *module_names: str) -> None:
        """Find functions in these modules, in this order.

        Raises:
            SqlError: they are not `core` alone.
        """
        if module_names != (CORE,):
            problem = f"modules {', '.join(module_names) or '()'}, and there is only {CORE!r}"
            raise SqlError(problem, "leave the call out; your own functions are found by create_temporary_function")


__all__ = ["ModuleEntry", "Modules"]
