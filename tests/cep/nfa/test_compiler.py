"""States and edges of compiled patterns, and patterns that cannot be compiled."""

from __future__ import annotations

import pytest

from rayflink.cep.errors import MalformedPatternException
from rayflink.cep.nfa.automaton import Automaton, StateKind
from rayflink.cep.nfa.compiler import compile_pattern
from rayflink.cep.nfa.logic import evaluate
from rayflink.cep.pattern import Pattern
from rayflink.cep.quantifier import ConsumingStrategy, Repetition, WithinType
from rayflink.cep.skip_strategies import AfterMatchSkipStrategy
from tests.cep.words import begin, find, is_


def edges(automaton: Automaton, state: str) -> list[tuple[str, str, str]]:
    """Return the edges of a state: action, target, and the letters of the events on which it may be taken."""
    [source] = [one for one in automaton.states if one.name == state]
    return [
        (edge.action.value, automaton.states[edge.target].name, _letters(automaton, edge.logic))
        for edge in source.edges
    ]


def _letters(automaton: Automaton, logic) -> str:
    def holds(letter: str) -> bool:
        return evaluate(logic, lambda index: automaton.units[index].condition.function.call(letter), bool)

    return "".join(filter(holds, "abcu"))


def kinds(automaton: Automaton) -> dict[str, StateKind]:
    return {state.name: state.kind for state in automaton.states}


@pytest.mark.spec("Q03", "Q20")
def test_a_pattern_is_compiled_from_its_end_to_its_beginning():
    automaton = compile_pattern(begin("a").next("b").where(is_("b")).next("c").where(is_("c")))
    assert [state.name for state in automaton.states] == ["$endState$", "c", "b", "a"]
    assert automaton.states[automaton.start].name == "a"
    assert [edges(automaton, name) for name in ("a", "b", "c")] == [
        [("take", "b", "a")],
        [("take", "c", "b")],
        [("take", "$endState$", "c")],
    ]


@pytest.mark.spec("Q04")
def test_there_are_start_normal_final_and_stop_states():
    automaton = compile_pattern(begin("a").not_followed_by("b").where(is_("b")).followed_by("c").where(is_("c")))
    assert kinds(automaton) == {
        "a": StateKind.START, "b": StateKind.STOP, "c": StateKind.NORMAL, "$endState$": StateKind.FINAL,
    }  # fmt: skip


@pytest.mark.spec("Q05")
def test_an_event_is_taken_or_ignored_or_looked_at_by_the_next_state():
    pattern = begin("a").followed_by("b").where(is_("b")).optional().followed_by("c").where(is_("c"))
    assert edges(compile_pattern(pattern), "b") == [
        ("take", "c", "b"), ("proceed", "c", "abcu"), ("ignore", "b:0", "acu"),
    ]  # fmt: skip
    assert [find(pattern, words) for words in ("a b c", "a x b c", "a c")] == [
        ["a b c", "a c"], ["a b c", "a c"], ["a c"],
    ]  # fmt: skip


@pytest.mark.spec("Q21")
def test_states_of_one_step_have_a_number_behind_its_name():
    automaton = compile_pattern(begin("a").times(3).consecutive())
    assert [state.name for state in automaton.states] == ["$endState$", "a", "a:0", "a:1"]


@pytest.mark.spec("Q22", "not-next")
def test_not_next_is_a_state_of_its_own():
    automaton = compile_pattern(begin("a").not_next("b").where(is_("b")).followed_by("c").where(is_("c")))
    assert edges(automaton, "b") == [("proceed", "c", "acu"), ("proceed", "b:0", "b")]
    assert kinds(automaton)["b:0"] is StateKind.STOP


@pytest.mark.spec("Q22", "not-next-final")
def test_not_next_at_the_end_takes_an_event_to_be_a_match():
    automaton = compile_pattern(begin("a").not_next("b").where(is_("b")))
    assert edges(automaton, "b") == [("ignore", "$endState$", "acu"), ("proceed", "b:0", "b")]


@pytest.mark.spec("Q22", "not-followed-by", "Q23", "stop-states")
def test_not_followed_by_is_an_edge_of_the_next_step():
    automaton = compile_pattern(begin("a").not_followed_by("b").where(is_("b")).followed_by("c").where(is_("c")))
    assert edges(automaton, "c") == [("take", "$endState$", "c"), ("ignore", "c", "abu"), ("proceed", "b", "b")]


