"""Joins in whole programs: what is written, what is refused in which line, and that modes and parallelism agree."""

from __future__ import annotations

import doctest
import importlib
from datetime import timedelta
from operator import itemgetter
from typing import Any

import pytest

from rayflink.common import Duration, JobFailed, PlanError, Time, Types
from rayflink.common.errors import InvalidFunction
from rayflink.datastream import (
    CoGroupedStreams,
    CoGroupFunction,
    FlatJoinFunction,
    IntervalJoined,
    JoinedStreams,
    JoinFunction,
    OutputTag,
    ProcessJoinFunction,
)
from rayflink.datastream.window import (
    CountEvictor,
    EventTimeSessionWindows,
    EventTimeTrigger,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from rayflink.operators.windows.co_group_windows import CoGroupedRecords
from rayflink.operators.windows.window_operator import BaseWindowOperator
from rayflink.testing import Pause, ScriptedSource, rec, wm
from tests.datastream.programs import environment, timed
from tests.datastream.test_blame import failure_of, line_of

ORDERS = [("ann", 1, 1_000), ("bob", 2, 2_500), ("ann", 3, 2_999), ("ann", 4, 3_000), ("cid", 5, 7_000)]
USERS = [("Ulm", "ann", 100), ("Bonn", "ann", 2_000), ("Kiel", "bob", 2_999), ("Jena", "ann", 5_999), ("Hof", "dan", 0)]
WINDOW = TumblingEventTimeWindows.of(Time.seconds(3))
PAIRS = [(1, "Bonn"), (1, "Ulm"), (2, "Kiel"), (3, "Bonn"), (3, "Ulm"), (4, "Jena")]


def streams(*arguments: Any, **options: Any) -> Any:
    env = environment(*arguments, **options)
    return timed(env, ORDERS), timed(env, USERS)


def order_and_town(order: Any, user: Any) -> Any:
    return order[1], user[0]


@pytest.mark.spec("C09", "X12", "A03", "joins", "windows")
@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_a_window_join_is_all_pairs_of_a_user_and_window(parallelism, mode):
    orders, users = streams(parallelism, **{"execution.runtime-mode": mode})
    joined = orders.join(users).where(itemgetter(0)).equal_to(1).window(WINDOW).apply(order_and_town)
    assert sorted(joined.execute_and_collect()) == PAIRS


@pytest.mark.spec("C11")
def test_a_join_is_a_co_group_is_a_window_over_both_streams():
    def operator_of(joined):
        return joined._transformation.operator_factory()

    orders, users = streams(1)
    joined = orders.join(users).where(0).equal_to(1).window(WINDOW)
    grouped = orders.co_group(users).where(0).equal_to(1).window(WINDOW)
    assert isinstance(joined, CoGroupedStreams.WithWindow)
    made = operator_of(joined.apply(order_and_town))
    assert isinstance(made, BaseWindowOperator) and type(made) is type(operator_of(grouped.apply(lambda *both: [])))
    co_grouped = made._evaluation.function
    assert isinstance(co_grouped, CoGroupedRecords)
    pairs = co_grouped.apply("ann", None, [(0, ORDERS[0]), (1, USERS[0]), (1, USERS[1])])
    assert list(pairs) == [(1, "Ulm"), (1, "Bonn")]


@pytest.mark.spec("C10")
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_a_co_group_is_an_outer_join_where_the_program_says_so(mode):
    class Outer(CoGroupFunction):
        def co_group(self, first, second):
            for order in first:
                yield order[1], [user[0] for user in second] or None

    orders, users = streams(2, **{"execution.runtime-mode": mode})
    grouped = orders.co_group(users).where(0).equal_to(1).window(WINDOW).apply(Outer())
    found = {order: towns if towns is None else sorted(towns) for order, towns in grouped.execute_and_collect()}
    assert found == {1: ["Bonn", "Ulm"], 2: ["Kiel"], 3: ["Bonn", "Ulm"], 4: ["Jena"], 5: None}


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("parallelism", [1, 2])
def test_an_interval_join_is_all_pairs_near_in_time(parallelism, mode):
    orders, users = streams(parallelism, **{"execution.runtime-mode": mode})
    near = (
        orders.key_by(0).interval_join(users.key_by(1)).in_event_time().between(Time.seconds(-1), timedelta(seconds=1))
    )
    assert sorted(near.process(order_and_town).execute_and_collect()) == [
        (1, "Bonn"), (1, "Ulm"), (2, "Kiel"), (3, "Bonn"), (4, "Bonn"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("bounds", "exclusive", "found"),
    [
        ((-1_000, 1_000), [], [1, 3]),
        ((Duration.of_seconds(-1), 1_000), ["lower"], [1]),
        ((-1_000, Time.seconds(1)), ["upper"], [3]),
        ((-1_000, 1_000), ["lower", "upper"], []),
        ((1_000, 1_000), [], [1]),
    ],
)
def test_both_bounds_belong_to_the_interval_unless_they_are_exclusive(bounds, exclusive, found):
    env = environment()
    orders, users = timed(env, [("ann", 1, 0), ("ann", 3, 2_000)]), timed(env, [("Ulm", "ann", 1_000)])
    join = orders.key_by(0).interval_join(users.key_by(1)).between(*bounds)
    for end in exclusive:
        assert getattr(join, f"{end}_bound_exclusive")() is join
    assert sorted(join.process(lambda order, _: order[1]).execute_and_collect()) == found


def test_a_join_takes_trigger_evictor_lateness_and_a_type():
    orders, users = streams()
    window = orders.join(users).where(0).equal_to(1).window(WINDOW).trigger(EventTimeTrigger.create())
    window = window.evictor(CountEvictor.of(2)).allowed_lateness(Time.seconds(1))
    joined = window.apply(order_and_town, Types.ROW([Types.INT(), Types.STRING()]))
    [only_two] = [row for row in joined.execute_and_collect() if row[0] == 4]
    assert (type(only_two).__name__, tuple(only_two)) == ("Row", (4, "Jena"))
    name = joined.get_name()
    assert name == "Window(TumblingEventTimeWindows(3000), EventTimeTrigger, CountEvictor, order_and_town)"


def test_sessions_are_joined():
    orders, users = streams(2)
    joined = orders.join(users).where(0).equal_to(1).window(EventTimeSessionWindows.with_gap(Time.seconds(1)))
    assert sorted(joined.apply(order_and_town).execute_and_collect()) == [
        (1, "Bonn"), (1, "Ulm"), (2, "Kiel"), (3, "Bonn"), (3, "Ulm"), (4, "Bonn"), (4, "Ulm"),
    ]  # fmt: skip


def test_streams_of_unlike_types_meet_by_keys_that_are_equal_as_python_has_it():
    env = environment(2)
    texts, numbers = timed(env, [(1.0, "one", 1), (True, "true", 2)]), timed(env, [(1, 10, 3), (2, 20, 4)])
    joined = texts.join(numbers).where(0).equal_to(0).window(WINDOW).apply(lambda text, number: (text[1], number[1]))
    assert sorted(joined.execute_and_collect()) == [("one", 10), ("true", 10)]


LATE = OutputTag("late")


def test_late_records_of_a_window_join_go_to_a_side_output_as_they_were():
    env = environment(2)
    orders, users = late_streams(env)
    window = orders.join(users).where(0).equal_to(1).window(WINDOW).side_output_late_data(LATE)
    joined = window.apply(order_and_town)
    found = joined.union(joined.get_side_output(LATE)).execute_and_collect()
    assert sorted(found, key=repr) == [("Bonn", "ann"), ("ann", 2), (1, "Ulm")]


def late_streams(env: Any) -> Any:
    """The pause lets the watermark of each stream arrive before the late record of the other."""
    orders = [rec(("ann", 1), 1_000), wm(3_000), Pause(50), rec(("ann", 2), 2_000)]
    users = [rec(("Ulm", "ann"), 900), wm(3_000), Pause(50), rec(("Bonn", "ann"), 600)]
    return env.from_source(ScriptedSource(orders)), env.from_source(ScriptedSource(users))


def test_late_records_of_an_interval_join_go_to_the_side_output_of_their_stream():
    class Both(ProcessJoinFunction):
        def process_element(self, left, right, ctx):
            yield "pair", left[1], right[0], ctx.get_timestamp()

    orders, users = late_streams(environment(2))
    interval = orders.key_by(0).interval_join(users.key_by(1)).between(-1_000, 1_000)
    interval = interval.side_output_left_late_data(LATE).side_output_right_late_data(OutputTag("late user"))
    joined = interval.process(Both())
    left = joined.get_side_output(LATE).map(lambda order: ("left", *order))
    right = joined.get_side_output(OutputTag("late user")).map(lambda user: ("right", *user))
    assert sorted(joined.union(left, right).execute_and_collect()) == [
        ("left", "ann", 2), ("pair", 1, "Ulm", 1_000), ("right", "Bonn", "ann"),
    ]  # fmt: skip


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_functions_of_every_kind_join(mode):
    class One(JoinFunction):
        def join(self, first, second):
            return first[1], second[0]

    class Many(FlatJoinFunction):
        def join(self, first, second):
            if first[1] > 1:
                yield first[1], second[0]

    orders, users = streams(**{"execution.runtime-mode": mode})
    window = orders.join(users).where(0).equal_to(1).window(WINDOW)
    assert sorted(window.apply(One()).execute_and_collect()) == PAIRS
    assert sorted(window.apply(Many()).execute_and_collect()) == PAIRS[2:]


def test_a_join_of_a_stream_with_itself():
    orders, _ = streams(2)
    joined = orders.join(orders).where(0).equal_to(0).window(WINDOW).apply(lambda one, other: (one[1], other[1]))
    assert sorted(joined.execute_and_collect()) == [(1, 1), (1, 3), (2, 2), (3, 1), (3, 3), (4, 4), (5, 5)]


def test_the_plan_of_a_join_reads_each_stream_where_it_is():
    env = environment(2)
    orders, users = env.from_collection(ORDERS).name("orders"), env.from_collection(USERS).key_by(0)
    orders.join(users).where(0).equal_to(1).window(TumblingProcessingTimeWindows.of(10)).apply(order_and_town).print()
    vertices = sorted(vertex.name for vertex in env.get_job_graph("plan").vertices)
    assert vertices[:2] == ["Source: Collection Source -> Tag Right", "Source: orders -> Tag Left"]
    assert len(vertices) == 3, "the key_by before the join deals nothing"


def test_the_uid_of_a_join_is_that_of_all_its_steps():
    env = environment(**{"pipeline.auto-generate-uids": "false"})
    orders, users = env.from_collection(ORDERS).uid("orders"), env.from_collection(USERS).uid("users")
    window = orders.join(users).where(0).equal_to(1).window(TumblingProcessingTimeWindows.of(10))
    window.apply(order_and_town).name("joined").uid("join").print().uid("out")
    uids = {operator.uid for vertex in env.get_job_graph("uids").vertices for operator in vertex.operators}
    assert uids == {"orders", "users", "join", "join: Tag Left", "join: Tag Right", "out"}


# what is refused


def refused(line: str, error: Any) -> None:
    assert line.split()[0] in str(error), f"{error} does not name {line}"


def test_streams_of_two_environments_are_refused():
    one, other = environment().from_collection([1]), environment().from_collection([1])
    for join, what in (
        (one.join, "join"),
        (one.co_group, "co_group"),
        (one.key_by(str).interval_join, "interval_join"),
    ):
        given = other.key_by(str) if what == "interval_join" else other
        with pytest.raises(PlanError, match=f"{what} was given streams of two environments") as caught:
            join(given)
        refused(line_of(-1), caught.value)


def test_what_is_no_stream_is_refused():
    stream = environment().from_collection([1])
    with pytest.raises(TypeError, match="join needs a DataStream, found list"):
        stream.join([1])
    with pytest.raises(PlanError, match="interval_join was given a stream without keys.*key_by"):
        stream.key_by(str).interval_join(stream)
    with pytest.raises(AttributeError, match=r"interval_join\(\) needs a keyed stream"):
        stream.interval_join(stream)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda a, b: a.join(b).window(WINDOW),
        lambda a, b: a.join(b).equal_to(0),
        lambda a, b: a.join(b).where(0).window(WINDOW),
        lambda a, b: a.co_group(b).where(0).equal_to(1).apply(order_and_town),
        lambda a, b: a.join(b).where(0).equal_to(1).window(WINDOW).process(order_and_town),
    ],
)
def test_a_join_that_lacks_a_part_says_which_is_due(wrong):
    with pytest.raises(AttributeError, match=r"\(\) is due; a join is written a.join\(b\).where\("):
        wrong(*streams())


