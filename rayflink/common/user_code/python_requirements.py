"""Packages that a program requires: a requirements file, checked, and installed by pip into a folder of their own."""

from __future__ import annotations

import atexit
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError
from .python_archives import local_path

if TYPE_CHECKING:
    from packaging.requirements import Requirement

KEY = "python.requirements"
OWN = ("cloudpickle", "msgspec", "numpy", "pyarrow", "pyyaml", "ray", "rocksdict")
"""Packages without which no node runs; they and those that they require are never installed beside the node's own."""
INSTALL_SECONDS = 600
"""Time that pip may take."""


@dataclass(frozen=True)
class PythonRequirements:
    """A requirements file.

    Args:
        file: its path.
        cached_folder: with the packages that pip installs; None: it looks for them on its index.
    """

    file: str
    cached_folder: str | None = None

    @classmethod
    def of(cls, file: str, cached_folder: str | None = None) -> PythonRequirements:
        """Return the requirements at a path, checked.

        Raises:
            ConfigError: it is no file, a line of it is no requirement, or there is no such folder.
        """
        file = os.path.abspath(local_path(file))
        if not os.path.isfile(file):
            raise ConfigError(KEY, file, "a requirements file that exists", "give the path as it is on this machine")
        if cached_folder is not None:
            cached_folder = os.path.abspath(local_path(cached_folder))
            if not os.path.isdir(cached_folder):
                remedy = "make it by `pip download -d FOLDER -r requirements.txt`"
                raise ConfigError(KEY, cached_folder, "a folder with packages", remedy)
        requirements = cls(file, cached_folder)
        list(requirements.lines())
        return requirements

    @classmethod
    def of_option(cls, option: str | None) -> PythonRequirements | None:
        """Return the requirements that the option `python.requirements` names; None: it names none."""
        if not option:
            return None
        file, _, folder = option.partition("#")
        return cls.of(file, folder or None)

    def __str__(self) -> str:
        return self.file if self.cached_folder is None else f"{self.file}#{self.cached_folder}"

    def lines(self) -> Iterator[Requirement | str]:
        """Yield the requirements; an option, a path or an address of pip's own as a string.

        Raises:
            ConfigError: a line is none of them.
        """
        from packaging.requirements import InvalidRequirement, Requirement  # slow: few programs have requirements

        text = Path(self.file).read_text(encoding="utf-8").replace("\\\n", " ")
        for number, line in enumerate(text.splitlines(), start=1):
            line = line.split(" #")[0].split(" --")[0].strip()
            if not line or line.startswith("#"):
                continue
            if line.startswith("-") or "/" in line.split("@")[0] or line.endswith((".whl", ".zip", ".tar.gz")):
                yield line
                continue
            try:
                yield Requirement(line)
            except InvalidRequirement as error:
                described = f"{line!r} in line {number} of {self.file}"
                remedy = f"write it as in `requests>=2.31`: {str(error).splitlines()[0]}"
                raise ConfigError(KEY, described, "a requirement of pip", remedy) from error

    def are_met(self) -> bool:
        """Return whether all packages are there in this interpreter; those of other kinds are taken as missing."""
        return all(not isinstance(line, str) and _is_met(line) for line in self.lines())

    def install(self) -> str:
        """Return a folder with the packages and those that they require, which goes with this process.

        Packages that rayflink runs on are not in it: every node has them, and two of them would not work together.

        Raises:
            ConfigError: pip cannot install them, or one does not go with those that rayflink runs on.
        """
        text = Path(self.file).read_text(encoding="utf-8")
        if (self, text) in _installed:
            return _installed[self, text]
        folder = tempfile.mkdtemp(prefix="rayflink-requirements-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        own = _own_versions()
        constraints, report, exact = (os.path.join(folder, name) for name in ("constraints", "report", "exact"))
        Path(constraints).write_text("".join(f"{name}=={version}\n" for name, version in own.items()), encoding="utf-8")
        source = [] if self.cached_folder is None else ["--no-index", "--find-links", self.cached_folder]
        resolving = ["--dry-run", "--ignore-installed", "--report", report, "-c", constraints, "-r", self.file]
        self._pip([*resolving, *source])
        packages = [_exact(entry) for entry in json.loads(Path(report).read_text(encoding="utf-8"))["install"]]
        wanted = [line for name, line in packages if name not in own]
        target = os.path.join(folder, "packages")
        os.makedirs(target)
        if wanted:
            Path(exact).write_text("\n".join(wanted), encoding="utf-8")
            self._pip(["--no-deps", "--target", target, "-r", exact, *source])
        _installed[self, text] = target
        return target

    def _pip(self, arguments: Sequence[str]) -> None:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
        environment = {**os.environ, "PIP_REQUIRE_VIRTUALENV": "0"}
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, env=environment)
        except subprocess.TimeoutExpired as late:
            problem = f"packages that pip installs in {INSTALL_SECONDS} s"
            raise ConfigError(KEY, str(self), problem, "install them on every node") from late
        if ran.returncode:
            errors = [line for line in ran.stderr.splitlines() if "ERROR" in line] or ran.stderr.splitlines()[-1:]
            reason = "; ".join(line.removeprefix("ERROR: ") for line in errors[:3])
            remedy = "correct the file, or install the packages on every node"
            raise ConfigError(KEY, str(self), "packages that pip can install", f"{remedy}: {reason or 'see pip'}")


_installed: dict[tuple[PythonRequirements, str], str] = {}
"""Folders by requirements and the text of their file."""


def _exact(entry: dict[str, dict[str, str]]) -> tuple[str, str]:
    """Return the name of a package in a report of pip, and the line that requires this version of it."""
    name, version = entry["metadata"]["name"], entry["metadata"]["version"]
    is_direct = bool(entry.get("is_direct"))
    return _plain(name), f"{name} @ {entry['download_info']['url']}" if is_direct else f"{name}=={version}"


def _is_met(requirement: Requirement) -> bool:
    if requirement.marker is not None and not requirement.marker.evaluate():
        return True
    if requirement.url is not None:
        return False
    try:
        version = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return requirement.specifier.contains(version, prereleases=True)


def _own_versions() -> dict[str, str]:
    """Return the packages that rayflink runs on, and those that they require, with their versions here."""
    from packaging.requirements import Requirement  # slow: see above

    versions: dict[str, str] = {}
    left = list(OWN)
    while left:
        name = _plain(left.pop())
        if name in versions:
            continue
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:  # of another platform
            continue
        versions[name] = distribution.version
        for text in distribution.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                left.append(requirement.name)
    return versions


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


__all__ = ["PythonRequirements"]
