"""Each log line carries the identity bound in its thread."""

import logging
import threading

import pytest

from rayflink.common.logs import LineFormatter, bind, bound, get_logger, identity


@pytest.fixture
def lines():
    collected = []

    class Collect(logging.Handler):
        def emit(self, record):
            collected.append(record)

    logger, handler = logging.getLogger("rayflink.test_logs"), Collect()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield collected
    logger.removeHandler(handler)


def test_a_line_carries_what_is_bound_and_what_the_call_adds(lines):
    log = get_logger("rayflink.test_logs")
    with bound(job="j1", vertex="map", subtask=2):
        log.info("checkpoint published", extra={"checkpoint_id": 7})
    text = LineFormatter().format(lines[0])
    assert text.endswith("checkpoint published job=j1 vertex=map subtask=2 checkpoint_id=7")
    assert lines[0].job == "j1" and identity() == {}


def test_blocks_nest_and_none_removes(lines):
    with bound(job="j1"), bound(job="j2", vertex="v"):
        bind(vertex=None)
        assert identity() == {"job": "j2"}
    assert identity() == {}


def test_another_thread_has_its_own_identity():
    seen = []
    with bound(job="j1"):
        thread = threading.Thread(target=lambda: seen.append(identity()))
        thread.start()
        thread.join()
    assert seen == [{}]


def test_a_traceback_follows_the_line(lines):
    try:
        raise KeyError("k")
    except KeyError:
        get_logger("rayflink.test_logs").exception("failed", extra={"n": 1})
    text = LineFormatter().format(lines[0])
    assert "failed n=1\nTraceback" in text and text.endswith("KeyError: 'k'")
