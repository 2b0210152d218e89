"""Several patterns over one stream, whose versions change while the job runs and on restore."""

from __future__ import annotations

import pickle
import re
from functools import partial
from operator import itemgetter
from typing import Any

import pytest

from rayflink.cep.errors import MalformedPatternException
from rayflink.cep.functions import PatternProcessFunction, TimedOutPartialMatchHandler
from rayflink.cep.nfa.compiler import compile_pattern
from rayflink.cep.pattern import Pattern
from rayflink.cep.rules import PatternRule, RejectedRule, UnreadableRule
from rayflink.cep.runtime.dynamic_operator import DynamicRulesOperator, FixedRulesOperator, RuleConflict
from rayflink.cep.runtime.matching_operator import MatchOptions
from rayflink.cep.runtime.pattern_runs import PatternRun, SharedConditions
from rayflink.common import Row
from rayflink.common.output_tag import OutputTag
from rayflink.common.records.batches import MAX_TIMESTAMP
from rayflink.common.typeinfo import Types
from rayflink.operators.base import UserCodeError
from rayflink.operators.keyed.sorted_input import SortedInput
from rayflink.state.keys.key_columns import hash_keys
from rayflink.state.keys.key_groups import key_groups_of
from rayflink.table.expressions import col
from rayflink.testing import OperatorHarness, in2, rec, side, verify, wm
from rayflink.testing.cases import TO_ALL
from rayflink.testing.harness import Place, rescaled_snapshots

TIMED_OUT = OutputTag("timed out")
_key = itemgetter(0)
KEYS = (_key, TO_ALL)


def is_small(payment: Any) -> bool:
    return payment[1] < 5


def is_above(limit: int) -> Any:
    return lambda payment: payment[1] > limit


def fraud(limit: int) -> Pattern[Any]:
    """A small payment followed by a large one within 60 ms."""
    return Pattern.begin("small").where(is_small).followed_by("large").where(is_above(limit)).within(60)


def alone(limit: int) -> Pattern[Any]:
    return Pattern.begin("large").where(is_above(limit))


class Described(PatternProcessFunction[Any, str], TimedOutPartialMatchHandler[Any]):
    """Gives id and version of the pattern, and the amounts of the match."""

    def process_match(self, match: Any, ctx: Any) -> Any:
        yield described(match)

    def process_timed_out_match(self, match: Any, ctx: Any) -> Any:
        ctx.output(TIMED_OUT, described(match))


def described(match: Any) -> str:
    return f"{match.pattern_id}{match.version}: {[event[1] for events in match.values() for event in events]}"


def dynamic(*rules: PatternRule, rejected: str | None = None, **options: Any) -> Any:
    return partial(DynamicRulesOperator, _key, rules, Described(), MatchOptions(**options), rejected)


def fixed(*rules: PatternRule, rejected: str | None = None, **options: Any) -> Any:
    return partial(FixedRulesOperator, _key, rules, Described(), MatchOptions(**options), rejected)


def pay(key: str, amount: int, stamp: int) -> Any:
    return rec((key, amount), stamp)


FRAUD1, FRAUD2 = PatternRule("fraud", 1, fraud(800)), PatternRule("fraud", 2, fraud(500))
BOTH = (FRAUD1, PatternRule("large", 1, alone(800)))


@pytest.mark.slow
def test_several_patterns_are_matched_under_every_hardship() -> None:
    verify(
        fixed(*BOTH),
        elements=[
            pay("x", 3, 10), pay("y", 4, 15), pay("x", 900, 20), pay("y", 600, 30), wm(40), pay("y", 901, 74),
            pay("x", 2, 75), wm(100), pay("x", 950, 139), wm(200),
        ],
        then=[
            rec("fraud1: [3, 900]", 20), rec("large1: [900]", 20), wm(40), rec("fraud1: [4, 901]", 74),
            rec("large1: [901]", 74), wm(100), rec("large1: [950]", 139), side("timed out", "fraud1: [2]", 135),
            wm(200),
        ],
        key=_key,
    )  # fmt: skip


