"""A job, a dashboard and the command line give the same figures of one checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rayflink.cli.main import main
from rayflink.state.storage.state_report import describe_state
from rayflink.state_processor import read_savepoint
from tests.state_processor.programs import EVENTS, shop
from tests.state_processor.savepoints import BACKENDS, environment, wait_until, worked


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_sizes_of_each_state_are_known_by_name_and_offline(backend: str, tmp_path: Path, capsys: Any) -> None:
    env = environment(tmp_path, backend)
    shop(env)
    client = env.execute_async("sizes")
    wait_until(client, worked("Window", len(EVENTS)))
    path = client.stop_with_savepoint(False).result()
    newest = client.checkpoints()["latest"]["savepoint"]["id"]
    live = client.checkpoints(newest)["state"]
    savepoint = read_savepoint(path)
    assert live == json.loads(json.dumps(describe_state(savepoint.manifest)))
    carts, sums = ({state["name"]: state for state in operator["states"]} for operator in live["operators"]
                   if operator["uid"] in ("carts", "sums"))  # fmt: skip
    assert {name: state["entries"] for name, state in carts.items() if state["is_keyed"]} == {
        "cart": 3, "fresh": 3, "log": 10, "sum": 3, "visits": 10, "user-timers/event": 10, "user-timers/processing": 3,
    }  # fmt: skip
    assert sums["window-contents"]["bytes"] > 0 < sums["window-timers/event"]["bytes"]
    assert carts["log"]["largest_group"]["share"] >= 0.3
    copy = savepoint.write(tmp_path / "copy")
    again = next(one for one in describe_state(copy.manifest)["operators"] if one["uid"] == "carts")
    assert {state["name"]: state["entries"] for state in again["states"]} == {
        name: state["entries"] for name, state in carts.items()
    }
    assert main(["state", "show", path, "--json"]) == 0
    shown = {(state["uid"], state["state"]): state for state in json.loads(capsys.readouterr().out)["states"]}
    assert shown["carts", "visits"]["bytes"] == carts["visits"]["bytes"]
    assert main(["state", "show", path, "carts"]) == 0
    table = capsys.readouterr().out
    group = carts["visits"]["largest_group"]
    assert f"{group['group']} ({group['share']:.0%})" in next(line for line in table.splitlines() if "visits" in line)