@pytest.mark.spec("Q23", "looping", "Q25", "take", "proceed")
def test_a_loop_takes_events_again_and_proceeds():
    automaton = compile_pattern(begin("a").times_or_more(2).consecutive().next("b").where(is_("b")))
    assert edges(automaton, "a") == [("proceed", "b", "abcu"), ("take", "a", "a")]
    assert edges(automaton, "a:0") == [("take", "a", "a")]
    assert edges(automaton, "a:1") == [("take", "a:0", "a")]


@pytest.mark.spec("Q25", "ignore-state")
def test_a_relaxed_loop_has_a_state_for_the_events_between():
    automaton = compile_pattern(begin("a").one_or_more().next("b").where(is_("b")))
    assert edges(automaton, "a") == [("proceed", "b", "abcu"), ("take", "a", "a"), ("ignore", "a:0", "bcu")]
    assert edges(automaton, "a:0") == [("take", "a", "a"), ("ignore", "a:0", "bcu")]


@pytest.mark.spec("Q25", "greedy-until")
def test_a_greedy_loop_proceeds_otherwise_at_the_event_of_until():
    loop = begin("a").one_or_more().consecutive().greedy().until(is_("u"))
    automaton = compile_pattern(loop.next("b").where(is_("abu")))
    assert edges(automaton, "a") == [("proceed", "b:0", "u"), ("proceed", "b", "abc"), ("take", "a", "a")]
    assert edges(automaton, "b") == [("take", "$endState$", "bu")]
    assert edges(automaton, "b:0") == [("take", "$endState$", "abu")]


@pytest.mark.spec("Q23", "times")
def test_a_step_that_occurs_several_times_is_as_many_states():
    automaton = compile_pattern(begin("a").times(2, 3).consecutive().next("b").where(is_("b")))
    assert edges(automaton, "a") == [("take", "b", "a"), ("proceed", "b", "abcu")]
    assert edges(automaton, "a:0") == [("take", "a", "a")]
    assert edges(automaton, "a:1") == [("take", "a:0", "a")]


@pytest.mark.spec("Q23", "single", "Q26", "take", "ignore")
def test_a_step_that_occurs_once_takes_one_event():
    automaton = compile_pattern(begin("a").followed_by("b").where(is_("b")))
    assert edges(automaton, "b") == [("take", "$endState$", "b"), ("ignore", "b", "acu")]


@pytest.mark.spec("Q26", "optional", "ignore-state")
def test_an_optional_step_proceeds_once():
    automaton = compile_pattern(begin("a").followed_by("b").where(is_("b")).optional().next("c").where(is_("c")))
    assert edges(automaton, "b") == [("take", "c", "b"), ("proceed", "c", "abcu"), ("ignore", "b:0", "acu")]
    assert edges(automaton, "b:0") == [("take", "c", "b"), ("ignore", "b:0", "acu")]


@pytest.mark.spec("Q26", "greedy-until")
def test_an_optional_greedy_loop_proceeds_otherwise_at_the_event_of_until():
    loop = begin("a").next("b").where(is_("b")).one_or_more().consecutive().optional().greedy().until(is_("u"))
    automaton = compile_pattern(loop.next("c").where(is_("bcu")))
    proceeds = [edge for edge in edges(automaton, "b:0") if edge[0] == "proceed"]
    assert proceeds == [("proceed", "c:0", "u"), ("proceed", "c", "abc")]


def test_a_greedy_optional_loop_behind_a_step_that_must_not_occur_is_compiled():
    pattern = begin("a").not_followed_by("x").where(is_("x")).followed_by("b").where(is_("b"))
    pattern = pattern.one_or_more().optional().greedy().until(is_("u")).followed_by("c").where(is_("c"))
    assert [find(pattern, words) for words in ("a c", "a x c", "a b x c")] == [["a c"], [], ["a b c"]]
    assert "a b1 b2 c" in find(pattern, "a b1 b2 c")


@pytest.mark.spec("Q19", "none")
def test_no_pattern_matches_nothing():
    assert compile_pattern(None).states == ()
    assert find(None, "a b") == []


