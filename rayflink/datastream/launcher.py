"""The place where a stream program meets `rayflink.launch`, which hands its job to a runner."""

from __future__ import annotations

from types import ModuleType


def launcher() -> ModuleType:
    """Return the module `rayflink.launch`."""
    from rayflink import launch  # of a higher storey: it knows runners, which a program without jobs need not load

    return launch


__all__ = ["launcher"]
