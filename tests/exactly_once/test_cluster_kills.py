"""Parts of a session cluster are killed; `python -m tests.exactly_once.cluster_kills` runs more rounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exactly_once.cluster_kills import VICTIMS, run

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.mark.spec("S04", "memory")
@pytest.mark.parametrize(
    ("victims", "slots"),
    [(("dispatcher", "cluster"), 1), pytest.param(VICTIMS + VICTIMS, 1, marks=pytest.mark.soak),
     pytest.param(("slot", "coordinator", "node", "slot"), 4, marks=pytest.mark.soak)],
    ids=("short", "all", "shared"),
)  # fmt: skip
def test_no_job_is_forgotten_and_every_line_is_there_once(
    victims: tuple[str, ...], slots: int, tmp_path: Path
) -> None:
    said: list[str] = []
    assert run(victims, 11, tmp_path, said.append, slots=slots), said
    assert said[-1].startswith(f"rounds={len(victims)}")
