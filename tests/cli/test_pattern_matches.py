"""`rayflink state matches`, and partial matches of a savepoint in Python."""

from __future__ import annotations

import json
from argparse import Namespace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rayflink.cep import CEP, Pattern, PatternRule
from rayflink.cep.saved_matches import NoPartialMatches, saved_matches
from rayflink.cli import matches as command
from rayflink.cli.main import main
from rayflink.common.errors import JobCancelled
from rayflink.state_processor import read_savepoint
from rayflink.table import EnvironmentSettings, TableEnvironment
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


RULES = [PatternRule("tested", 1, PATTERN), PatternRule("large", 7, QUIET)]
ROWS = """
    SELECT * FROM payments MATCH_RECOGNIZE (
      PARTITION BY name, kind ORDER BY ts
      MEASURES SMALL.n AS n, LARGE.ts AS ts
      PATTERN (SMALL{2} OTHERS* LARGE) WITHIN INTERVAL '1' HOUR
      DEFINE SMALL AS SMALL.n < 5, LARGE AS LARGE.n < 0, OTHERS AS OTHERS.n > PREV(OTHERS.n, 2)
    )
"""


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> str:
    env = environment(tmp_path_factory.mktemp("savepoints"), parallelism__default="1")
    payments = [rec(("ann", 3), 1_000), rec(("bob", 4), 1_500), rec(("ann", 2), 5_250), rec(("cid", 900), 6_000)]
    source = scripted([*payments, wm(7_000), rec(("ann", 950), 9_000)])
    stream = env.from_source(source, None, "payments").key_by(lambda payment: payment[0])
    for pattern, uid in ((PATTERN, "alarms"), (QUIET, "quiet")):
        CEP.pattern(stream, pattern).select(str).uid(uid).name(uid).print()
    CEP.patterns(stream, RULES).select(str).uid("rules").name("rules").print()
    return savepoint_after(env, lambda status: all(worked(name, 5)(status) for name in ("alarms", "quiet", "rules")))


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
        "last": 1_500, "over": 61_500, "kind": "waiting", "pattern_id": None, "version": None,
    }  # fmt: skip
    savepoint = read_savepoint(taken)
    assert [match.events for match in saved_matches(savepoint, "alarms", key="bob")] == [{"small": [("bob", 4)]}]
    with pytest.raises(NoPartialMatches, match="several operators .*name one of 'alarms', 'quiet', 'rules'"):
        next(saved_matches(savepoint))
    assert main(["state", "matches", taken, "alarms", "--limit", "1"]) == 0
    assert "only the first 1 partial matches are shown" in capsys.readouterr().err


@pytest.mark.slow
def test_partial_matches_of_several_patterns_name_their_rules(taken: str, capsys: Any) -> None:
    assert said_by(capsys, "state", "matches", taken, "rules", "cid").splitlines() == [
        "key cid",
        "  of 'large', version 7, is a match unless 'refund' comes: "
        "began 1970-01-01 00:00:06, certain 1970-01-01 00:00:16",
        "    large: ('cid', 900)",
    ]
    (match,) = saved_matches(read_savepoint(taken), "rules", key="bob")
    assert (match.pattern_id, match.version, match.waits_for) == ("tested", 1, ("small", "large"))


@pytest.mark.slow
def test_partial_matches_of_rows_are_shown_of_a_running_job(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    options = {"target": "local", "checkpointing.interval": "10ms", "checkpointing.dir": str(tmp_path)}
    for option, value in options.items():
        t_env.get_config().set_string(f"execution.{option}", value)
    t_env.execute_sql("""
        CREATE TABLE payments (n BIGINT, name AS 'ann', kind AS n / 1000000000, WATERMARK FOR ts AS ts,
          ts AS TIMESTAMPADD(SECOND, CAST(n AS INT), TIMESTAMP '2026-01-01 10:00:00'))
        WITH ('connector' = 'datagen', 'rows-per-second' = '100', 'fields.n.kind' = 'sequence', 'fields.n.start' = '3',
              'fields.n.end' = '1000000000')
    """)
    t_env.execute_sql("CREATE TABLE results (name STRING, kind BIGINT, n BIGINT, ts TIMESTAMP(3)) "
                      "WITH ('connector' = 'blackhole')")  # fmt: skip
    client: Any = t_env.execute_sql(f"INSERT INTO results {ROWS}").get_job_client()
    monkeypatch.setattr(command, "one_job", lambda chosen: {"jid": chosen.job})
    monkeypatch.setattr(command.launch, "attach", lambda jid, config: {"payments": client}[jid])
    said: list[str] = []
    while not any("{'n': 6" in line for line in said):
        assert not client.get_job_status().result().is_terminal
        if client.checkpoints(None)["latest"]["completed"] is not None:
            said = said_by(capsys, "state", "matches", "payments").splitlines()
    client.cancel()
    with pytest.raises(JobCancelled):
        client.get_job_execution_result().result()
    assert said[:3] == [
        "key ('ann', 0)",
        "  waits for 'OTHERS' or 'LARGE': began 2026-01-01 10:00:03, times out 2026-01-01 11:00:03",
        f"    SMALL: {row_of(3, None)}, {row_of(4, None)}",
    ]
    assert said[3].startswith(f"    OTHERS: {row_of(5, 3)}, {row_of(6, 4)}")


def row_of(number: int, before: int | None) -> str:
    """Return how the values of a row are shown that partial matches have."""
    return str({"n": number, "PREV(n, 2)": before, "ts": datetime(2026, 1, 1, 10, 0, number)})


def test_a_running_job_without_a_checkpoint_has_no_matches_to_show(monkeypatch: Any, capsys: Any) -> None:
    job = SimpleNamespace(checkpoints=lambda checkpoint: {"latest": {"completed": None}})
    monkeypatch.setattr(command, "one_job", lambda chosen: {"jid": chosen.job})
    monkeypatch.setattr(command, "configuration_of", lambda chosen: None)
    monkeypatch.setattr(command.launch, "attach", lambda jid, config: {"alarms": job}[jid])
    assert command.snapshot_path(Namespace(path="alarms")) is None
    said = capsys.readouterr().err
    assert "has no completed checkpoint; take a savepoint by `rayflink savepoint alarms`" in said
