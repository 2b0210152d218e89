"""PyFlink's wheels, downloaded once and unzipped, never installed or run.

They are kept in ~/.cache/rayflink; `RAYFLINK_PYFLINK=DIRECTORY` is another place, one folder pyflink-VERSION each.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

VERSIONS = ("2.3.0", "1.20.5")
"""The newest one, and the last that has what 2.x removed."""
UNZIPPED = ("pyflink/common/", "pyflink/datastream/", "pyflink/metrics/", "pyflink/table/",
            "pyflink/examples/datastream/", "pyflink/examples/table/")  # fmt: skip


def unzipped_wheel(version: str) -> Path:
    """The folder with the Python files of a version of PyFlink; skips the test where they cannot be downloaded."""
    named = os.environ.get("RAYFLINK_PYFLINK")
    kept = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rayflink"
    folder = kept / f"pyflink-{version}"
    missing = [part for part in UNZIPPED if not (folder / part).is_dir()]
    if missing:
        with tempfile.TemporaryDirectory() as work:
            _add_parts(_downloaded(version, Path(work)), missing, folder)
    return folder


def _downloaded(version: str, work: Path) -> Path:
    wanted = ["--only-binary=:all:", "--python-version=3.11", "--platform=manylinux2014_x86_64"]
    quick = ["--quiet", "--disable-pip-version-check", "--no-deps", "--retries=0", "--timeout=10"]
    command = [sys.executable, "-m", "pip", "download", *quick, *wanted, f"apache-flink=={version}"]
    try:
        subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=80, check=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        said = str(error.stderr or "it takes too long").strip().splitlines()[-1]
        pytest.skip(f"PyFlink {version} cannot be downloaded: {said[-200:]}")
    return next(work.glob("*.whl"))


def _add_parts(wheel: Path, parts: list[str], folder: Path) -> None:
    """Put parts of the wheel into the folder, each whole or not at all."""
    with zipfile.ZipFile(wheel) as zipped:
        for part in parts:
            target = folder / part
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as beside:
                zipped.extractall(beside, [name for name in zipped.namelist() if name.startswith(part)])
                try:
                    (Path(beside) / part).rename(target)
                except OSError:
                    if not target.is_dir():  # another run was quicker
                        raise
