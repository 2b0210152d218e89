"""Programs that split a stream by names."""

from __future__ import annotations

import pytest

from rayflink.common import PlanError
from rayflink.common.errors import InvalidFunction, JobFailed
from rayflink.datastream import OutputSelector
from rayflink.graph.transformations import Select
from tests.datastream.programs import environment


class Parity(OutputSelector):
    def select(self, value):
        return ["even" if value % 2 == 0 else "odd"]


@pytest.mark.spec("C16", "by-name", "I05", "split-select")
@pytest.mark.parametrize("parallelism", [1, 2])
def test_each_selection_has_its_records_and_is_no_step(parallelism):
    env = environment(parallelism)
    numbers = env.from_collection([1, 2, 3, 4, 5, 6]).split(Parity())
    assert sorted(numbers.select("even").execute_and_collect()) == [2, 4, 6]
    assert sorted(numbers.select("even", "odd").map(str).execute_and_collect()) == ["1", "2", "3", "4", "5", "6"]
    assert sorted(numbers.execute_and_collect()) == [1, 2, 3, 4, 5, 6]
    assert list(numbers.select("none").execute_and_collect()) == []
    numbers.select("odd").map(str).print()
    assert [operator.name for vertex in env.get_job_graph().vertices for operator in vertex.operators] == [
        "Source: Collection Source", "Map", "Sink: Print to Std. Out",
    ]  # fmt: skip


@pytest.mark.spec("C16", "overrides")
def test_the_nearest_of_two_selections_counts():
    stream = environment().from_collection([1, 2, 3]).split(Parity()).select("even")
    stream._transformation = Select(stream._transformation, ("odd",))
    assert list(stream.execute_and_collect()) == [1, 3]


@pytest.mark.spec("C16", "by-name")
def test_splits_of_one_stream_do_not_see_each_others_names():
    numbers = environment().from_collection([1, 2, 3, 4])
    first, second = numbers.split(lambda n: ["x"] if n > 2 else []), numbers.split(lambda n: ["x"] if n < 3 else [])
    assert list(first.select("x").execute_and_collect()) == [3, 4]
    assert sorted(first.select("x").union(second.select("x")).execute_and_collect()) == [1, 2, 3, 4]
    assert list(first.select("x").map(lambda n: n).split(Parity()).select("odd").execute_and_collect()) == [3]


def test_what_cannot_be_split_is_refused_in_its_line():
    split = environment().from_collection([1, 2]).split(Parity())
    with pytest.raises(PlanError, match=r"without a name.*test_split\.py"):
        split.select()
    with pytest.raises(TypeError, match="names of outputs as str, found 1"):
        split.select(1)
    with pytest.raises(InvalidFunction, match=r"the class Parity itself was passed.*Parity\(\.\.\.\)"):
        split.split(Parity)
    with pytest.raises(InvalidFunction, match=r"split wants a function of 1 argument"):
        split.split(lambda a, b: [])
    with pytest.raises(PlanError, match=r"split again.*side outputs.*test_split\.py"):
        list(split.select("odd").split(Parity()).select("odd").execute_and_collect())
    broken = environment().from_collection([1, 0]).split(lambda n: ["x"] if 1 / n else []).select("x")
    with pytest.raises(JobFailed, match=r"(?s)correct 'split' \(created at .*test_split\.py.*record: 0"):
        list(broken.execute_and_collect())
