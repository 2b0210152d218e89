"""Turns what a user passes for a function (lambda, function, callable object, function class) into plain calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from rayflink.user_types import UserCode, UserRecord, UserValue

from ..data_types.type_base import TypeInformation
from ..errors import InvalidFunction, shorten
from ..user_code.call_sites import call_site
from .checkpointed_function import checkpointed_of
from .runtime_context import RuntimeContext

if TYPE_CHECKING:
    from ..data_types.type_base import TypeInformation


class UserFunction(NamedTuple):
    """A user's function, ready to be called: open once, call for each record, close once.

    `checkpointed` holds the functions in it that keep operator state.
    """

    call: Callable[..., Any]
    open: Callable[[RuntimeContext], None]
    close: Callable[[], None]
    checkpointed: tuple[Any, ...] = ()


class UserFunctionPair(NamedTuple):
    """A user's function for two inputs: `call1` for records of the first, `call2` for those of the second."""

    call1: Callable[..., Any]
    call2: Callable[..., Any]
    open: Callable[[RuntimeContext], None]
    close: Callable[[], None]
    checkpointed: tuple[Any, ...] = ()


@dataclass(frozen=True)
class KeyBy:
    """The arguments of a step that partitions records by key, so that a failure names that step and its line.

    Args:
        selector: a KeySelector or a callable, record -> key.
        call_site: the line of the program, or "".
        key_type: what every key must be; None: anything that can be a key.
        step: the method that was called.
    """

    selector: UserCode
    call_site: str = ""
    key_type: TypeInformation | None = None
    step: str = "key_by"

    @classmethod
    def of(cls, selector: Any) -> KeyBy:
        """Return the KeyBy itself; anything else is a selector of an unknown line."""
        return selector if isinstance(selector, cls) else cls(selector)

    def __call__(self, record: UserRecord) -> Any:
        """Return the key of a record."""
        return as_key_selector(self.selector).call(record)


@dataclass(frozen=True)
class SplitBy:
    """The argument of `split`, so that a failure of it names its line.

    Args:
        call: record -> names of outputs.
        call_site: the line of the program, or "".
    """

    call: Callable[[Any], Any]
    call_site: str = ""


class UserAsync(NamedTuple):
    """A user's async function: `call` gives an awaitable, `timeout` what counts as result when that takes too long."""

    call: Callable[..., Any]
    timeout: Callable[..., Any]
    open: Callable[[RuntimeContext], Any]
    close: Callable[[], Any]


def _nothing(*_: object) -> None:
    pass


def life_cycle_of(function: UserCode) -> tuple[Callable[[RuntimeContext], None], Callable[[], None]]:
    """Return the function's own `open` and `close`, or calls that do nothing for plain functions."""
    if inspect.isroutine(function) or not hasattr(function, "open") or not hasattr(function, "close"):
        return _nothing, _nothing
    return function.open, function.close


def _method_of(function: UserCode, method: str, kind: str, step: str, width: int) -> Callable[..., Any]:
    """Return the call of a function with `width` arguments, for the step of a program that it was passed to.

    Raises:
        InvalidFunction: it cannot be called so.
    """
    if inspect.isclass(function) and hasattr(function, method) and hasattr(function, "open"):
        name = function.__name__
        problem = f"{step}: {kind} is wanted, but the class {name} itself was passed"
        raise InvalidFunction(problem, f"pass an instance: {name}(...)", call_site())
    if not inspect.isroutine(function) and not inspect.isclass(function) and hasattr(function, method):
        call = getattr(function, method)
    elif callable(function):
        call = function
    else:
        problem = f"{step}: {kind} or a callable is wanted, found {type(function).__name__}: {shorten(function, 100)}"
        raise InvalidFunction(problem, f"pass a function of {_arguments(width)}", call_site())
    if inspect.iscoroutinefunction(call):
        problem = f"{step}: {kind} cannot be async, found the coroutine function {call!r}"
        raise InvalidFunction(problem, "use AsyncDataStream for those", call_site())
    ensure_takes(width, call, step)
    result: Callable[..., Any] = call
    return result


