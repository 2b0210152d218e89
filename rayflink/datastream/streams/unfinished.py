"""The base of the steps of a join, which is written as a chain of calls, each of which adds one part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from rayflink.common.errors import shorten
from rayflink.common.output_tag import OutputTag
from rayflink.graph.errors import PlanError
from rayflink.graph.transformations import call_site

if TYPE_CHECKING:
    from .stream import DataStream


class Unfinished:
    """A join that lacks something: any other method than the next one is refused with the order in which they come."""

    _next = "where"
    _order = "a join is written a.join(b).where(key of a).equal_to(key of b).window(assigner).apply(function)"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            problem = f"{name}() was called where {self._next}() is due; {self._order}"
            raise AttributeError(problem, name=name, obj=self)


def ensure_one_environment(stream: DataStream, other: DataStream, step: str) -> None:
    """Check that streams belong to one environment.

    Raises: PlanError: the streams belong to two environments.
    """
    if stream.get_execution_environment() is not other.get_execution_environment():
        problem = f"{step} was given streams of two environments"
        raise PlanError(problem, "make both from one StreamExecutionEnvironment", call_site())


def tag_of(step: str, tag: Any) -> OutputTag:
    """Check that a value is an output tag and return it.

    Raises: TypeError: it is no tag.
    """
    if not isinstance(tag, OutputTag):
        actual = f"{type(tag).__name__} {shorten(tag, 80)}"
        raise TypeError(f"{step} needs an OutputTag, found {actual}; write for example OutputTag('late')")
    return tag


__all__ = ["Unfinished", "ensure_one_environment", "tag_of"]
