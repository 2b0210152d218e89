"""The thread that works on the files of checkpoints."""

from __future__ import annotations

import logging
import threading

import pytest

from rayflink.actors.checkpoints.storage_work import StorageWork


def test_work_is_done_in_order_and_a_failure_does_not_end_it(caplog: pytest.LogCaptureFixture) -> None:
    work, done = StorageWork(), []
    with caplog.at_level(logging.ERROR, logger="rayflink"):
        work.submit(done.append, 1)
        work.submit(lambda: 1 // 0)
        work.submit(done.append, 2)
        assert work.end(20)
    assert done == [1, 2]
    assert "work on the files of checkpoints failed" in caplog.text and "ZeroDivisionError" in caplog.text
    assert work.end(0), "nothing is left to do"


def test_a_storage_that_hangs_does_not_hold_up_the_end(caplog: pytest.LogCaptureFixture) -> None:
    work, answers = StorageWork(), threading.Event()
    work.submit(answers.wait)
    work.submit(int)
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "checkpoint-files")
    try:
        with caplog.at_level(logging.WARNING, logger="rayflink"):
            assert not work.end(0.01)
        assert (
            "did not answer within 0 s: files of the job may be left behind there (2 steps are not done)" in caplog.text
        )
    finally:
        answers.set()
    assert work.end(20)
