"""What pytest shows of a test that fails: its own lines and the user's, not those of the test kit."""

from __future__ import annotations

import pytest

from rayflink.operators.base import UserCodeError
from rayflink.operators.stateless import MapOperator
from rayflink.testing import OperatorHarness, rec, verify


def shown(failure):
    return [entry.path.name for entry in failure.traceback.filter(failure)]


def test_a_difference_is_shown_at_the_line_of_the_test():
    with pytest.raises(AssertionError, match="rec") as failure:
        verify(lambda: MapOperator(str.upper), elements=[rec("a", 1)], then=[rec("B", 1)])
    assert shown(failure) == ["test_tracebacks.py"]


def test_a_step_that_is_none_is_shown_at_the_line_of_the_test():
    with OperatorHarness(lambda: MapOperator(str.upper)) as harness:
        with pytest.raises(TypeError, match="give rec") as failure:
            harness.give("a record")
    assert shown(failure) == ["test_tracebacks.py"]


def test_an_error_of_a_function_shows_the_operator_and_no_harness():
    with OperatorHarness(lambda: MapOperator(lambda value: 1 / value)) as harness:
        with pytest.raises(UserCodeError, match="division by zero") as failure:
            harness.process(0)
    assert shown(failure)[0] == "test_tracebacks.py"
    assert "stateless.py" in shown(failure) and "harness.py" not in shown(failure)