@pytest.mark.slow
def test_rules_change_at_their_times_and_old_matches_go_on() -> None:
    verify(
        dynamic(FRAUD1),
        elements=[
            pay("x", 3, 10), in2(rec(FRAUD2, 30)), pay("x", 4, 35), pay("y", 1, 29), pay("y", 2, 30),
            in2(wm(90)), wm(36), pay("x", 700, 40), pay("x", 900, 41), pay("y", 600, 42), wm(50),
            in2(rec(PatternRule("fraud", 3), 60)), pay("x", 1, 60), pay("x", 900, 65), wm(90),
        ],
        then=[
            wm(36), rec("fraud2: [4, 700]", 40), rec("fraud1: [3, 900]", 41), rec("fraud2: [2, 600]", 42), wm(50),
            side("timed out", "fraud1: [1]", 89), wm(90),
        ],
        key=KEYS,
    )  # fmt: skip


def test_partial_matches_of_a_replaced_version_are_dropped_and_counted() -> None:
    with OperatorHarness(dynamic(FRAUD1, drops_on_change=True), inputs=2) as harness:
        harness.process(("x", 3), timestamp=1)
        harness.process(("y", 3), timestamp=12)
        both_advance(harness, 5)
        harness.process(FRAUD2, timestamp=10, input_index=1)
        harness.process(("x", 900), timestamp=11)
        harness.process(("y", 600), timestamp=13)
        both_advance(harness, 20)
        assert harness.output_values() == ["fraud2: [3, 600]"]
        assert metric(harness, "numPartialMatchesDropped") == 1
        assert metric(harness, "numOldPatterns") == 0


def both_advance(harness: OperatorHarness, timestamp: int) -> None:
    harness.advance_watermark(timestamp, 1)
    harness.advance_watermark(timestamp)


def metric(harness: OperatorHarness, name: str) -> Any:
    return next(value for path, value in harness.metrics.snapshot().items() if path.endswith(f"-0.{name}"))


def test_an_old_version_is_forgotten_once_no_key_has_matches_of_it() -> None:
    with OperatorHarness(dynamic(FRAUD1), inputs=2) as harness:
        harness.process(("x", 3), timestamp=1)
        harness.process(("y", 3), timestamp=5)
        both_advance(harness, 5)
        harness.process(FRAUD2, input_index=1)
        operator: Any = harness.operators[0]
        assert [(run.name, run.begins) for run in operator.runs.values()] == [
            (("fraud", 1), False),
            (("fraud", 2), True),
        ]
        harness.process(("x", 801), timestamp=20)
        both_advance(harness, 20)
        assert metric(harness, "numOldPatterns") == 1
        both_advance(harness, 65)  # the match of y is over
        assert list(operator.runs) == [("fraud", 2)]
        assert metric(harness, "numOldPatterns") == 0
        assert harness.side_output(TIMED_OUT) == [side("timed out", "fraud1: [3]", 65)]


class Opened:
    """A condition with a life cycle, which fails for the word 'broken'."""

    def __init__(self, word: str) -> None:
        self.word = word

    def open(self, runtime_context: Any) -> None:
        if self.word == "broken":
            raise ConnectionError("no server")

    def close(self) -> None:
        pass

    def __call__(self, payment: Any) -> bool:
        return True


def test_a_rule_without_effect_is_rejected_with_the_reason() -> None:
    with OperatorHarness(dynamic(FRAUD2, rejected="rejected"), inputs=2) as harness:
        for rule in (
            FRAUD1,
            "no rule",
            PatternRule("other", 1, partial(alone, "a", "b")),
            PatternRule("other", 1, partial(int, 3)),
            PatternRule("other", 1, twice_the_same_name),
            PatternRule("other", 1, Pattern.begin("a").where(Opened("broken"))),
        ):
            harness.process(rule, input_index=1)
        reasons = [record.value.reason for record in harness.side_output("rejected")]
        assert metric(harness, "numRulesRejected") == len(reasons) == 6
        assert reasons[0] == "version 1 of the pattern 'fraud' is not newer than version 2, which is in effect"
        assert reasons[1] == "found 'no rule', wanted a PatternRule"
        assert reasons[2].startswith("the pattern of the rule 'other', version 1 cannot be read: its callable raised")
        assert "returned 3, which is no Pattern" in reasons[3]
        assert "'a'" in reasons[4]
        assert reasons[5].endswith("raised ConnectionError: no server")
        harness.process(PatternRule("other", 1, Pattern.begin("a").where(Opened("fine"))), input_index=1)
        harness.process(("x", 1), timestamp=1)
        both_advance(harness, 9)
        assert harness.output_values() == ["other1: [1]"]
    with OperatorHarness(dynamic(FRAUD2, rejected="rejected"), inputs=2, place=Place(1, 2)) as second:
        second.process(FRAUD1, input_index=1)
        assert second.side_output("rejected") == []  # the first subtask has reported it


