"""What every test stands on: law-test settings and the check that a run leaves nothing behind."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.suite import soak
from tests.suite.leftovers import Watch
from tests.suite.sendable_reports import SendableReports
from tests.suite.side_by_side import processes
from tests.suite.time_budget import Recorder

gc.set_threshold(20_000, 20, 20)
"""Collections are rarer than Python's default has them, for each looks at what thousands of tests have imported."""

os.environ.setdefault("RAY_worker_niceness", "0")
"""What Ray adds to the niceness of its workers, else 15: then they would wait for all tests that run beside them."""

DAILY = "daily"
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", DAILY)
settings.register_profile(DAILY, deadline=None, print_blob=True, max_examples=15)
settings.register_profile("deep", deadline=None, print_blob=True, max_examples=2_000)
settings.load_profile(PROFILE)


def pytest_addoption(parser: pytest.Parser) -> None:
    soak.add_option(parser)
    message = "write how much CPU time the tests took to tests/suite/times.json"
    parser.addoption("--write-times", action="store_true", help=message)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recorder(config))
    config.pluginmanager.register(SendableReports())
    soak.sample_jobs(config)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return soak.is_left_out(collection_path, config) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    soak.check_marks(items)
    soak.deselect(config, items)
    if DAILY == PROFILE:
        soak.limit_examples(config, items)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Divide the tests among processes where that pays; what they write is in one folder, which goes with the run."""
    if number := processes(config):
        config.option.numprocesses, config.option.dist = number, "worksteal"
        config.add_cleanup(Watch.start().close)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What was imported and collected stays, and is not searched for garbage again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Fail the run when a process, a shared-memory file or a temporary folder outlives the tests that made it."""
    watch = Watch.start()
    try:
        yield
    finally:
        gc.collect()  # of coroutines that a test's kill left, while what is said of them belongs to that test
        left = watch.leftovers(deadline_s=15)
        watch.close()
    if left:
        pytest.fail("the tests left behind:\n" + "\n".join(left), pytrace=False)


@pytest.fixture
def repository() -> Path:
    """The root of the checkout."""
    return Path(__file__).resolve().parent.parent