def test_an_interval_join_without_bounds_says_so():
    one, other = (stream.key_by(0) for stream in streams())
    with pytest.raises(AttributeError, match=r"process\(\) was called where between\(\) is due"):
        one.interval_join(other).process(order_and_town)


def test_processing_time_is_refused_for_an_interval_join():
    one, other = (stream.key_by(0) for stream in streams())
    with pytest.raises(PlanError, match="Time-bounded stream joins are only supported in event time") as caught:
        one.interval_join(other).in_processing_time()
    refused(line_of(-1), caught.value)


def test_an_empty_interval_is_refused_where_it_becomes_empty():
    one, other = (stream.key_by(0) for stream in streams())
    join = one.interval_join(other)
    with pytest.raises(PlanError, match=r"no record lies in the interval \[2 ms, 1 ms\]") as caught:
        join.between(2, 1)
    refused(line_of(-1), caught.value)
    with pytest.raises(PlanError, match=r"\(5 ms, 5 ms\]"):
        join.between(5, 5).lower_bound_exclusive()
    with pytest.raises(PlanError, match=r"\(5 ms, 6 ms\)"):
        join.between(5, 6).lower_bound_exclusive().upper_bound_exclusive()
    with pytest.raises(TypeError, match="a length of time"):
        join.between("1 s", 2)