def twice_the_same_name() -> Pattern[Any]:
    return Pattern.begin("a").next("a")


def test_a_rule_of_a_broken_pattern_is_refused_when_it_is_made() -> None:
    with pytest.raises(MalformedPatternException, match="'a'"):
        PatternRule("other", 1, twice_the_same_name())
    with pytest.raises(MalformedPatternException, match="whole number"):
        PatternRule("other", "1", alone(3))  # type: ignore[arg-type]
    with pytest.raises(MalformedPatternException, match="non-empty string"):
        PatternRule("", 1, alone(3))


def test_equal_conditions_of_several_patterns_are_evaluated_once() -> None:
    rules = [PatternRule(f"rule {limit}", 1, fraud(limit)) for limit in (10, 20, 20, 30)]
    automata = [compile_pattern(pickled(rule).pattern()) for rule in rules]
    host: Any = None
    runs = [PatternRun(rule.name, automaton, host) for rule, automaton in zip(rules, automata, strict=True)]
    conditions = SharedConditions(runs)
    assert conditions.count == 4  # is_small, and three limits
    hits = conditions.hits([("x", 1), ("x", 7), ("x", 25)])
    assert [[(run.name[0], mask) for run, mask in of_event] for of_event in hits] == [
        [(f"rule {limit}", 0b10) for limit in (10, 20, 20, 30)],
        [],
        [(f"rule {limit}", 0b01) for limit in (10, 20, 20)],
    ]  # fmt: skip


def pickled(rule: PatternRule) -> PatternRule:
    copy: PatternRule = pickle.loads(pickle.dumps(rule))
    assert copy == rule
    return copy


def test_conditions_on_columns_are_shared_and_checked_against_the_declared_type() -> None:
    declared: Any = Types.ROW_NAMED(["key", "amount"], [Types.STRING(), Types.LONG()])
    large = PatternRule("large", 1, partial(on_columns, "amount", 8))
    factory = partial(
        DynamicRulesOperator, lambda row: row["key"], (large,), Described(), MatchOptions(), "rejected", declared
    )
    with OperatorHarness(factory, inputs=2) as harness:
        harness.process(PatternRule("larger", 1, partial(on_columns, "amount", 9)), input_index=1)
        harness.process(PatternRule("same", 1, partial(on_columns, "amount", 8)), input_index=1)
        harness.process(PatternRule("other", 1, partial(on_columns, "price", 8)), input_index=1)
        (rejected,) = harness.side_output("rejected")
        assert "no column 'price'" in rejected.value.reason
        operator: Any = harness.operators[0]
        assert SharedConditions(operator.runs.values()).count == 2
        for stamp, amount in enumerate((8, 9, 10)):
            harness.process(Row(key="x", amount=amount), timestamp=stamp)
        both_advance(harness, 20)
        assert harness.output_values() == ["large1: [9]", "same1: [9]", "large1: [10]", "larger1: [10]", "same1: [10]"]


def on_columns(column: str, limit: int) -> Pattern[Any]:
    return Pattern.begin("large").where(col(column) > limit)


def test_a_failing_condition_of_one_pattern_does_not_concern_the_others() -> None:
    broken = PatternRule("broken", 1, Pattern.begin("a").where(is_small).next("b").where(lambda event: event["no"] > 1))
    with OperatorHarness(fixed(broken, PatternRule("large", 1, alone(8)))) as harness:
        harness.process(("x", 9), timestamp=1)
        harness.advance_watermark(5)
        assert harness.output_values() == ["large1: [9]"]


def limit_of(payment: Any) -> float:
    return 8_000 / (payment[1] - 13)


def is_below_limit(payment: Any) -> bool:
    return limit_of(payment) < 800 < payment[1]


FAULTY = PatternRule("faulty", 1, Pattern.begin("small").where(is_small).followed_by("large").where(is_below_limit))
FAILURE = "the condition 'is_below_limit' of the rule 'faulty', version 1"


