"""Archives that a program takes along: their files, unpacked, by a relative path where its functions run."""

from __future__ import annotations

import atexit
import os
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import ConfigError
from ..text_output.logs import get_logger

log = get_logger(__name__)
KEY = "python.archives"


@dataclass(frozen=True)
class PythonArchive:
    """An archive.

    Args:
        path: of the archive on this machine.
        name: of the folder into which it is unpacked.
    """

    path: str
    name: str

    @classmethod
    def of(cls, path: str, name: str | None = None) -> PythonArchive:
        """Return the archive at a path.

        Args:
            name: None: that of the file.

        Raises:
            ConfigError: it is no archive, or is not there; the name is no relative path.
        """
        whole = os.path.abspath(local_path(path))
        if not os.path.isfile(whole):
            raise ConfigError(KEY, path, "an archive that exists", "give the path as it is on this machine")
        if not zipfile.is_zipfile(whole) and not tarfile.is_tarfile(whole):
            raise ConfigError(KEY, path, "a zip or tar file", "pack the folder, for example by `zip -r data.zip data`")
        name = name or os.path.basename(whole)
        if os.path.isabs(name) or ".." in name.split("/") or any(separator in name for separator in ",#"):
            raise ConfigError(KEY, name, "a relative path without '..' as folder", "give a name such as 'data'")
        return cls(whole, name)

    def __str__(self) -> str:
        return f"{self.path}#{self.name}"

    def unpack(self, folder: str) -> None:
        """Unpack the archive into its folder below another one; files keep their permissions.

        Raises:
            ConfigError: a member of it would lie elsewhere.
        """
        target = os.path.join(folder, self.name)
        os.makedirs(target, exist_ok=True)
        try:
            if zipfile.is_zipfile(self.path):
                with zipfile.ZipFile(self.path) as archive:
                    for member in archive.infolist():
                        place = archive.extract(member, target)
                        mode = member.external_attr >> 16
                        if mode and not member.is_dir():
                            os.chmod(place, mode & 0o777)
            else:
                with tarfile.open(self.path) as tar:
                    tar.extractall(target, filter="data")
        except (tarfile.TarError, zipfile.BadZipFile, OSError) as error:
            raise ConfigError(KEY, self.path, "an archive that can be unpacked", f"pack it anew: {error}") from error


def listed_archives(option: str | None) -> tuple[PythonArchive, ...]:
    """Return the archives that the option `python.archives` lists.

    >>> listed_archives(None)
    ()

    Args:
        option: paths with commas between them, each with `#` and the name of its folder where it has one.

    Raises:
        ConfigError: one is no archive, or is not there; two have one folder.
    """
    archives = []
    for entry in (option or "").split(","):
        path, _, name = entry.strip().partition("#")
        if path:
            archives.append(PythonArchive.of(path, name or None))
    names = [archive.name for archive in archives]
    for name in names:
        if names.count(name) > 1:
            remedy = f"give one of those named {name!r} another name: data.zip#other"
            raise ConfigError(KEY, str(option), "a folder for each archive", remedy)
    return tuple(archives)


def unpack_beside(archives: Sequence[PythonArchive]) -> None:
    """Let functions of this process find unpacked archives by a path relative to the current folder.

    Their folders are links to files that go with this process. Where something of the name is there, it stays, and a
    warning says so.
    """
    for archive in archives:
        if archive in _linked:
            continue
        link = os.path.join(os.getcwd(), archive.name)
        if os.path.islink(link) and not os.path.exists(link):  # of a program that was killed
            os.unlink(link)
        if os.path.lexists(link):
            remedy = "give the archive another target folder, or run the program in another one"
            log.warning("functions do not find archive %s as %s: %s is there already; %s", archive.path, archive.name,
                        link, remedy)  # fmt: skip
            continue
        folder = tempfile.mkdtemp(prefix="rayflink-archive-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        archive.unpack(folder)
        try:
            os.makedirs(os.path.dirname(link), exist_ok=True)
            os.symlink(os.path.join(folder, archive.name), link)
        except OSError as error:
            problem = f"a folder in which {archive.name} can be created"
            raise ConfigError(KEY, os.getcwd(), problem, f"run the program in another folder: {error}") from error
        atexit.register(_unlink, link)
        _linked.add(archive)


_linked: set[PythonArchive] = set()


def _unlink(link: str) -> None:
    if os.path.islink(link):
        os.unlink(link)


def local_path(path: str) -> str:
    """Return a path without `file://` before it.

    >>> local_path("file:///jobs/data.zip"), local_path("data.zip")
    ('/jobs/data.zip', 'data.zip')
    """
    return path.removeprefix("file://") if path.startswith("file:///") else path


__all__ = ["PythonArchive", "listed_archives", "local_path", "unpack_beside"]
