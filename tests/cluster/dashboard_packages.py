"""A Python that has what `ray job submit` needs (the extra `cluster`), on top of the packages of the one that runs.

Ray starts more processes on a node where its dashboard is installed, so the tests' own Python does without.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

UNREACHABLE = ("Failed to establish a new connection", "Max retries exceeded", "Temporary failure in name resolution",
               "Read timed out", "Network is unreachable")  # fmt: skip

BELOW = "packages_below.pth"


def python_with_dashboard() -> str:
    """Its path; it is made once and kept in ~/.cache/rayflink.

    Skips the test where PyPI is out of reach.
    """
    if importlib.util.find_spec("aiohttp_cors") is not None:
        return sys.executable
    wanted = importlib.metadata.metadata("rayflink").get_all("Requires-Dist") or []
    requirements = sorted(line.partition(";")[0].strip() for line in wanted if 'extra == "cluster"' in line)
    version = importlib.metadata.version("ray")
    name = hashlib.sha256(f"{sys.prefix} {sys.version} {requirements} {version}".encode()).hexdigest()[:12]
    folder = Path.home() / ".cache" / "rayflink" / f"cluster-{name}"
    python = folder / "bin" / "python"
    if (folder / "ready").exists():
        return str(python)
    forget_orphans(folder.parent)
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", folder], check=True)
    own = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    below = f"import site; site.addsitedir({sysconfig.get_paths()['purelib']!r})\n"
    (Path(own) / BELOW).write_text(below, encoding="utf-8")
    install = ["install", "--quiet", "--disable-pip-version-check", "--retries", "1", *requirements]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, "-m", "pip", "--python", str(python), *install]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0 and any(sign in done.stderr + done.stdout for sign in UNREACHABLE):
        pytest.skip(f"PyPI is out of reach, so {requirements} cannot be installed")
    assert done.returncode == 0, done.stderr
    (folder / "ready").touch()
    return str(python)


def forget_orphans(folder: Path) -> None:
    """Remove those on top of packages that are no more."""
    for one in folder.glob(f"cluster-*/lib/python*/site-packages/{BELOW}"):
        if not Path(one.read_text(encoding="utf-8").split("'")[1]).exists():
            shutil.rmtree(one.parents[3], ignore_errors=True)