class Reported:
    """Equals the report of a disabled rule."""

    def __init__(self, rule: PatternRule, part: str) -> None:
        self.rule, self.part = rule, part

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RejectedRule) and other.rule == self.rule and self.part in other.reason

    def __repr__(self) -> str:
        return f"a report of {self.rule} with {self.part!r}"


@pytest.mark.slow
def test_a_rule_that_fails_is_disabled_under_every_hardship() -> None:
    verify(
        dynamic(FAULTY, PatternRule("large", 1, alone(800)), rejected="rejected", disables_on_error=True),
        elements=[
            pay("x", 3, 10), pay("y", 4, 11), pay("x", 900, 12), pay("y", 901, 13), in2(wm(60)), wm(20),
            pay("x", 2, 21), pay("x", 13, 22), pay("x", 903, 23), wm(30), pay("x", 1, 31), pay("x", 904, 32),
            pay("y", 905, 33), wm(40), in2(rec(PatternRule("faulty", 2, fraud(800)), 70)), in2(wm(99)),
            pay("x", 3, 71), pay("x", 906, 72), wm(80),
        ],
        then=[
            rec("faulty1: [3, 900]", 12), rec("large1: [900]", 12), rec("faulty1: [4, 901]", 13),
            rec("large1: [901]", 13), wm(20), side("rejected", Reported(FAULTY, FAILURE)), rec("large1: [903]", 23),
            wm(30), rec("large1: [904]", 32), rec("large1: [905]", 33), wm(40), rec("faulty2: [3, 906]", 72),
            rec("large1: [906]", 72), wm(80),
        ],
        key=KEYS,
    )  # fmt: skip


def test_partial_matches_of_a_disabled_rule_are_dropped_and_it_stays_disabled() -> None:
    disabling = fixed(FAULTY, FRAUD1, rejected="rejected", disables_on_error=True)
    keys = [key for key in "abcdefghijkl" if key_groups_of(hash_keys([key]), 128)[0] >= 64][:3]
    with OperatorHarness(disabling, place=Place(1, 2)) as harness:
        for key in keys:
            harness.process((key, 3), timestamp=1)
        harness.advance_watermark(2)
        for key, amount in zip(keys, (13, 900, 13), strict=True):
            harness.process((key, amount), timestamp=3)
        harness.advance_watermark(4)
        assert sorted(harness.output_values()) in (["fraud1: [3, 900]"], ["faulty1: [3, 900]", "fraud1: [3, 900]"])
        reports = [record.value for record in harness.side_output("rejected")]
        assert reports == [Reported(FAULTY, FAILURE)]
        assert metric(harness, "numRulesDisabled") == 1 and metric(harness, "numRulesRejected") == 0
        emitted = harness.output_values().count("faulty1: [3, 900]")
        assert metric(harness, "numPartialMatchesDropped") == 3 - emitted
        assert not [name for _, matches in harness.operators[0].stored_matches() for name in matches if name[1] != 1]
        snapshot = harness.snapshot()
    for place, is_disabled in ((Place(1, 2), True), (Place(0, 2), False), (Place(0, 1), True)):
        with OperatorHarness(disabling, place=place, restore=(snapshot,)) as harness:
            assert metric(harness, "numRulesDisabled") == is_disabled
    newer = fixed(PatternRule("faulty", 2, fraud(5)), FRAUD1, disables_on_error=True)
    with OperatorHarness(newer, place=Place(0, 1), restore=(snapshot,)) as harness:
        assert metric(harness, "numRulesDisabled") == 0
        assert metric(harness, "numPatterns") == 2


def no_answer(payment: Any) -> None:
    return None


def test_a_failing_condition_names_its_rule() -> None:
    columns = PatternRule("columns", 4, partial(on_columns, "price", 8))
    no_bool = PatternRule("no bool", 5, Pattern.begin("a").where(no_answer))
    for rule, problem in (
        (FAULTY, FAILURE),
        (no_bool, "of the rule 'no bool', version 5 on record ('x', 4): NoBoolean"),
        (columns, "of the rule 'columns', version 4 on record ('x', 4): Malf"),
    ):
        with OperatorHarness(fixed(rule)) as harness:
            harness.process(("x", 4), timestamp=1)
            harness.process(("x", 13), timestamp=2)
            with pytest.raises(UserCodeError, match=re.escape(problem)):
                harness.advance_watermark(5)


