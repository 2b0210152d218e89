"""Python files, folders and zip files that a program takes along: where its functions find their modules."""

from __future__ import annotations

import atexit
import io
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..errors import ConfigError
from ..text_output.logs import get_logger
from .program_modules import LARGEST_DATA_BYTES, Program, copy_modules, modules_beside

log = get_logger(__name__)
IMPORT_REMEDY = "install it on every node, or name its file or folder in the option python.files"
"""The remedy for a module that is not there where tasks run."""


def check_python_file(path: str) -> str:
    """Return the absolute path of a .py file, a folder, or a .zip or .egg file.

    Raises:
        ConfigError: it is none of them, or is not there.
    """
    whole = os.path.abspath(path)
    if not os.path.exists(whole):
        raise ConfigError("python file", path, "a file or folder that exists", "give the path as it is on this machine")
    if not os.path.isdir(whole) and not whole.endswith((".py", ".zip", ".egg")):
        raise ConfigError("python file", path, "a .py file, a folder, or a .zip or .egg file", "zip the modules")
    return whole


def listed_python_files(option: str | None) -> tuple[str, ...]:
    """Return the files that the option `python.files` lists, checked as `check_python_file` does.

    Args:
        option: paths with commas between them; None: there are none.

    Raises:
        ConfigError: one is no Python file, or is not there.
    """
    return tuple(check_python_file(path.strip()) for path in (option or "").split(",") if path.strip())


def put_on_path(files: Iterable[str]) -> None:
    """Let this process import from them: a folder's modules, a package itself, what is in a zip file."""
    for path in reversed([place for file in files for place in _places(file)]):
        if path not in sys.path:
            sys.path.insert(0, path)


def beside_program() -> tuple[str, ...]:
    """Return a folder with the modules that lie beside the program of this process and that it imports; () for none.

    It goes with this process. What is too large for it is named in a warning.
    """
    modules = modules_beside(Program.of(sys.modules["__main__"]), dict(sys.modules))
    if not modules:
        return ()
    folder = tempfile.mkdtemp(prefix=_PREFIX)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if too_large := copy_modules(modules, folder):
        limit = f"files of packages without code are taken along up to {LARGEST_DATA_BYTES >> 20} MiB"
        remedy = "put them where every node finds them, or name the package in python.files"
        log.warning("nodes do not get %s: %s; %s", ", ".join(too_large), limit, remedy)
    return (folder,)


def newest_change(files: Iterable[str]) -> float:
    """Return when the newest of these files, and of those in these folders, was changed, in seconds since 1970.

    It is 0.0 where there is none. That a folder is new, such as one of copies, is no change.

    >>> newest_change(["/missing.py"])
    0.0
    """
    places = (place for file in files for place in _files_of(file))
    return max((os.path.getmtime(place) for place in places if os.path.exists(place)), default=0.0)


def stage(files: Sequence[str], folder: str) -> None:
    """Copy them into a folder, from which a process that has it on its path imports the same modules.

    Those given first win where two have one name.
    """
    for file in reversed(files):
        if file.endswith((".zip", ".egg")) and not os.path.isdir(file):
            with zipfile.ZipFile(file) as packed:
                packed.extractall(folder)
        elif os.path.isdir(file):
            shutil.copytree(file, folder, dirs_exist_ok=True, ignore=_NO_CACHES)
            if _is_package(file):
                package = os.path.join(folder, os.path.basename(file))
                shutil.copytree(file, package, dirs_exist_ok=True, ignore=_NO_CACHES)
        else:
            shutil.copy(file, folder)


def packed(files: Sequence[str]) -> bytes:
    """Return a zip file of what `stage` copies, the same bytes for the same files; b"" for none."""
    if not files:
        return b""
    target = io.BytesIO()
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder, zipfile.ZipFile(target, "w") as archive:
        stage(files, folder)
        for path in sorted(path for path in Path(folder).rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix())
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())
    return target.getvalue()


def unpacked(archive: bytes) -> str:
    """Return a folder with what `packed` has taken, which goes with this process."""
    folder = tempfile.mkdtemp(prefix=_PREFIX)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with zipfile.ZipFile(io.BytesIO(archive)) as zip_file:
        zip_file.extractall(folder)
    return folder


_PREFIX = "rayflink-python-"
_NO_CACHES = shutil.ignore_patterns("__pycache__", ".git")


def _places(file: str) -> list[str]:
    if file.endswith(".py") and not os.path.isdir(file):
        return [os.path.dirname(file)]
    return [file, os.path.dirname(file)] if _is_package(file) else [file]


def _files_of(file: str) -> Iterator[str]:
    """Yield a file, or the files of a folder."""
    if not os.path.isdir(file):
        yield file
    for folder, below, names in os.walk(file):
        below[:] = sorted({*below} - {"__pycache__", ".git"})
        yield from (os.path.join(folder, name) for name in names)


def _is_package(file: str) -> bool:
    return os.path.isfile(os.path.join(file, "__init__.py"))


__all__ = [
    "IMPORT_REMEDY", "beside_program", "check_python_file", "listed_python_files", "newest_change", "packed",
    "put_on_path", "stage", "unpacked",
]  # fmt: skip
