"""The modules that lie beside a program and that it imports: nodes other than its own do not have them."""

from __future__ import annotations

import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

LARGEST_DATA_BYTES = 1 << 20
"""Files of a package that hold no code are taken along up to this size."""
_CODE = (".py", ".so", ".pyd")
_LEFT_OUT = {"__pycache__", ".git", ".venv", "venv", "node_modules"}
_OURS = {"rayflink", "ray"}
_STATEMENT = re.compile(
    rb"(?:^|[:;])[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import\b|import[ \t]+((?:[^\n#;\\]|\\\r?\n)+))", re.MULTILINE
)
"""An import statement: the module that names come from, or the modules."""
_TOP_LEVEL = re.compile(r"^[\s\\]+|[.\s\\][\S\s]*$")
"""What surrounds the first part of a module's name, such as "as x" behind it."""


@dataclass(frozen=True, slots=True)
class Program:
    """The program of this process.

    Args:
        file: its script; "" in a notebook or a shell.
        folder: from which its modules are imported.
    """

    file: str
    folder: str

    @classmethod
    def of(cls, main: ModuleType) -> Program:
        """Return the program whose `__main__` this is: a script, or a module in a package."""
        file = getattr(main, "__file__", None)
        if not file:
            return cls("", os.getcwd())
        folder = Path(os.path.abspath(file)).parent
        package = main.__package__ or ""
        for _ in filter(None, package.split(".")):
            folder = folder.parent
        return cls(os.path.abspath(file), str(folder))


def modules_beside(program: Program, loaded: Mapping[str, ModuleType]) -> tuple[str, ...]:
    """Return the paths of the top-level modules and packages in a program's folder that it imports, in order.

    These are the ones its files import by a statement, in a function too, and those that are loaded. A program that
    belongs to an installed package has none.

    Args:
        loaded: name -> module, as `sys.modules`.
    """
    folder = Path(program.folder)
    if {"site-packages", "dist-packages"} & set(folder.parts) or folder.is_relative_to(sysconfig.get_path("stdlib")):
        return ()
    places: dict[str, Path] = {}
    names = [name.partition(".")[0] for name in loaded]
    if program.file:
        names += _imported(Path(program.file), folder)
    waiting = list(dict.fromkeys(names))
    while waiting:
        name = waiting.pop()
        place = None if name in places or name in _OURS else _place(folder, name, loaded.get(name))
        if place is not None and str(place) != program.file:
            places[name] = place
            waiting += [other for file in _code_of(place) for other in _imported(file, folder)]
    return tuple(str(places[name]) for name in sorted(places))


def copy_modules(modules: Iterable[str], folder: str) -> list[str]:
    """Copy modules and packages into a folder, to be imported from there, and return the files that were too large.

    The copies have the times at which their files were changed. Left out are caches, and files without code above
    `LARGEST_DATA_BYTES`.
    """
    too_large: list[str] = []

    def ignored(where: str, names: list[str]) -> list[str]:
        left = []
        for name in names:
            path = os.path.join(where, name)
            if name in _LEFT_OUT:
                left.append(name)
            elif os.path.isfile(path) and not name.endswith(_CODE) and os.path.getsize(path) > LARGEST_DATA_BYTES:
                left.append(name)
                too_large.append(path)
        return left

    for module in modules:
        target = os.path.join(folder, os.path.basename(module))
        if os.path.isdir(module):
            shutil.copytree(module, target, ignore=ignored, dirs_exist_ok=True)
        else:
            shutil.copy2(module, target)
    return too_large


def _place(folder: Path, name: str, loaded: ModuleType | None) -> Path | None:
    """Return where a top-level module lies in the folder; None where it comes from elsewhere."""
    package, module = folder / name, folder / f"{name}.py"
    if loaded is None and name in sys.stdlib_module_names:
        return None
    for place in (package, module):
        is_there = any(_code_of(place)) if place is package else place.is_file()
        if is_there and (loaded is None or _is_from(loaded, place)):
            return place
    return None


def _is_from(module: ModuleType, place: Path) -> bool:
    file = getattr(module, "__file__", None)
    paths = [file] if file else list(getattr(module, "__path__", ()))
    return any(Path(path).resolve().is_relative_to(place.resolve()) for path in paths)


def _code_of(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
    for folder, below, files in os.walk(place):
        below[:] = sorted(set(below) - _LEFT_OUT)
        yield from (Path(folder) / file for file in sorted(files) if file.endswith(".py"))


def _imported(file: Path, folder: Path) -> list[str]:
    """Return the top-level names that a file imports by a statement; none where it cannot be read.

    Lines that look like such a statement are enough: parsing a large project would take seconds. A name too many, out
    of a string, does no harm.
    """
    try:
        text = file.read_bytes()
    except OSError:
        return []
    names: list[str] = []
    for source, modules in _STATEMENT.findall(text):
        if source.startswith(b"."):
            names += file.relative_to(folder).parts[:1] if file.is_relative_to(folder) else ()
        else:
            names += [_TOP_LEVEL.sub("", name) for name in (source or modules).decode("utf-8", "replace").split(",")]
    return [name for name in dict.fromkeys(names) if name.isidentifier()]


__all__ = ["LARGEST_DATA_BYTES", "Program", "copy_modules", "modules_beside"]
