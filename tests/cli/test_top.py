"""The page of `rayflink top`: its lines, and its keys."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from rayflink.cli import top as top_command
from rayflink.cli.main import main
from rayflink.cli.top_screen import TopScreen
from rayflink.cluster.jobs.job_figures import job_figures, job_row
from tests.cluster_rest.pages.job_statuses import NOW_MS, description, operator, status, subtask, vertex

HOSTILE = "\x1b[31mred\u202e\nname"


def job(job_id: str, name: str, read: float = 5, **more: Any) -> dict[str, Any]:
    reader = operator("in", NOW_MS - 1500, numRecordsOutPerSecond=read)
    source = subtask(0, read, 900, 100, numRecordsIn=0, operators=[reader])
    return status(vertex("source", [source]), vertex("sink", [subtask(0, read, 30, 0)]), jid=job_id, name=name, **more)


def listed(*jobs: dict[str, Any]) -> TopScreen:
    screen = TopScreen("here")
    screen.take_jobs({"now_ms": NOW_MS, "jobs": [job_row(status, NOW_MS) for status in jobs]})
    return screen


def test_the_list_has_a_line_for_each_job_and_no_control_character() -> None:
    ended = job("b" * 32, "old", state="FAILED", timestamps={"CREATED": 1, "FAILED": NOW_MS})
    screen = listed(ended, job("a" * 32, HOSTILE))
    lines = screen.lines()
    assert lines[0] == "rayflink top  here  2027-01-15 08:00:00 UTC"
    assert lines[1] == "1 FAILED, 1 RUNNING"
    assert lines[4].split()[1:] == ["name", "RUNNING", "1", "min", "0", "s", "2/2", "5", "1.5", "s", "█████████▒",
                                    "10", "%", "0", "0", "-"]  # fmt: skip
    assert lines[5].startswith("old") and all(line.isprintable() for line in lines)


def test_keys_choose_a_job_open_it_and_change_the_order() -> None:
    screen = listed(job("a" * 32, "slow", 1), job("b" * 32, "fast", 900))
    assert (screen.marked_line, screen.key("down"), screen.marked_line, screen.key("down")) == (4, True, 5, True)
    screen.key("s")
    assert "order: records/s" in screen.lines()[-1]
    assert screen.lines()[4].startswith("fast") and screen.marked_line == 4, "the chosen job stays chosen"
    screen.key("enter")
    assert screen.job_id == "b" * 32 and "waiting for the figures" in screen.lines()[-1]
    screen.key("escape")
    assert screen.job_id is None and screen.key("q") is False


def test_a_job_has_its_vertices_and_what_holds_it_up() -> None:
    screen = listed(job("a" * 32, HOSTILE))
    screen.key("enter")
    plan = description(("source", "sink"), names=("source", "sink"))
    finding = {"severity": "warning", "title": f"{HOSTILE} waits", "detail": "see it"}
    screen.take_job(job_figures(job("a" * 32, HOSTILE, waiting="waiting for 2 slots"), plan, NOW_MS), [finding])
    text = "\n".join(screen.lines())
    assert "source" in text and "waiting for 2 slots" in text and "name waits: see it" in text
    assert all(line.isprintable() for line in screen.lines())
    screen.problem = "gone"
    assert "STALE: gone" in screen.lines()[0]


def test_top_prints_the_list_once_where_there_is_no_terminal(monkeypatch: Any, capsys: Any) -> None:
    class Feed:
        title = "there"

        def jobs(self) -> dict[str, Any]:
            return {"now_ms": NOW_MS, "jobs": [job_row(job("a" * 32, "one"), NOW_MS)]}

    monkeypatch.setattr(top_command, "_feed", lambda chosen: Feed())
    assert main(["top"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("one ")


def test_a_cluster_that_does_not_answer_is_named(capsys: Any) -> None:
    assert main(["top", "--address", "127.0.0.1:1"]) == 1
    assert "the cluster at http://127.0.0.1:1 does not answer" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/", "127.0.0.1:1"])
def test_an_address_may_lack_its_scheme(address: str) -> None:
    chosen = argparse.Namespace(address=address, options=[], config=None)
    assert top_command._feed(chosen).title == "http://127.0.0.1:1"
