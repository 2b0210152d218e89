"""Bad inputs of async functions and of functions in pools; `tests/errors/bad_inputs.py` gathers them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from rayflink.common import Time
from rayflink.datastream import ActorPool, AsyncDataStream, AsyncFunction, AsyncRetryStrategy
from tests.errors.bad_input import RUNNING, WRITTEN, bad

SECOND = Time.seconds(1)


async def ask(value: Any) -> list[Any]:
    return [value]


@bad("a plain function where an async one is wanted", WRITTEN, "is no coroutine function; declare it as 'async def'")
def _(env: Any, folder: Path) -> None:
    AsyncDataStream.ordered_wait(env.from_collection([1]), lambda value: [value], SECOND)


@bad("a capacity of no call", WRITTEN, "ordered_wait has capacity 0; give a whole number of records")
def _(env: Any, folder: Path) -> None:
    AsyncDataStream.ordered_wait(env.from_collection([1]), ask, SECOND, 0)


@bad("retries without a timeout", WRITTEN, "a timeout of 0 ms; give a timeout above 0")
def _(env: Any, folder: Path) -> None:
    again = AsyncRetryStrategy.fixed_delay(3, 10, None, None)
    AsyncDataStream.ordered_wait_with_retry(env.from_collection([1]), ask, Time.seconds(0), again)


@bad("a coroutine that gives no list", RUNNING, "gave int 1, wanted an iterable of records", "record: 1")
def _(env: Any, folder: Path) -> None:
    async def number(value: int) -> int:
        return value

    AsyncDataStream.ordered_wait(env.from_collection([1]), number, SECOND).print()


@bad("a coroutine that returns nothing", RUNNING, "gave NoneType None", "[] drops the record", "record: 1")
def _(env: Any, folder: Path) -> None:
    async def forgetful(value: int) -> None:
        await ask(value)

    AsyncDataStream.unordered_wait(env.from_collection([1]), forgetful, SECOND).print()


@bad("a timeout that returns nothing", RUNNING, "gave NoneType None", "a list of results from timeout()", "record: 1")
def _(env: Any, folder: Path) -> None:
    class Silent(AsyncFunction):
        async def async_invoke(self, value: int) -> list[int]:
            await asyncio.Event().wait()
            return [value]

        def timeout(self, value: int) -> Any:
            return None

    AsyncDataStream.ordered_wait(env.from_collection([1]), Silent(), Time.milliseconds(10)).print()


@bad("a coroutine that raises", RUNNING, "ConnectionError: refused", "record: 1", "in refused")
def _(env: Any, folder: Path) -> None:
    async def refused(value: int) -> list[int]:
        raise ConnectionError("refused")

    AsyncDataStream.unordered_wait(env.from_collection([1]), refused, SECOND).print()


@bad("a call that takes too long", RUNNING, "the async call took too long for record 1; allow more time", "record: 1")
def _(env: Any, folder: Path) -> None:
    async def silent(value: int) -> list[int]:
        await asyncio.Event().wait()
        return [value]

    AsyncDataStream.ordered_wait(env.from_collection([1]), silent, Time.milliseconds(10)).print()


@bad("a pool of no process", WRITTEN, "concurrency must be a number of at least 1", "found 0")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).map_batches(list, "rows", concurrency=0)


@bad("a class for a pool that cannot be called", WRITTEN, "give the class a method __call__(self, batch)")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).map_batches(Path, "rows", concurrency=1)


@bad("a step with more subtasks than its pool has processes", RUNNING, "2 processes are too few for 3 subtasks")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).map_batches(lambda rows: rows, "rows", concurrency=2).set_parallelism(3).print()


@bad("a function in a pool that keeps failing", RUNNING, "KeyError: 'model'", "record: 1", "in score")
def _(env: Any, folder: Path) -> None:
    def score(rows: list[Any]) -> list[Any]:
        raise KeyError("model")

    pool = ActorPool(max_retries=2, retry_delay_ms=1)
    env.from_collection([1]).map_batches(score, "rows", concurrency=pool).print()


@bad("a coroutine that gives a text, not a list of it", RUNNING, "gave str 'ab', wanted an iterable", "record: 1")
def _(env: Any, folder: Path) -> None:
    async def text(value: int) -> str:
        return "ab"

    AsyncDataStream.ordered_wait(env.from_collection([1]), text, SECOND).print()
