"""A job that restarts from files that stayed on its node."""

from __future__ import annotations

from pathlib import Path

import pytest

from rayflink.connectors.collection import CollectSink
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.state.storage.local_copies import LocalCopies

KEYS, RECORDS, PER_SECOND = 4_000, 60_000, 15_000


@pytest.mark.slow
@pytest.mark.spec("G35", "J20", "local")
@pytest.mark.parametrize("from_local", [True, False])
def test_state_on_disk_comes_back_from_the_node_where_the_option_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, from_local: bool
) -> None:
    taken: list[bool] = []
    take = LocalCopies.take
    monkeypatch.setattr(LocalCopies, "take", lambda *given: taken.append(take(*given)) or taken[-1])
    failed = tmp_path / "failed"

    def fails_once(pair: tuple[int, int]) -> tuple[int, int]:
        looks = pair[1] > 3 and pair[0] % 500 == 0 and not failed.exists()
        if looks and list(tmp_path.glob("checkpoints/*/chk-*/_metadata")):
            failed.touch()
            raise RuntimeError("once")
        return pair

    env = StreamExecutionEnvironment.get_execution_environment(
        {
            "execution.target": "local",
            "io.tmp.dirs": str(tmp_path / "spill"),
            "execution.checkpointing.interval": "50 ms",
            "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
            "execution.state-recovery.from-local": str(from_local),
            "restart-strategy.type": "fixed-delay",
            "state.backend.rocksdb.memory.fixed-per-slot": "64 kb",
        }
    )
    (tmp_path / "spill").mkdir()
    numbers = env.from_source(DataGeneratorSource(lambda n: (n % KEYS, 1), RECORDS, PER_SECOND), None, "numbers")
    pairs = numbers.map(lambda pair: pair)
    pairs.key_by(lambda pair: pair[0]).sum(1).map(fails_once).sink_to(CollectSink())
    rows = env.execute().get_accumulator_result("collect")
    assert sorted(rows) == sorted((key, count) for key in range(KEYS) for count in range(1, RECORDS // KEYS + 1))
    assert failed.exists() and any(taken) is from_local
    assert [str(p) for p in (tmp_path / "spill").rglob("*")] == []
