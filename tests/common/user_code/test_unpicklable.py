"""A program that cannot be sent names the step, the function and the variable that hold what cannot."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from rayflink.actors.on_ray.driver.user_program import pack
from rayflink.common.errors import NotSerializable
from rayflink.common.user_code.unpicklable import cause
from rayflink.datastream import MapFunction, StreamExecutionEnvironment

SCRIPT_GLOBALS: dict[str, Any] = {"__name__": "__main__", "LOCK": threading.Lock()}
exec("def counted(n):\n    with LOCK:\n        return [LOCK for _ in n]\n", SCRIPT_GLOBALS)
counted: Callable[[Any], Any] = SCRIPT_GLOBALS["counted"]
"""A function of a script, which travels by value with the globals it uses."""


class Held:
    def __init__(self) -> None:
        self.lock = threading.Lock()


HELD = Held()


class Slotted:
    __slots__ = ("lock",)

    def __init__(self) -> None:
        self.lock = threading.Lock()


class Counting(MapFunction):
    def __init__(self) -> None:
        self.count = counted

    def map(self, value: Any) -> Any:
        return value


def closing_over(value: Any) -> Callable[[], Any]:
    return lambda: value


def refused(value: Any) -> str:
    with pytest.raises(NotSerializable) as error:
        pack(value, "the job")
    return error.value.cause


def test_a_step_that_cannot_be_sent_is_named_with_its_line_and_the_global_it_uses() -> None:
    env = StreamExecutionEnvironment()
    env.from_collection([1]).map(lambda n: n).name("harmless").map(counted).name("count").print()
    with pytest.raises(NotSerializable) as error:
        pack(env.get_job_graph(), "job 'x'")
    assert error.value.what == "step 'count' of job 'x'"
    assert error.value.cause.startswith("counted -> global LOCK, a lock: TypeError: cannot pickle")
    assert re.search(r"test_unpicklable.py:\d+", error.value.line)


def test_an_attribute_of_a_function_object_is_named() -> None:
    env = StreamExecutionEnvironment()
    env.from_collection([1]).key_by(lambda n: n).map(Counting()).print()
    graph = env.get_job_graph()
    with pytest.raises(NotSerializable, match="step 'Map' of job 'x': Counting.count -> counted -> global LOCK, "):
        pack(graph, "job 'x'")


@pytest.mark.parametrize(
    ("value", "way"),
    [
        (closing_over(threading.Lock()), "closing_over.<locals>.<lambda> -> variable value"),
        (closing_over(Held()), "closing_over.<locals>.<lambda> -> variable value -> Held.lock"),
        (lambda held=HELD: held, "<lambda> -> a default -> Held.lock"),
        (functools.partial(counted, 1), "counted -> global LOCK"),
        (Held(), "Held.lock"),
        ({"a": [1, (2, Held())]}, "['a'] -> [1] -> Held.lock"),
        ([1] * 5000 + [Held()] + [2] * 9, "[5000] -> Held.lock"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_way_to_the_value_is_told(value: Any, way: str) -> None:
    assert refused(value).startswith(f"{way}, a lock: TypeError")


def test_a_class_of_the_script_is_looked_into() -> None:
    local = type("Counter", (), {"LOCK": threading.Lock(), "__module__": "__main__"})
    assert refused(local()).startswith("Counter.LOCK, a lock: TypeError")


def test_what_holds_itself_is_looked_into_once() -> None:
    looped = Held()
    looped.itself = looped  # type: ignore[attr-defined]
    assert refused(looped).startswith("Held.lock, a lock")


def test_a_value_that_fails_as_a_whole_is_its_own_cause() -> None:
    class Refusing:
        def __reduce__(self) -> Any:
            raise ValueError("not me")

    assert refused(Refusing()) == "ValueError: not me"
    assert refused(n for n in "ab") == "TypeError: cannot pickle 'generator' object"


def test_attributes_in_slots_are_found() -> None:
    assert cause(Slotted(), TypeError("x")).startswith("Slotted.lock, a lock")
