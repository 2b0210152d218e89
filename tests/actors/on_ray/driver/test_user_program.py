"""The user's program on its way to another process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap
from types import ModuleType

import pytest

from rayflink.actors.on_ray.driver.user_program import pack, unpack
from rayflink.common.errors import NotSerializable

SCRIPT = textwrap.dedent(
    """
    import sys
    from dataclasses import dataclass
    from rayflink.actors.on_ray.driver.user_program import pack

    @dataclass(frozen=True)
    class Reading:
        sensor: str
        value: int

    FACTOR = 3

    def scaled(reading):
        return Reading(reading.sensor, reading.value * FACTOR)

    sys.stdout.buffer.write(pack((scaled, Reading("a", 2))))
    """
)


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> bytes:
    script = tmp_path_factory.mktemp("user") / "job.py"
    script.write_text(SCRIPT)
    return subprocess.run([sys.executable, str(script)], capture_output=True, check=True, env=_path()).stdout


def _path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.getcwd()}


def test_functions_of_the_script_come_with_what_they_use(packed):
    scaled, reading = unpack(packed, ModuleType("__main__"))
    assert (scaled(reading).sensor, scaled(reading).value) == ("a", 6)


def test_its_classes_take_their_place_so_that_plain_pickle_finds_them(packed, monkeypatch):
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    scaled, reading = unpack(packed, main)
    assert type(reading) is main.Reading
    assert type(scaled(reading)) is main.Reading
    assert pickle.loads(pickle.dumps(reading)) == reading


def test_what_can_not_travel_is_refused_with_its_name():
    with pytest.raises(NotSerializable, match="the job 'x'"):
        pack(sys._getframe(), "the job 'x'")
