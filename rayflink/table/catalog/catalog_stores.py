"""Stores of the definitions of catalogs, in which a later program finds them."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Protocol

from .catalog_objects import CatalogDescriptor
from .exceptions import CatalogException

__all__ = ["CatalogStore", "CatalogsInFolder", "CatalogsInMemory"]

_PLAIN = re.compile(r"[\w-]+")


class CatalogStore(Protocol):
    """Descriptors of catalogs by their names."""

    def load(self, name: str) -> CatalogDescriptor | None:
        """Return a descriptor; None: there is none."""
        ...

    def save(self, descriptor: CatalogDescriptor) -> None:
        """Store a descriptor, in the place of another of the name."""
        ...

    def remove(self, name: str) -> None:
        """Forget a descriptor, if there is one."""
        ...

    def names(self) -> list[str]:
        """Return the names, in order."""
        ...


class CatalogsInMemory:
    """Descriptors in memory, `table.catalog-store.kind: generic_in_memory`."""

    def __init__(self) -> None:
        self._descriptors: dict[str, CatalogDescriptor] = {}

    def load(self, name: str) -> CatalogDescriptor | None:
        """Return a descriptor; None: there is none."""
        return self._descriptors.get(name)

    def save(self, descriptor: CatalogDescriptor) -> None:
        """Store a descriptor, in the place of another of the name."""
        self._descriptors[descriptor.get_catalog_name()] = descriptor

    def remove(self, name: str) -> None:
        """Forget a descriptor, if there is one."""
        self._descriptors.pop(name, None)

    def names(self) -> list[str]:
        """Return the names, in order."""
        return sorted(self._descriptors)


class CatalogsInFolder:
    """Descriptors as files, `table.catalog-store.kind: file`: one file of JSON for each catalog.

    Options are stored as they are written, with passwords among them; files can be read by their owner alone.

    Args:
        folder: created when it is missing.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def load(self, name: str) -> CatalogDescriptor | None:
        """Return a descriptor; None: there is none.

        Raises:
            CatalogException: its file cannot be read.
        """
        file = self._file(name)
        try:
            fields = json.loads(file.read_text(encoding="utf-8"))
            return CatalogDescriptor(name, fields["options"], fields.get("comment"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            problem = f"the definition of catalog {name!r} in {file} cannot be read: {error!r}"
            raise CatalogException(problem, "repair the file, or remove it and create the catalog again") from error

    def save(self, descriptor: CatalogDescriptor) -> None:
        """Store a descriptor, in the place of another of the name.

        Raises:
            CatalogException: its file cannot be written, or the name cannot be one of a file.
        """
        file = self._file(descriptor.get_catalog_name())
        fields = {"options": descriptor.get_options(), "comment": descriptor.get_comment()}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            beside = file.with_suffix(f".{os.getpid()}.new")
            with open(beside, "w", encoding="utf-8", opener=_owner_alone) as stream:
                json.dump(fields, stream, indent=2, sort_keys=True)
            beside.replace(file)
        except OSError as error:
            problem = f"the definition of a catalog cannot be written to {file}: {error}"
            raise CatalogException(problem, "correct table.catalog-store.file.path") from error

    def remove(self, name: str) -> None:
        """Forget a descriptor, if there is one."""
        self._file(name).unlink(missing_ok=True)

    def names(self) -> list[str]:
        """Return the names, in order."""
        return sorted(file.stem for file in self._folder.glob("*.json"))

    def _file(self, name: str) -> Path:
        if not _PLAIN.fullmatch(name):
            problem = f"catalog {name!r} cannot be stored in a file"
            raise CatalogException(problem, "name it with letters, digits, _ and - alone")
        return self._folder / f"{name}.json"


def _owner_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