def test_in_batch_mode_a_rule_that_fails_is_disabled_for_the_keys_that_follow() -> None:
    disabling = SortedInput(dynamic(FAULTY, rejected="rejected", disables_on_error=True))
    with OperatorHarness(disabling, inputs=2) as harness:
        for key, amount in (("w", 900), ("x", 13), ("y", 900)):
            harness.process((key, 3), timestamp=1)
            harness.process((key, amount), timestamp=2)
        both_advance(harness, MAX_TIMESTAMP)
        assert harness.output_values() == ["faulty1: [3, 900]"]
        assert [record.value for record in harness.side_output("rejected")] == [Reported(FAULTY, FAILURE)]


def test_rules_that_wait_in_vain_are_rejected() -> None:
    later = [PatternRule("fraud", 2, fraud(500)), PatternRule("new", 1, alone(3))]
    with OperatorHarness(dynamic(FRAUD1), inputs=2) as harness:
        for rule in later:
            harness.process(rule, timestamp=50, input_index=1)
        assert metric(harness, "numRulesPending") == 2
        snapshot = harness.snapshot()
    for options, part in (({}, "has no stream of rules any more"), ({"is_processing_time": True}, "has no stream")):
        for subtask in (0, 1):
            changed = fixed(FRAUD1, rejected="rejected", **options)
            with OperatorHarness(changed, place=Place(subtask, 2), restore=(snapshot,)) as harness:
                assert metric(harness, "numRulesPending") == 2 - 2 * subtask  # the first one reports them
                harness.process(("x", 600), timestamp=60)
                harness.advance_watermark(60)
                reports = [record.value for record in harness.side_output("rejected")]
                assert reports == ([] if subtask else [Reported(rule, part) for rule in later])
                assert metric(harness, "numRulesRejected") == len(reports)
                assert metric(harness, "numRulesPending") == 0
    program = dynamic(PatternRule("fraud", 2, fraud(500)), rejected="rejected")
    with OperatorHarness(program, inputs=2, restore=(snapshot,)) as harness:
        both_advance(harness, 10)
        reports = [record.value for record in harness.side_output("rejected")]
        assert reports == [Reported(later[0], "is not newer than version 2, which is in effect")]
        harness.process(PatternRule("new", 2), input_index=1)  # removes the pattern before it takes effect
        assert harness.side_output("rejected")[1].value == Reported(later[1], "not newer than version 2")
        assert metric(harness, "numRulesPending") == 0


def test_processing_time_matches_with_the_rules_that_have_come() -> None:
    with OperatorHarness(dynamic(is_processing_time=True), inputs=2) as harness:
        harness.process(("x", 900))
        harness.process(PatternRule("large", 1, alone(800)), timestamp=10_000, input_index=1)
        harness.process(("x", 901))
        harness.process(PatternRule("large", 2), input_index=1)
        harness.process(("x", 902))
        assert harness.output == [rec("large1: [901]")]


def test_in_batch_mode_rules_change_between_the_events_of_a_key() -> None:
    with OperatorHarness(SortedInput(dynamic(FRAUD1)), inputs=2) as harness:
        harness.process(FRAUD2, timestamp=100, input_index=1)
        for key in ("x", "y"):
            for amount, stamp in ((3, 1), (900, 2), (3, 90), (4, 110), (600, 120), (801, 121)):
                harness.process((key, amount), timestamp=stamp)
        both_advance(harness, MAX_TIMESTAMP)
        assert harness.output_values() == 2 * ["fraud1: [3, 900]", "fraud2: [4, 600]", "fraud1: [3, 801]"]
        assert not any("numTimersIgnored" in path for path in harness.metrics.snapshot())


def test_in_batch_mode_rules_are_rejected_where_no_key_is() -> None:
    with OperatorHarness(SortedInput(dynamic(FRAUD2, rejected="rejected")), inputs=2) as harness:
        harness.process(FRAUD1, timestamp=100, input_index=1)
        both_advance(harness, MAX_TIMESTAMP)
        assert [record.value.rule for record in harness.side_output("rejected")] == [FRAUD1]


