"""`rayflink savepoint check`: keep, migrate or refuse, and why, before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rayflink.cli.main import main

pytestmark = pytest.mark.slow
PROGRAM = """
import sys
from dataclasses import dataclass

from rayflink.common.typeinfo import Types
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.functions import KeyedProcessFunction
from rayflink.datastream.state import ListStateDescriptor, ValueStateDescriptor
from rayflink.testing import ScriptedSource
from rayflink.testing.sources import Pause


@dataclass
class Cart:
    user: str
    amount: int = 0


class Carts(KeyedProcessFunction):
    def open(self, context):
        self.cart = context.get_state(ValueStateDescriptor("cart"))
        self.total = context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, pair, context):
        self.cart.update(Cart(*pair))
        self.total.update(pair[1])
        yield pair


env = StreamExecutionEnvironment.get_execution_environment()
pairs = env.from_source(ScriptedSource([("ann", 1), ("bob", 2), Pause(10**9)]), None, "pairs").uid("pairs")
pairs.key_by(lambda pair: pair[0]).process(Carts()).uid("carts").add_sink(lambda pair: None)
if __name__ == "__main__":
    client = env.execute_async("carts")
    if len(sys.argv) > 1:
        read = 0
        while read < 2:
            client.get_job_status().result()
            read = sum(vertex["numRecordsIn"] for vertex in client.status()["vertices"] if "Sink" in vertex["name"])
        print(client.stop_with_savepoint(False, sys.argv[1]).result())
"""


@pytest.fixture(scope="module")
def savepoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("carts")
    (folder / "carts.py").write_text(PROGRAM, encoding="utf-8")
    assert main(["run", "--local", str(folder / "carts.py"), str(folder)]) == 0
    (path,) = folder.glob("savepoint-*")
    return str(path)


def checked(tmp_path: Path, capsys: Any, savepoint: str, changed: str, *flags: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, (verdict, reason) by state, and the messages."""
    program = tmp_path / "new.py"
    program.write_text(changed, encoding="utf-8")
    code = main(["savepoint", "check", str(program), savepoint, "--json", *flags])
    said = capsys.readouterr()
    states = json.loads(said.out)["states"] if said.out else []
    return code, {one["state"]: (one["verdict"], one["reason"]) for one in states}, said.err


def test_the_same_program_keeps_everything(savepoint: str, tmp_path: Path, capsys: Any) -> None:
    code, states, _ = checked(tmp_path, capsys, savepoint, PROGRAM)
    assert code == 0 and set(states.values()) == {("keep", "")}
    assert {"cart", "total", "source-splits"} <= set(states)
    assert main(["savepoint", "check", str(tmp_path / "new.py"), savepoint]) == 0
    assert capsys.readouterr().out.endswith("\nthe program can start from this savepoint\n")


def test_a_field_with_a_default_is_migrated(savepoint: str, tmp_path: Path, capsys: Any) -> None:
    changed = PROGRAM.replace("amount: int = 0", "amount: int = 0\n    paid: bool = False")
    code, states, _ = checked(tmp_path, capsys, savepoint, changed)
    assert code == 0 and states["cart"] == ("migrate", "__main__:Cart: field 'paid' was added")
    assert states["total"] == ("keep", "")


@pytest.mark.parametrize(
    ("old", "new", "state", "reason"),
    [
        ("amount: int = 0", "amount: str = ''", "cart", "field 'amount' was int and is str"),
        ("Types.LONG()", "Types.STRING()", "total", "its type was Long and is String"),
        ('get_state(ValueStateDescriptor("cart"))', 'get_list_state(ListStateDescriptor("cart"))', "cart",
         "it was value state and is list state"),
        ('uid("carts")', 'uid("basket")', "cart", "the program has no such operator"),
    ],
)  # fmt: skip
def test_what_cannot_be_restored_is_refused(
    savepoint: str, tmp_path: Path, capsys: Any, old: str, new: str, state: str, reason: str
) -> None:
    code, states, _ = checked(tmp_path, capsys, savepoint, PROGRAM.replace(old, new))
    assert code == 1
    verdict, why = states[state]
    assert verdict == "refuse" and reason in why


def test_other_key_groups_are_refused(savepoint: str, tmp_path: Path, capsys: Any) -> None:
    changed = PROGRAM.replace('.uid("carts")', '.uid("carts").set_max_parallelism(9)')
    code, states, _ = checked(tmp_path, capsys, savepoint, changed)
    assert code == 1 and "key groups, and the program sets a max parallelism of 9" in states["cart"][1]


def test_state_may_be_left_behind(savepoint: str, tmp_path: Path, capsys: Any) -> None:
    code, states, _ = checked(tmp_path, capsys, savepoint, PROGRAM.replace('uid("carts")', 'uid("cards")'), "-n")
    verdict, why = states["cart"]
    assert (code, verdict) == (0, "leave") and "no such operator; did you mean 'cards'" in why


def test_functions_that_cannot_be_opened_are_told_of(savepoint: str, tmp_path: Path, capsys: Any) -> None:
    opening = "    def open(self, context):\n"
    changed = PROGRAM.replace(opening, f"{opening}        raise OSError('no server')\n")
    code, states, _ = checked(tmp_path, capsys, savepoint, changed)
    assert code == 0 and "could not be opened here" in states["total"][1] and "no server" in states["total"][1]
    code, states, _ = checked(tmp_path, capsys, savepoint, changed, "--no-open")
    assert states["total"] == ("keep", "")


def test_a_program_without_a_job_or_a_savepoint_is_an_error(savepoint: str, tmp_path: Path, capsys: Any) -> None:
    code, _, told = checked(tmp_path, capsys, savepoint, "x = 1\n")
    assert code == 1 and "called no execute()" in told
    capsys.readouterr()
    for words in (["check"], ["check", "new.py"]):
        assert main(["savepoint", *words]) == 2
        assert "give the program and the savepoint: check JOB.py SAVEPOINT" in capsys.readouterr().err


HOOK = """
class Topics(MasterTriggerRestoreHook):
    def get_identifier(self):
        return "topics"

    def trigger_checkpoint(self, checkpoint_id, timestamp):
        return b"orders"

    def restore_checkpoint(self, checkpoint_id, checkpoint_data):
        pass


env.add_master_hook(Topics())
"""


def test_what_a_master_hook_gave_needs_the_hook_or_stays_behind(tmp_path: Path, capsys: Any) -> None:
    hooked = PROGRAM.replace("import StreamExecution", "import MasterTriggerRestoreHook, StreamExecution")
    hooked = hooked.replace('if __name__ == "__main__"', f'{HOOK}if __name__ == "__main__"')
    (tmp_path / "carts.py").write_text(hooked, encoding="utf-8")
    assert main(["run", "--local", str(tmp_path / "carts.py"), str(tmp_path)]) == 0
    capsys.readouterr()
    (path,) = map(str, tmp_path.glob("savepoint-*"))
    code, states, _ = checked(tmp_path, capsys, path, hooked)
    assert (code, states["topics"]) == (0, ("keep", ""))
    code, states, _ = checked(tmp_path, capsys, path, PROGRAM)
    assert (code, states["topics"]) == (1, ("refuse", "the program registers no such master hook"))
    code, states, _ = checked(tmp_path, capsys, path, PROGRAM, "-n")
    assert code == 0 and states["topics"][0] == "leave"
