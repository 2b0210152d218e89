"""What every test stands on: law-test settings and the check that a run leaves nothing behind."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.leftovers import Watch
from tests.side_by_side import processes

gc.set_threshold(20_000, 20, 20)
"""Collections are rarer than Python's default has them, for each looks at what thousands of tests have imported."""

settings.register_profile("daily", deadline=None, print_blob=True, max_examples=25)
settings.register_profile("deep", deadline=None, print_blob=True, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "daily"))


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