def test_wrong_keys_functions_windows_and_tags_are_refused_in_their_line():
    orders, users = streams()
    rows = orders.map(
        lambda order: order, Types.ROW_NAMED(["user", "n", "at"], [Types.STRING(), Types.INT(), Types.LONG()])
    )
    with pytest.raises(PlanError, match="where wants field 'usr'.*did you mean 'user'"):
        rows.join(users).where("usr")
    join = orders.join(users).where(0)
    with pytest.raises(PlanError, match="first key = .*second key = "):
        orders.join(users).where(0, Types.STRING()).equal_to(1, Types.INT())
    with pytest.raises(InvalidFunction, match="equal_to: a KeySelector or a callable is wanted, found NoneType"):
        join.equal_to(None)
    with pytest.raises(InvalidFunction, match="where wants a function of 1 argument, found one of 2"):
        orders.join(users).where(lambda a, b: a)
    keyed = join.equal_to(1)
    with pytest.raises(TypeError, match="a window assigner is wanted, found 3000"):
        keyed.window(3000)
    with pytest.raises((PlanError, ValueError)):
        keyed.window(TumblingEventTimeWindows.of(-3))
    window = keyed.window(WINDOW)
    with pytest.raises(InvalidFunction, match="apply wants a function of 2 arguments, found one of 1"):
        window.apply(lambda pair: pair)
    with pytest.raises(InvalidFunction, match="the class One itself was passed"):
        window.apply(type("One", (JoinFunction,), {"join": lambda self, a, b: a}))
    with pytest.raises(PlanError, match="lateness cannot be negative"):
        window.allowed_lateness(-1)
    with pytest.raises(TypeError, match="side_output_late_data needs an OutputTag, found str 'late'"):
        window.side_output_late_data("late")
    near = orders.key_by(0).interval_join(users.key_by(1)).between(0, 1)
    with pytest.raises(TypeError, match="side_output_left_late_data needs an OutputTag"):
        near.side_output_left_late_data("late")
    with pytest.raises(InvalidFunction, match="process wants a function of 3 arguments, found one of 1"):
        near.process(lambda pair: pair)


