"""Factories, which travel in a program and create an operator in the process that runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rayflink.common.connector_base.sink import Sink
from rayflink.common.errors import NotSerializable
from rayflink.common.user_code.actor_pool import ActorPool
from rayflink.common.user_code.call_sites import call_site
from rayflink.common.user_code.isolated_copy import own_copy
from rayflink.common.user_code.unpicklable import cause

from .sources import ReaderSourceOperator
from .type_check import with_output_type

if TYPE_CHECKING:
    from rayflink.common.connector_base.source import Source
    from rayflink.common.data_types.type_base import TypeInformation
    from rayflink.common.watermarks import WatermarkStrategy

    from .sources import ReaderSourceOperator


class Factory:
    """Makes an operator from its class and arguments; pickles as those.

    Each subtask works with functions of its own, on every runner: what holds state is copied for it.

    Args:
        operator: called with the arguments, once a subtask.
    """

    def __init__(self, operator: Callable[..., Any], *arguments: Any) -> None:
        self._operator, self._arguments = operator, arguments

    def __call__(self) -> Any:
        return self._operator(*map(_copy, self._arguments))

    @property
    def sink(self) -> Sink | None:
        """Return the sink that the operator writes to; None if it writes to none."""
        return next((argument for argument in self._arguments if isinstance(argument, Sink)), None)

    @property
    def pool_cpus(self) -> float:
        """Return the CPUs that the processes of the operator's pool take in addition to the slots of its subtasks."""
        return sum(pool.size * pool.num_cpus for pool in self._arguments if isinstance(pool, ActorPool))


class Typed:
    """Makes another factory's operator, whose results must be of the type that the program declared.

    Args:
        factory: makes the operator.
        output_type: a TypeInformation.
    """

    def __init__(self, factory: Factory, output_type: TypeInformation) -> None:
        self._factory, self._output_type = factory, output_type

    def __call__(self) -> Any:
        return with_output_type(self._factory(), self._output_type)


class SourceFactory:
    """Makes a source's operator; has `source`, from which the coordinator makes the enumerator.

    Args:
        source: what to read.
        strategy: gives the records timestamps and makes the watermarks; None: the source does.
    """

    def __init__(self, source: Source, strategy: WatermarkStrategy | None) -> None:
        self.source, self._strategy = source, strategy

    def __call__(self) -> ReaderSourceOperator:
        return ReaderSourceOperator(_copy(self.source), _copy(self._strategy))


def _copy(argument: Any) -> Any:
    """Return a copy of an argument, with all that it holds."""
    try:
        return own_copy(argument)
    except Exception as error:  # the user's classes may raise anything
        what = f"function {getattr(argument, '__name__', type(argument).__name__)}"
        raise NotSerializable(what, cause(argument, error), call_site()) from error
