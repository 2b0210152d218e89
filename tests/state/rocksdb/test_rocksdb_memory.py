"""State of twenty times its memory: the process grows by the budget and a fixed allowance, and nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

BUDGET_MB = 16
TIMES = 20
VALUE_BYTES = 1_000
KEYS = TIMES * (BUDGET_MB << 20) // VALUE_BYTES
ALLOWANCE_MB = 100
"""Code that is loaded late, batches under way, RocksDB's threads and tables of files, and what malloc keeps."""

PROGRAM = textwrap.dedent("""
    import json, random, sys
    from pathlib import Path

    import psutil

    from rayflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
    from rayflink.datastream.state import ValueStateDescriptor

    keys, value_bytes, budget_mb, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    process, highest, on_disk = psutil.Process(), [0], [0]

    def expected(key):
        return random.Random(key).randbytes(value_bytes)

    class Keep(KeyedProcessFunction):
        def open(self, context):
            self.held = context.get_state(ValueStateDescriptor("held"))

        def process_element(self, record, ctx):
            round, key = record
            if key % 5_000 == 0:
                highest[0] = max(highest[0], process.memory_info().rss)
                files = Path(folder).glob("**/*.sst")
                on_disk[0] = max(on_disk[0], sum(file.stat().st_size for file in files if file.exists()))
            if round == 0:
                self.held.update(expected(key))
            elif self.held.value() == expected(key):
                yield 1
            else:
                raise AssertionError(f"the value of {key} is lost")

    def records():
        for round in (0, 1):
            for key in range(keys):
                yield round, key

    env = StreamExecutionEnvironment({
        "execution.target": "local",
        "parallelism.default": 1,
        "state.backend.type": "rocksdb",
        "state.backend.rocksdb.memory.fixed-per-slot": f"{budget_mb} mb",
        "state.backend.rocksdb.localdir": folder,
    })
    before = process.memory_info().rss
    kept = env.add_source(records).key_by(lambda record: record[1]).process(Keep())
    found = sum(kept.execute_and_collect())
    left = [str(path) for path in Path(folder).iterdir()]
    print(json.dumps({"before": before, "highest": highest[0], "found": found, "on_disk": on_disk[0], "left": left}))
""")


@pytest.mark.soak
@pytest.mark.slow
def test_a_state_of_twenty_times_its_memory_is_kept_whole_within_it(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    arguments = [str(KEYS), str(VALUE_BYTES), str(BUDGET_MB), str(folder)]
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, timeout=600, check=False
    )
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["found"] == KEYS, "each key is found again"
    assert told["on_disk"] > TIMES // 2 * (BUDGET_MB << 20), "the state was larger than its memory"
    grown_mb = (told["highest"] - told["before"]) >> 20
    assert grown_mb < BUDGET_MB + ALLOWANCE_MB, f"grew by {grown_mb} MB of {KEYS * VALUE_BYTES >> 20} MB of state"
    assert told["left"] == []
