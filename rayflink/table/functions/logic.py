"""AND, OR, NOT and IS TRUE, in three values: true, false and unknown."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow
import pyarrow.compute as pc

from rayflink.table.functions.declaring import BOOLEAN, TRUTH, Family, can_raise, takes
from rayflink.table.functions.picking import Picked
from rayflink.table.plan.typed import Call, Evaluation, Expr, RowError, Values

logic = Family("Logic")


def _truth_column(expr: Expr, evaluation: Evaluation) -> pyarrow.Array:
    return pc.cast(evaluation.column(expr), pyarrow.bool_())


def _shielded(kernel: Callable[[Any, Any], Any], decided: bool) -> Callable[[Call, Evaluation], Values]:
    """Evaluates one argument after the other; where one may be an error only for the rows not yet decided.

    Args:
        kernel: of two columns of truth values.
        decided: the value of one argument that decides.
    """

    def computed(call: Call, evaluation: Evaluation) -> Values:
        result = pc.cast(evaluation.values(call.args[0]), pyarrow.bool_())
        for arg in call.args[1:]:
            if isinstance(result, pyarrow.Scalar) and result.as_py() is decided:
                return result
            if isinstance(result, pyarrow.Scalar) or not can_raise(arg):
                try:
                    result = kernel(result, pc.cast(evaluation.values(arg), pyarrow.bool_()))
                    continue
                except RowError:  # perhaps of a row that is decided
                    if isinstance(result, pyarrow.Scalar):
                        raise
            is_open = pc.fill_null(pc.not_equal(result, decided), True)
            picked = Picked(evaluation)
            picked.add(is_open, partial(_truth_column, arg))
            picked.add_value(pc.invert(is_open), pyarrow.scalar(decided))
            result = kernel(result, picked.column(pyarrow.bool_()))
        return result

    return computed


logic.add(
    "truth1 AND truth2",
    "True if both are true, false if one is false, else unknown.",
    takes(TRUTH, TRUTH, gives=BOOLEAN, more=TRUTH),
    None,
    name="AND",
    symbol="AND",
    lazily=_shielded(pc.and_kleene, False),
)
logic.add(
    "truth1 OR truth2",
    "True if one is true, false if both are false, else unknown.",
    takes(TRUTH, TRUTH, gives=BOOLEAN, more=TRUTH),
    None,
    name="OR",
    symbol="OR",
    lazily=_shielded(pc.or_kleene, True),
)
logic.add(
    "NOT truth",
    "The opposite; unknown stays unknown.",
    takes(TRUTH, gives=BOOLEAN),
    lambda arguments: pc.invert(pc.cast(arguments.values[0], pyarrow.bool_())),
    name="NOT",
)


def _is(value: bool) -> Callable[[Any], Any]:
    def tested(values: Values) -> Any:
        same = pc.cast(values, pyarrow.bool_())
        return pc.fill_null(same if value else pc.invert(same), False)

    return tested


for _name, _about, _test, _negative in (
    ("TRUE", "it is true", _is(True), False),
    ("NOT TRUE", "it is false or unknown", _is(True), True),
    ("FALSE", "it is false", _is(False), False),
    ("NOT FALSE", "it is true or unknown", _is(False), True),
    ("UNKNOWN", "it is unknown", pc.is_null, False),
    ("NOT UNKNOWN", "it is true or false", pc.is_null, True),
):

    def _truth_test(arguments: Any, test: Any = _test, negative: bool = _negative) -> Values:
        result = test(arguments.values[0])
        return pc.invert(result) if negative else result

    logic.add(
        f"truth IS {_name}",
        f"Whether {_about}.",
        takes(TRUTH, gives=BOOLEAN, null=False),
        _truth_test,
        name=f"IS {_name}",
    )
