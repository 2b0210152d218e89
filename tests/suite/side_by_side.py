"""Which runs of the tests are divided among processes: all tests that need no Ray are, fewer ones or Ray's are not.

Each process collects the tests and watches for leftovers by itself, so it pays for a whole suite only. Tests on Ray
have processes of their own, and clocks that other tests beside them would disturb.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]


def processes(config: pytest.Config) -> int:
    """Return how many processes run the tests; 0 for this one, as where `-n`, a debugger or the terminal is asked for.

    A run of low priority shares the processors with another one, and many tests wait: it gets one process more.
    """
    option = config.option
    asked_for_other = option.collectonly or option.usepdb or option.capture == "no" or option.keyword
    if hasattr(config, "workerinput") or not config.pluginmanager.hasplugin("xdist") or asked_for_other:
        return 0
    if option.numprocesses is not None or option.tx or option.dist != "no":
        return 0
    without_ray = re.search(r"\bnot ray\b", option.markexpr) is not None
    beside = 1 if niceness() > 0 else 0
    return processors() + beside if is_whole(config) and without_ray and processors() > 1 else 0


def is_whole(config: pytest.Config) -> bool:
    """Whether all tests are asked for that the marks leave, and not those of a folder or file."""
    return any(TESTS.is_relative_to(Path(config.invocation_params.dir, argument)) for argument in config.args)


def niceness() -> int:
    """Return the priority of this process: 0 is usual, 19 the lowest."""
    return os.nice(0) if hasattr(os, "nice") else 0


def processors() -> int:
    """Processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