@pytest.mark.spec("Q19", "names")
def test_names_of_steps_are_unique():
    with pytest.raises(MalformedPatternException, match="two steps of a pattern are called 'a'.*test_compiler.py"):
        compile_pattern(Pattern.begin("a").next(Pattern.begin("a")))


@pytest.mark.spec("Q19", "skip")
def test_the_skip_strategy_names_a_step():
    with pytest.raises(MalformedPatternException, match="names the step 'z'.*name one of a, b"):
        compile_pattern(begin("a", skip_strategy=AfterMatchSkipStrategy.skip_to_last("z")).next("b"))


def last_of_group() -> Pattern:
    return begin("x").next(begin("a").not_followed_by("b").where(is_("b")))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (lambda: begin("a:1"), "has a colon in its name"),
        (lambda: begin("$endState$"), "two steps of a pattern are called"),
        (lambda: begin("a").within(5, WithinType.PREVIOUS_AND_CURRENT).next("b").within(3), "5 ms may pass before"),
        (lambda: begin("a").times(2, window=5).within(3), "5 ms may pass before an event of 'a', and 3 ms within"),
        (last_of_group, "NotFollowedBy is not supported as a last part.*'b'"),
        (lambda: last_of_group().within(9).next("c"), "as the last step of a group behind which the match goes on"),
        (lambda: last_of_group().times(2).within(9), "as the last step of a group behind which the match goes on"),
        (lambda: Pattern.begin(begin("a").optional()).not_next("b"), "may begin with the step 'b', which must not"),
    ],
)
def test_a_pattern_without_a_meaning_is_refused(pattern, message):
    with pytest.raises(MalformedPatternException, match=message):
        compile_pattern(pattern())


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Pattern.begin(""), "a step of a pattern is called ''"),
        (lambda: begin("a").times(0), "cannot occur 0 times"),
        (lambda: begin("a").times(3, 2), "cannot occur 3 to 2 times"),
        (lambda: begin("a").one_or_more().times(2), "has the quantifier 'one or more' already"),
        (lambda: begin("a").until(is_("b")), "needs a step that loops"),
        (lambda: begin("a").one_or_more().until(is_("b")).until(is_("c")), "until\\(\\) was called twice"),
        (lambda: begin("a").greedy(), "greedy\\(\\) needs a pattern that repeats"),
        (lambda: Pattern.begin(begin("a")).times(2).greedy(), "cannot be applied to a group"),
        (lambda: Pattern.begin(begin("a")).where(is_("a")), "cannot be applied to a group"),
        (lambda: begin("a").times(2).greedy().allow_combinations(), "allow_combinations"),
        (lambda: begin("a").times(2).consecutive().allow_combinations(), "both consecutive and allow combinations"),
        (lambda: begin("a").consecutive(), "consecutive\\(\\) needs a pattern that repeats"),
        (lambda: begin("a").times(2).greedy().next("b").optional(), "cannot follow a greedy one"),
        (lambda: begin("a").optional().optional(), "optional\\(\\) was applied twice"),
        (lambda: begin("a").optional().not_next("b"), "cannot follow the optional step 'a'"),
        (lambda: begin("a").not_next("b").one_or_more(), "cannot repeat"),
        (lambda: begin("a").subtype("a"), "which is no class"),
    ],
)
def test_a_call_without_a_meaning_is_refused_at_its_line(build, message):
    with pytest.raises(MalformedPatternException, match=f"(?s){message}.*test_compiler.py"):
        build()


@pytest.mark.spec("V29", "Q18", "parts")
def test_a_pattern_is_its_step_and_the_pattern_before_it():
    first = Pattern.begin("a", AfterMatchSkipStrategy.skip_to_next())
    assert (first.name, first.previous, first.condition, first.until_condition) == ("a", None, None, None)
    assert (first.times_range, first.windows) == (None, ())
    assert (first.quantifier.strategy, first.quantifier.repetition) == (ConsumingStrategy.STRICT, Repetition.SINGLE)
    last = first.followed_by("b").times(2, 4).within(10)
    assert (last.previous, last.window_ms(), last.times_range.least, last.times_range.most) == (first, 10, 2, 4)
    assert last.skip_strategy == first.skip_strategy == AfterMatchSkipStrategy.skip_to_next()


