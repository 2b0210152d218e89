"""What a measurement ran on, noted beside every number."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

_NOTED = ("rayflink", "ray", "pyarrow", "numpy", "polars")


def describe() -> dict[str, object]:
    """Processor, cores, memory, load and versions of this machine and interpreter."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "java": _java(),
        "packages": {name: _version(name) for name in _NOTED},
        "load_1min": load(),
    }


def show(machine: Mapping[str, object]) -> str:
    """One line of `describe`'s entries, packages spelled out."""
    entries = {key: value for key, value in machine.items() if key != "packages"}
    packages = machine["packages"]
    assert isinstance(packages, dict)
    return ", ".join(f"{key} {value}" for key, value in {**entries, **packages}.items() if value is not None)


def load() -> float:
    """The load average of the last minute: above the number of cores, others are using the machine too."""
    return round(os.getloadavg()[0], 2)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _java() -> str | None:
    try:
        told = subprocess.run(["java", "-version"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return told.stderr.splitlines()[0]


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
