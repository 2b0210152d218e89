"""Checks that PySpark and RayDP are installed, in versions that go together."""

from __future__ import annotations

import os
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from .errors import SparkCannotStart

REMEDY = "pip install 'rayflink[spark]'"
NEWEST_PYTHON = (3, 13)
"""The newest Python on which PySpark 3.5 has been seen to run."""


def ensure_packages() -> None:
    """Check that PySpark and RayDP are installed, support this Python, fit together, and that no other Spark replaces
    PySpark's.

    Raises:
        SparkCannotStart: they are not.
    """
    ensure_python(sys.version_info[:2])
    versions = {name: _version(name) for name in ("pyspark", "raydp")}
    missing = [name for name, installed in versions.items() if installed is None]
    if missing:
        raise SparkCannotStart(f"no {' and no '.join(missing)}", "pyspark and raydp", REMEDY)
    error = mismatch(str(versions["pyspark"]), str(versions["raydp"]), requires("raydp") or [])
    if error is not None:
        raise error
    ensure_one_spark(os.environ.get("SPARK_HOME", ""), _folder_of_pyspark())


def ensure_python(python_version: tuple[int, int]) -> None:
    """Check that PySpark 3.5 is known to run on this Python.

    Args:
        python_version: major and minor version.

    Raises:
        SparkCannotStart: it does not.
    """
    if python_version > NEWEST_PYTHON:
        newest = ".".join(map(str, NEWEST_PYTHON))
        wanted = f"Python 3.10 to {newest}, on which PySpark 3.5 runs"
        remedy = f"run the program and Ray in an environment of an older Python: python{newest} -m venv .venv"
        raise SparkCannotStart(f"Python {python_version[0]}.{python_version[1]}", wanted, remedy)


def mismatch(pyspark: str, raydp: str, wanted: list[str]) -> SparkCannotStart | None:
    """Return the error where a RayDP does not support a PySpark.

    Args:
        pyspark, raydp: versions.
        wanted: what RayDP says it requires.
    """
    from packaging.requirements import Requirement

    for text in wanted:
        requirement = Requirement(text)
        if requirement.name == "pyspark" and not requirement.specifier.contains(pyspark, prereleases=True):
            takes = f"pyspark {requirement.specifier}, which raydp {raydp} takes"
            return SparkCannotStart(f"pyspark {pyspark}", takes, REMEDY)
    return None


def ensure_one_spark(spark_home: str, pyspark: Path) -> None:
    """Check that SPARK_HOME names no Spark of another release than the package's.

    Raises:
        SparkCannotStart: it does.
    """
    if not spark_home or Path(spark_home).resolve() == pyspark.resolve():
        return
    release = Path(spark_home, "RELEASE")
    there = release.read_text().splitlines()[0] if release.is_file() else f"no file {release}"
    if f"Spark {_version('pyspark')}" not in there:
        wanted = f"no other Spark than that of pyspark {_version('pyspark')}"
        raise SparkCannotStart(f"SPARK_HOME={spark_home} ({there})", wanted, "unset SPARK_HOME")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _folder_of_pyspark() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


__all__ = ["ensure_one_spark", "ensure_packages", "ensure_python", "mismatch"]