def test_a_failing_key_selector_is_blamed_on_its_own_line():
    orders, users = streams(2)
    half = orders.join(users).where(0)
    keyed, line = half.equal_to(lambda user: user[7]), line_of()
    error = failure_of(keyed.window(WINDOW).apply(order_and_town))
    refused(line, error)
    assert "in 'equal_to'" in str(error) and "IndexError" in str(error)


def test_a_key_that_can_be_none_is_refused_with_the_side_and_the_record():
    orders, _ = streams()
    sets = orders.map(lambda order: {order[0]})
    keyed, line = orders.join(sets).where(0).equal_to(lambda order: order), line_of()
    error = failure_of(keyed.window(WINDOW).apply(order_and_town))
    refused(line, error)
    assert "in 'where and equal_to'" in str(error) and "key is a set, which cannot be a key" in str(error)
    assert "(1, {'ann'})" in str(error)


@pytest.mark.parametrize("kind", ["window", "interval"])
def test_records_without_timestamps_fail_with_the_remedy_and_the_line(kind):
    env = environment()
    one, other = env.from_collection(ORDERS), env.from_collection(USERS)
    if kind == "window":
        joined, line = one.join(other).where(0).equal_to(1).window(WINDOW).apply(order_and_town), line_of()
    else:
        near = one.key_by(0).interval_join(other.key_by(1)).between(0, 1)
        joined, line = near.process(order_and_town), line_of()
    with pytest.raises(JobFailed, match="assign_timestamps_and_watermarks") as caught:
        list(joined.execute_and_collect())
    refused(line, caught.value)


def test_the_classes_are_public():
    orders, users = streams()
    assert type(orders.join(users)) is JoinedStreams and type(orders.co_group(users)) is CoGroupedStreams
    assert type(orders.key_by(0).interval_join(users.key_by(0)).between(0, 0)) is IntervalJoined


@pytest.mark.parametrize("name", ["joined", "interval_joined"])
def test_the_examples_of_the_docstrings_run(name):
    found = doctest.testmod(importlib.import_module(f"rayflink.datastream.streams.{name}"))
    assert found.attempted > 0 and found.failed == 0


def test_the_examples_of_the_page_run(repository):
    found = doctest.testfile(str(repository / "docs" / "joins.md"), module_relative=False)
    assert found.attempted > 10 and found.failed == 0
