"""`rayflink state matches`, and partial matches of a savepoint in Python."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

import pytest

from rayflink.cep import CEP, Pattern
from rayflink.cep.saved_matches import NoPartialMatches, saved_matches
from rayflink.cli import matches as command
from rayflink.cli.main import main
from rayflink.state_processor import read_savepoint
from rayflink.testing import rec, wm
from tests.state_processor.savepoints import environment, savepoint_after, scripted, worked

PATTERN = (
    Pattern.begin("small").where(lambda payment: payment[1] < 5).one_or_more().allow_combinations()
    .followed_by("large").where(lambda payment: payment[1] > 800).within(60_000)
)  # fmt: skip
QUIET = (
    Pattern.begin("large").where(lambda payment: payment[1] > 800)
    .not_followed_by("refund").where(lambda payment: payment[1] < 0).within(10_000)
)  # fmt: skip


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> str:
    env = environment(tmp_path_factory.mktemp("savepoints"), parallelism__default="1")
    payments = [rec(("ann", 3), 1_000), rec(("bob", 4), 1_500), rec(("ann", 2), 5_250), rec(("cid", 900), 6_000)]
    source = scripted([*payments, wm(7_000), rec(("ann", 950), 9_000)])
    stream = env.from_source(source, None, "payments").key_by(lambda payment: payment[0])
    for pattern, uid in ((PATTERN, "alarms"), (QUIET, "quiet")):
        CEP.pattern(stream, pattern).select(str).uid(uid).name(uid).print()
    return savepoint_after(env, lambda status: worked("alarms", 5)(status) and worked("quiet", 5)(status))


def said_by(capsys: Any, *arguments: str) -> str:
    assert main(arguments) == 0
    said = capsys.readouterr()
    assert "not plain types" not in said.err
    return str(said.out)


@pytest.mark.slow
def test_partial_matches_of_a_key_are_shown_in_words(taken: str, capsys: Any) -> None:
    assert said_by(capsys, "state", "matches", taken, "alarms", "ann").splitlines() == [
        "key ann",
        "  waits for 'small' or 'large': began 1970-01-01 00:00:01, times out 1970-01-01 00:01:01",
        "    small: ('ann', 3), ('ann', 2)",
        "  waits for 'small': began 1970-01-01 00:00:01, times out 1970-01-01 00:01:01",
        "    small: ('ann', 3)",
        "  waits for 'large': began 1970-01-01 00:00:01, times out 1970-01-01 00:01:01",
        "    small: ('ann', 3)",
        "  waits for 'small' or 'large': began 1970-01-01 00:00:05.250, times out 1970-01-01 00:01:05.250",
        "    small: ('ann', 2)",
    ]
    assert said_by(capsys, "state", "matches", taken, "quiet").splitlines() == [
        "key cid",
        "  is a match unless 'refund' comes: began 1970-01-01 00:00:06, certain 1970-01-01 00:00:16",
        "    large: ('cid', 900)",
    ]
    assert said_by(capsys, "state", "matches", taken, "alarms", "eve") == "no partial matches\n"


@pytest.mark.slow
def test_partial_matches_are_json_and_python(taken: str, capsys: Any) -> None:
    assert json.loads(said_by(capsys, "state", "matches", taken, "alarms", "bob", "--json")) == {
        "key": "bob", "waits_for": ["small", "large"], "events": {"small": [["bob", 4]]}, "began": 1_500,
        "last": 1_500, "over": 61_500, "kind": "waiting",
    }  # fmt: skip
    savepoint = read_savepoint(taken)
    assert [match.events for match in saved_matches(savepoint, "alarms", key="bob")] == [{"small": [("bob", 4)]}]
    with pytest.raises(NoPartialMatches, match="several operators .*name one of 'alarms', 'quiet'"):
        next(saved_matches(savepoint))
    assert main(["state", "matches", taken, "alarms", "--limit", "1"]) == 0
    assert "only the first 1 partial matches are shown" in capsys.readouterr().err


class Job:
    def __init__(self, newest: Any) -> None:
        self.newest = newest

    def checkpoints(self, checkpoint: int | None) -> Any:
        return {"latest": {"completed": self.newest}}


@pytest.mark.parametrize("newest", [{"id": 7, "external_path": "/checkpoints/chk-7"}, None])
def test_of_a_running_job_the_newest_checkpoint_is_read(newest: Any, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(command, "one_job", lambda chosen: {"jid": f"id of {chosen.job}"})
    monkeypatch.setattr(command, "configuration_of", lambda chosen: None)
    monkeypatch.setattr(command.launch, "attach", lambda jid, config: {"id of alarms": Job(newest)}[jid])
    path = command.snapshot_path(Namespace(path="alarms"))
    said = capsys.readouterr().err
    if newest is None:
        assert path is None and "has no completed checkpoint; take a savepoint by `rayflink savepoint alarms`" in said
    else:
        assert path == "/checkpoints/chk-7" and "of checkpoint 7 at /checkpoints/chk-7" in said
