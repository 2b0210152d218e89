"""A pytest plugin that keeps the cases which tests give to `rayflink.testing.verify`, so that a cluster can run them.

`python -m pytest -p tests.suite.recorded_cases --record-cases FILE tests/operators` writes [(test, cloudpickle of a
case)]; with `--cases-part 1/6`, of a sixth of the tests.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from rayflink.testing import HARDSHIPS
from rayflink.testing.cases import Case
from tests.suite.soak import Slice

RECORDED: list[tuple[str, bytes]] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-cases", type=Path, required=True)
    parser.addoption("--cases-part", type=Slice.parse, default=Slice(1, 1))


def pytest_configure(config: pytest.Config) -> None:
    """Recording takes the place of all hardships: a test that leaves some out by name fails, and is not recorded."""
    HARDSHIPS.clear()
    HARDSHIPS["as a job on a cluster"] = _record


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if item.nodeid in config.getoption("--cases-part")]


def pytest_unconfigure(config: pytest.Config) -> None:
    config.getoption("--record-cases").write_bytes(pickle.dumps(RECORDED))


def _record(case: Case, expected: list[Any], name: str) -> None:
    test = os.environ["PYTEST_CURRENT_TEST"].split(" ")[0]
    RECORDED.append((test, cloudpickle.dumps(case)))
