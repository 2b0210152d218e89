"""The log of a job's process: whole lines with their task, bounded files, readers that lose and repeat nothing."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rayflink.actors.on_ray import task_log
from rayflink.actors.on_ray.task_log import LoggedPrinted, TaskLog, TaskLogHandler, lines_of, of_level, read_pieces
from rayflink.common.text_output.logs import bound, write_json


class Reader:
    """Reads a folder again and again, as `rayflink logs --follow` does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._positions: dict[str, int] = {}

    def read(self) -> list[str]:
        found = []
        for piece in read_pieces(self._folder, self._positions):
            self._positions[piece.file] = piece.end
            found += [line.text for line in lines_of(piece)]
        return found


def test_a_line_says_when_it_came_which_stream_it_is_of_and_whose_task_wrote_it(tmp_path: Path) -> None:
    log = TaskLog(tmp_path, "default-0", now_ms=iter([7, 8]).__next__)
    with bound(vertex="Map\t->\nSink", subtask=3):
        log.put("out", "one\ntwo\tand more\n")
    log.put("err", "no end")
    log.flush()
    [piece] = read_pieces(tmp_path, {})
    assert [(x.at_ms, x.stream, x.vertex, x.subtask, x.text, x.process) for x in lines_of(piece)] == [
        (7, "out", "Map -> Sink", 3, "one", "default-0"),
        (7, "out", "Map -> Sink", 3, "two\tand more", "default-0"),
        (8, "err", "", -1, "no end", "default-0"),
    ]


def test_a_reader_gets_each_line_once_and_only_whole_ones(tmp_path: Path) -> None:
    log, reader = TaskLog(tmp_path, "a"), Reader(tmp_path)
    assert reader.read() == []
    log.put("out", "1\n")
    log.flush()
    with open(tmp_path / "a.0.log", "ab") as file:
        file.write(b"9\tout\t0\tMap\tha")
        file.flush()
        assert reader.read() == ["1"]
        file.write(b"lf\n")
    assert reader.read() == ["half"]
    assert reader.read() == []


def test_a_file_that_is_too_long_is_followed_by_another_and_readers_go_on_with_it(tmp_path: Path) -> None:
    log, reader = TaskLog(tmp_path, "a", max_bytes=1_000), Reader(tmp_path)
    read: list[str] = []
    for number in range(200):
        log.put("out", f"{number}\n")
        log.flush()
        if number % 7 == 0:
            read += reader.read()
    read += reader.read()
    assert read == [str(number) for number in range(200)]
    files = sorted(tmp_path.iterdir(), key=lambda path: int(path.name.split(".")[1]))
    assert len(files) == 2 and files[1].name > "a.1.log"
    kept = Reader(tmp_path).read()
    assert 30 < len(kept) < 200 and kept == read[-len(kept) :]
    again = TaskLog(tmp_path, "a", max_bytes=1_000)
    again.put("out", "of another life\n")
    again.flush()
    assert reader.read() == ["of another life"]
    assert all(path.stat().st_size <= 1_000 for path in tmp_path.iterdir())


def test_much_text_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_log, "MAX_READ_BYTES", 100)
    log, reader = TaskLog(tmp_path, "a"), Reader(tmp_path)
    log.put("out", "\n".join(map(str, range(50))))
    log.flush()
    pieces = [reader.read() for _ in range(40)]
    assert sum(pieces, []) == [str(number) for number in range(50)]
    assert max(map(len, pieces)) < 6


def test_what_is_printed_goes_to_the_driver_and_to_the_log(tmp_path: Path) -> None:
    sent: list[list[tuple[bool, str]]] = []

    def send(texts: list[tuple[bool, str]]) -> Callable[[float], bool]:
        sent.append(texts)
        return lambda timeout_s: True

    printed = LoggedPrinted(send, TaskLog(tmp_path, "a"))
    printed.put(False, "to out\n")
    printed.put(True, "to err\n")
    printed.send()
    [piece] = read_pieces(tmp_path, {})
    assert [(line.stream, line.text) for line in lines_of(piece)] == [("out", "to out"), ("err", "to err")]
    printed.send(wait=True)
    assert sent == [[(False, "to out\n"), (True, "to err\n")]]


def test_a_log_that_cannot_be_written_is_given_up_with_one_message(tmp_path: Path, capfd: Any) -> None:
    (tmp_path / "file").write_text("")
    log = TaskLog(tmp_path / "file", "a")
    log.put("out", "1\n")
    log.put("out", "2\n")
    log.flush()
    said = capfd.readouterr().err
    assert said.count("is given up: ") == 1 and "File exists" in said


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("rayflink.tests.task_log")
    logger.setLevel(logging.DEBUG)
    yield logger
    logger.handlers.clear()


def test_what_loggers_say_is_taken_up_to_what_comes_by_standard_error(tmp_path: Path, logger: logging.Logger) -> None:
    logger.addHandler(TaskLogHandler(TaskLog(tmp_path, "a"), below=logging.WARNING))
    logger.setLevel(logging.INFO)
    logger.debug("too little")
    logger.info("deployed %d", 3)
    logger.warning("comes by standard error")
    assert Reader(tmp_path).read() == ["INFO rayflink.tests.task_log: deployed 3"]


def test_a_job_that_logs_json_has_lines_of_json_with_their_levels_and_tasks(tmp_path: Path) -> None:
    logger = logging.Logger("my_job")
    log = TaskLog(tmp_path, "a", now_ms=lambda: 7)
    logger.addHandler(TaskLogHandler(log))
    write_json(True)
    try:
        with bound(job="j1", vertex="Map", subtask=3, attempt=0):
            logger.info("begins")
            logger.error("no\nprice, password=abc")
    finally:
        write_json(False)
    [piece] = read_pieces(tmp_path, {})
    [line] = of_level(lines_of(piece), "WARNING")
    document = json.loads(line.text)
    assert (document["message"], document["attempt"], line.subtask) == ("no\nprice, password=******", 0, 3)
