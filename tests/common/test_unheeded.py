"""Options without effect are said to have none when a job is submitted."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from rayflink.common.errors import ConfigError
from rayflink.datastream import StreamExecutionEnvironment


def run(**given: Any) -> list[int]:
    options = {key.replace("__", "-").replace("_", "."): value for key, value in given.items()}
    env = StreamExecutionEnvironment({"execution.target": "local", **options})
    rows: list[int] = env.from_collection([1]).execute_and_collect()
    return rows


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"execution_checkpointing_interval": "1 s"}, "'execution.checkpointing.interval' has no effect: .*takes no"),
        ({"restart__strategy_type": "fixed-delay"}, "'restart-strategy.type' has no effect: .*never restarts"),
        ({"taskmanager_jvm__exit__on__oom": True}, "'taskmanager.jvm-exit-on-oom' has no effect"),
        ({"state_backend_type": "rocksdb"}, "'state.backend.type' has no effect: .*keeps keyed state in memory"),
        ({"state_backend": "rocksdb"}, "'state.backend.type' has no effect"),
        ({"taskmanager_memory_fraction": 0.7}, "'taskmanager.memory.managed.fraction' has no effect"),
        ({"paralellism_default": 4}, "'paralellism.default' is no option; did you mean 'parallelism.default'"),
    ],
)
def test_an_option_without_effect_is_warned_of(given: dict[str, Any], said: str) -> None:
    with pytest.warns(UserWarning, match=said):
        assert run(**given) == [1]


def test_options_with_effect_give_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(restart__strategy_type="none", parallelism_default=2, state_backend_type="hashmap") == [1]


def test_a_snapshot_to_start_from_is_refused() -> None:
    with pytest.raises(ConfigError, match="'execution.state-recovery.path': found '/no/such'.*cannot start"):
        run(execution_state__recovery_path="/no/such")