def test_rules_and_old_matches_are_rescaled() -> None:
    with OperatorHarness(dynamic(FRAUD1), inputs=2) as harness:
        for number in range(8):
            harness.process((number, 3), timestamp=1)
        both_advance(harness, 5)
        harness.process(FRAUD2, input_index=1)
        harness.process(PatternRule("fraud", 3, fraud(100)), timestamp=50, input_index=1)
        harness.process((9, 3), timestamp=6)
        both_advance(harness, 6)
        snapshot = harness.snapshot()
    output = []
    for subtask, part in enumerate(rescaled_snapshots([snapshot], 2)):
        with OperatorHarness(dynamic(FRAUD1), inputs=2, place=Place(subtask, 2), restore=(part,)) as harness:
            operator: Any = harness.operators[0]
            for key in [*range(8), 9]:
                if key in dict(operator.stored_matches()):
                    harness.process((key, 801), timestamp=20)
                    harness.process((key, 4), timestamp=50)
                    harness.process((key, 101), timestamp=51)
            both_advance(harness, 60)
            assert metric(harness, "numOldPatterns") == 0
            output += harness.output_values()
    assert sorted(output) == sorted(["fraud1: [3, 801]"] * 8 + ["fraud2: [3, 801]"] + ["fraud3: [4, 101]"] * 9)


def begun(*rules: PatternRule) -> Any:
    """Return the snapshot of an operator that has a partial match of each of two keys."""
    with OperatorHarness(fixed(*rules)) as harness:
        harness.process(("x", 3), timestamp=1)
        harness.process(("y", 3), timestamp=2)
        harness.advance_watermark(5)
        return harness.snapshot()


@pytest.mark.parametrize(
    "drops, output", [(False, ["fraud1: [3, 900]", "fraud2: [4, 600]"]), (True, ["fraud2: [4, 600]"])]
)
def test_a_program_with_a_newer_version_finishes_or_drops_old_matches(drops: bool, output: list[str]) -> None:
    changed = fixed(FRAUD2, drops_on_change=drops)
    with OperatorHarness(changed, restore=(begun(FRAUD1),)) as harness:
        assert metric(harness, "numPartialMatchesDropped") == (2 if drops else 0)
        for amount, stamp in ((900, 10), (4, 11), (600, 12)):
            harness.process(("x", amount), timestamp=stamp)
        harness.advance_watermark(20)
        assert harness.output_values() == output
        snapshot = harness.snapshot()
    with OperatorHarness(changed, restore=(snapshot,)) as harness:  # the old version comes back from its own savepoint
        harness.process(("y", 801), timestamp=30)
        harness.advance_watermark(40)
        assert harness.output_values() == ([] if drops else ["fraud1: [3, 801]"])
        assert metric(harness, "numOldPatterns") == 0


def test_another_pattern_under_the_same_version_is_refused_with_the_remedy() -> None:
    with pytest.raises(RuleConflict, match="the states last, large, small in the program.*greater than all before"):
        OperatorHarness(fixed(PatternRule("fraud", 1, fraud(3).next("last"))), restore=(begun(FRAUD1),))
    with pytest.raises(RuleConflict, match="version 1 in the program, and version 2 in the snapshot"):
        OperatorHarness(fixed(FRAUD1), restore=(begun(FRAUD2),))
    with OperatorHarness(fixed(PatternRule("fraud", 1, fraud(3))), restore=(begun(FRAUD1),)) as harness:
        harness.process(("x", 4), timestamp=9)  # a condition may change
        harness.advance_watermark(20)
        assert harness.output_values() == ["fraud1: [3, 4]"]


def test_a_pattern_that_the_program_no_longer_has_begins_no_match() -> None:
    with OperatorHarness(fixed(PatternRule("large", 1, alone(800))), restore=(begun(*BOTH),)) as harness:
        for amount, stamp in ((4, 9), (900, 10)):
            harness.process(("x", amount), timestamp=stamp)
        harness.advance_watermark(20)
        assert harness.output_values() == ["fraud1: [3, 900]", "large1: [900]"]


def test_code_of_another_python_is_refused_with_the_remedy() -> None:
    make, (pattern_id, version, code, python, classes) = FRAUD1.__reduce__()
    assert python is not None  # is_above returns a lambda
    with pytest.raises(UnreadableRule, match=r"code of Python 3\.1, and this is.*newer version"):
        make(pattern_id, version, code, (3, 1), classes).pattern()
    assert PatternRule("fraud", 1, partial(fraud, 800)).__reduce__()[1][3] is None  # by name
