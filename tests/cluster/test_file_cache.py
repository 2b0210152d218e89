"""Files of the distributed cache on Ray: each process with tasks has its copy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rayflink.common import JobFailed
from rayflink.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]


class Reads(MapFunction):
    """Each record becomes what the cached file holds, and where it is."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.path = runtime_context.get_distributed_cache().get_file("model")

    def map(self, value: Any) -> Any:
        return Path(self.path).read_text(), self.path


@pytest.mark.spec("C34", "registered", "copied", "failure")
def test_tasks_on_ray_read_copies_of_their_process(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "model.bin").write_text("weights")
    config = {"execution.target": "ray", "io.tmp.dirs": str(tmp_path / "disk"), "parallelism.default": "2"}
    env = StreamExecutionEnvironment(config)
    env.register_cached_file(str(tmp_path / "model.bin"), "model")
    found = env.from_sequence(1, 10).rebalance().map(Reads()).execute_and_collect(limit=20)
    assert {content for content, _ in found} == {"weights"} and len({path for _, path in found}) == 2
    assert all(Path(path).is_relative_to(tmp_path / "disk") for _, path in found)
    assert list((tmp_path / "disk").iterdir()) == []
    env.register_cached_file(str(tmp_path / "no.bin"), "model")
    with pytest.raises(JobFailed, match="'model' cannot be copied from '.*no.bin'"):
        list(env.from_collection([1]).map(Reads()).execute_and_collect())