def ensure_takes(width: int, call: Callable[..., Any], step: str) -> None:
    """Refuse a callable that does not take this number of arguments; one whose signature is unknown is taken as it is.

    Raises:
        InvalidFunction: it takes more or fewer.
    """
    try:
        signature = inspect.signature(call)
    except (ValueError, TypeError):  # most built-in types and functions of extensions
        return
    try:
        signature.bind(*range(width))
    except TypeError:
        parameters = [p for p in signature.parameters.values() if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
        name = getattr(call, "__qualname__", type(call).__name__)
        problem = f"{step} wants a function of {_arguments(width)}, found one of {len(parameters)}: {name}{signature}"
        raise InvalidFunction(problem, f"give it {_arguments(width)}", call_site()) from None


def _arguments(count: int) -> str:
    return f"{count} argument{'' if count == 1 else 's'}"


def _single(function: UserCode, method: str, kind: str, step: str, width: int = 1) -> UserFunction:
    call = _method_of(function, method, kind, step, width)
    return UserFunction(call, *life_cycle_of(function), checkpointed_of(function))


def as_pair(function: UserCode, methods: tuple[str, str], kind: str, step: str, width: int = 1) -> UserFunctionPair:
    if isinstance(function, tuple) and len(function) == 2:
        first, second = (_method_of(part, "", "one callable for each input", step, width) for part in function)
        return UserFunctionPair(first, second, _nothing, _nothing)
    if inspect.isclass(function) or not all(hasattr(function, method) for method in methods):
        problem = f"{kind} instance with methods {' and '.join(methods)} is wanted, found {shorten(function, 100)}"
        remedy = f"pass one, or a pair of callables of {_arguments(width)}"
        raise InvalidFunction(f"{step}: {problem}", remedy, call_site())
    calls = [_method_of(getattr(function, method), "", kind, step, width) for method in methods]
    return UserFunctionPair(calls[0], calls[1], *life_cycle_of(function), checkpointed_of(function))


def as_map(function: UserCode, step: str = "map") -> UserFunction:
    """Return `value -> value`, from a MapFunction or a callable, which was passed to `step`."""
    return _single(function, "map", "a MapFunction", step)


def as_flat_map(function: UserCode) -> UserFunction:
    """Return `value -> iterable or None`, from a FlatMapFunction or a callable."""
    return _single(function, "flat_map", "a FlatMapFunction", "flat_map")


def as_filter(function: UserCode) -> UserFunction:
    """Return `value -> truth`, from a FilterFunction or a callable."""
    return _single(function, "filter", "a FilterFunction", "filter")


def as_reduce(function: UserCode) -> UserFunction:
    """Return `(value, value) -> value`, from a ReduceFunction or a callable."""
    return _single(function, "reduce", "a ReduceFunction", "reduce", 2)


def as_fold(function: UserCode) -> UserFunction:
    """Return `(accumulator, value) -> accumulator`, from a FoldFunction or a callable."""
    return _single(function, "fold", "a FoldFunction", "fold", 2)


def as_key_selector(function: UserCode) -> UserFunction:
    """Return `value -> key`, from a KeySelector or a callable, or the KeyBy that holds one."""
    key_by = KeyBy.of(function)
    return _single(key_by.selector, "get_key", "a KeySelector", key_by.step)


def as_output_selector(function: UserCode) -> Callable[[Any], Any]:
    """Return `value -> names of outputs`, from an OutputSelector or a callable."""
    if inspect.isclass(function) and hasattr(function, "select"):
        problem = f"split: an OutputSelector is wanted, but the class {function.__name__} itself was passed"
        raise InvalidFunction(problem, f"pass an instance: {function.__name__}(...)", call_site())
    return _method_of(function, "select", "an OutputSelector", "split", 1)


def as_partitioner(function: UserCode) -> UserFunction:
    """Return `(key, num_partitions) -> index`, from a Partitioner or a callable."""
    return _single(function, "partition", "a Partitioner", "partition_custom", 2)


def as_process(function: UserCode) -> UserFunction:
    """Return `(value, context) -> iterable or None`, from a (Keyed)ProcessFunction or a callable."""
    if hasattr(function, "process_broadcast_element"):
        problem = f"process was given {type(function).__name__}, which also wants the records of a broadcast stream"
        raise InvalidFunction(problem, "call connect(stream.broadcast(descriptor)) before process(...)", call_site())
    return _single(function, "process_element", "a ProcessFunction", "process", 2)


def as_sink(function: UserCode) -> UserFunction:
    """Return `value -> None`, from a SinkFunction or a callable."""
    return _single(function, getattr(function, "takes_records_by", "invoke"), "a SinkFunction", "add_sink")


def as_co_map(function: UserCode) -> UserFunctionPair:
    """Return `value -> value` for each input, from a CoMapFunction or a pair of callables."""
    return as_pair(function, ("map1", "map2"), "a CoMapFunction", "map")


def as_co_flat_map(function: UserCode) -> UserFunctionPair:
    """Return `value -> iterable or None` for each input, from a CoFlatMapFunction or a pair of callables."""
    return as_pair(function, ("flat_map1", "flat_map2"), "a CoFlatMapFunction", "flat_map")


def as_co_process(function: UserCode) -> UserFunctionPair:
    """Return `(value, context) -> iterable or None` for each input, from a (Keyed)CoProcessFunction or a pair."""
    return as_pair(function, ("process_element1", "process_element2"), "a CoProcessFunction", "process", 2)


def as_single(function: UserCode, method: str, kind: str, step: str, width: int) -> UserFunction:
    """Return a call of `width` arguments, from an object with `method` or a callable, which was passed to `step`."""
    return _single(function, method, kind, step, width)


def as_async(function: UserCode, step: str) -> UserAsync:
    """Return `value -> awaitable of results`, from an AsyncFunction or an `async def`, which was passed to `step`.

    Raises:
        InvalidFunction: it is neither.
    """
    if inspect.isclass(function) and hasattr(function, "async_invoke"):
        name = function.__name__
        problem = f"{step}: an AsyncFunction is wanted, but the class {name} itself was passed"
        raise InvalidFunction(problem, f"pass an instance: {name}(...)", call_site())
    if checkpointed_of(function):
        problem = (
            f"{step}: {type(function).__name__} has initialize_state and snapshot_state, which would never be called"
        )
        raise InvalidFunction(problem, "keep state in a step before it; its calls run outside the task", call_site())
    call: UserCode = getattr(function, "async_invoke", function)
    plain = call if inspect.isroutine(call) or isinstance(call, partial) else getattr(call, "__call__", call)  # noqa: B004
    if not inspect.iscoroutinefunction(plain):
        name = "async_invoke" if call is not function else shorten(function, 100)
        problem = f"{step}: {name} of {type(function).__name__} is no coroutine function"
        raise InvalidFunction(problem, "declare it as 'async def'", call_site())
    ensure_takes(1, call, step)
    return UserAsync(call, getattr(function, "timeout", timed_out), *life_cycle_of(function))


def timed_out(value: UserValue) -> list[Any]:
    """Raise the error of an async call that takes too long, where the function does not say what to do.

    Raises:
        TimeoutError: always.
    """
    remedy = "allow more time, or give results for it in a method timeout(value) of an AsyncFunction"
    raise TimeoutError(f"the async call took too long for record {shorten(value, 200)}; {remedy}")
