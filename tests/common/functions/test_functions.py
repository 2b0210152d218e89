"""What a function can ask of its task: context, accumulators, cached files."""

from __future__ import annotations

from typing import Any

import pytest

from rayflink.common.functions.accumulators import (
    Accumulator,
    AverageAccumulator,
    DoubleCounter,
    Histogram,
    IntCounter,
    ListAccumulator,
    Maximum,
    Minimum,
    merge_accumulators,
)
from rayflink.common.functions.function_classes import MapFunction, RichFunction, RuntimeContext, as_map, as_sink
from rayflink.operators.base import OperatorContext


def _context(**facts: Any) -> RuntimeContext:
    return RuntimeContext(OperatorContext("0" * 32, "op", **facts))


@pytest.mark.spec("C35", "place")
def test_a_function_knows_its_place_in_the_job() -> None:
    ctx = _context(
        task_name="map", subtask=1, parallelism=4, max_parallelism=64, attempt=2, metrics="m", config={"k": "v"}
    )
    assert (ctx.get_task_name(), ctx.get_task_name_with_subtasks()) == ("map", "map (2/4)#2")
    assert ctx.get_index_of_this_subtask() == 1
    assert ctx.get_number_of_parallel_subtasks() == 4
    assert ctx.get_max_number_of_parallel_subtasks() == 64
    assert ctx.get_attempt_number() == 2
    assert ctx.get_metrics_group() == "m"
    assert (ctx.get_job_parameter("k", "d"), ctx.get_job_parameter("other", "d")) == ("v", "d")


@pytest.mark.spec("C34", "registered", "C35", "cache")
def test_cached_files_are_found_by_name_and_others_are_named() -> None:
    cache = _context(cached_files={"model": "/tmp/model"}).get_distributed_cache()
    assert cache.get_file("model") == "/tmp/model"
    with pytest.raises(KeyError, match="no cached file 'other' .registered: model.; call env.register_cached_file"):
        cache.get_file("other")


@pytest.mark.spec("C35", "accumulators")
def test_accumulators_of_a_task_are_registered_once_by_name() -> None:
    accumulators: dict[str, Any] = {}
    ctx = _context(accumulators=accumulators)
    counter = IntCounter()
    ctx.add_accumulator("n", counter)
    counter.add(2)
    assert accumulators["n"].get_local_value() == ctx.get_accumulator("n").get_local_value() == 2
    assert ctx.get_accumulator("other") is None
    with pytest.raises(ValueError, match="accumulator 'n' exists already in task 'task'; use another name"):
        ctx.add_accumulator("n", IntCounter())


@pytest.mark.spec("C35", "accumulators")
@pytest.mark.parametrize(
    ("kind", "parts", "want"),
    [
        (IntCounter, [[1, 2], [], [10**30]], 10**30 + 3),
        (DoubleCounter, [[0.5], [1.5]], 2.0),
        (Minimum, [[], [3, 1], [2]], 1),
        (Maximum, [[3, 1], [], [2]], 3),
        (AverageAccumulator, [[1, 2], [9]], 4.0),
        (AverageAccumulator, [[], []], 0.0),
        (Histogram, [[3, 1, 3], [1]], {1: 2, 3: 2}),
        (ListAccumulator, [["a", "b"], ["c"]], ["a", "b", "c"]),
    ],
)
def test_accumulators_of_all_subtasks_are_merged(kind: type[Accumulator[Any, Any]], parts: Any, want: Any) -> None:
    tasks = []
    for values in parts:
        accumulator = kind()
        for value in values:
            accumulator.add(value)
        tasks.append({"n": accumulator})
    before = [task["n"].get_local_value() for task in tasks]
    assert merge_accumulators(tasks)["n"].get_local_value() == want
    assert [task["n"].get_local_value() for task in tasks] == before
    tasks[0]["n"].reset_local()
    assert tasks[0]["n"].get_local_value() == kind().get_local_value()


def test_accumulators_of_one_name_and_two_types_are_refused() -> None:
    with pytest.raises(TypeError, match="'n' is a Histogram in one task and a IntCounter in another; rename one"):
        merge_accumulators([{"n": IntCounter()}, {"n": Histogram()}])


def test_keyed_state_without_a_key_is_refused_with_the_remedy() -> None:
    message = "'op' asked for keyed state 'n', but its stream is not keyed; call key_by"
    for kind in ("state", "list_state", "map_state", "reducing_state", "aggregating_state"):
        with pytest.raises(RuntimeError, match=message):
            getattr(_context(), f"get_{kind}")("n")


def test_keyed_state_comes_from_the_store_of_the_operator() -> None:
    class Store:
        def get_state(self, descriptor: Any) -> Any:
            return "state", descriptor

    ctx = RuntimeContext(OperatorContext("0" * 32, "op"), Store())  # type: ignore[arg-type]
    assert ctx.get_state("d") == ("state", "d")


def test_a_rich_function_has_its_context_once_it_is_open() -> None:
    class Rich(MapFunction, RichFunction):
        def map(self, value: int) -> int:
            return value

    function = Rich()
    with pytest.raises(RuntimeError, match="Rich has no runtime context before open"):
        function.get_runtime_context()
    ctx = _context()
    adapted = as_map(function)
    adapted.open(ctx)
    assert function.get_runtime_context() is ctx
    assert adapted.call(3) == 3


def test_a_callable_object_without_a_life_cycle_is_a_function() -> None:
    class Plus:
        def __call__(self, value: int) -> int:
            return value + 1

    call, opening, closing, _ = as_map(Plus())
    opening(_context())
    closing()
    assert call(1) == 2 and as_sink(print).call is print
