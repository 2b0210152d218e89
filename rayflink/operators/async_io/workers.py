"""Workers, which run the function of a pool: their specification, and the workers of this process.

A runner that has processes to give supplies workers of its own by `OperatorContext.open_worker`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from inspect import isclass
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol

from rayflink.common.errors import described
from rayflink.common.user_code.isolated_copy import own_copy

from ..base import OperatorContext
from ..columnar import from_form, to_form


class WorkerLost(ConnectionError):
    """The process of a worker is gone; what it was given may be given to another.

    Args:
        cause: what is known of it.
    """

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause

    def __str__(self) -> str:
        return f"the process of the worker is gone: {self.cause}"


class BatchFunction:
    """A user's function on batches; a class is made an instance of where it runs, on first use.

    Args:
        function: called with a batch, or a class whose instances are.
        form: of what it takes and gives: "rows" for a list of records, else as of `MapBatchesOperator`.
    """

    def __init__(self, function: Any, form: str) -> None:
        self._function, self._form = function, form
        self._instance: Callable[[Any], Any] | None = None

    def open(self) -> None:
        """Make the instance."""
        if self._instance is None:
            make: Any = self._function
            self._instance = _guarded(make) if isclass(make) else make

    def __call__(self, data: Any) -> Any:
        """Return the result for a batch: a list for a list, a RecordBatch for a RecordBatch.

        Raises:
            TypeError: it is in none of the forms.
        """
        self.open()
        assert self._instance is not None
        if self._form != "rows":
            return from_form(_guarded(self._instance, to_form(data, self._form)))
        result = _guarded(self._instance, data)
        if isinstance(result, list | tuple):
            return list(result)
        raise TypeError(f"with form='rows' a list of results is wanted, found {type(result).__name__}")


def _guarded(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function; what would end the loop that waits for it is a failure as any other."""
    try:
        return function(*arguments)
    except (SystemExit, StopIteration) as error:
        raise RuntimeError(f"the function raised {described(error)}") from error


@dataclass(frozen=True)
class WorkerSpec:
    """The specification of a worker.

    Args:
        function: the same for all workers; each has its own copy.
        name: of the operator.
        num_cpus, num_gpus: what its process takes; may be parts of one.
        resources: further resources of the cluster, name -> amount.
    """

    function: BatchFunction
    name: str
    num_cpus: float = 1
    num_gpus: float = 0
    resources: dict[str, float] = field(default_factory=dict)

    @property
    def wanted(self) -> str:
        """Describe the resources that the worker's process takes, for messages.

        >>> WorkerSpec(BatchFunction(list, "rows"), "score", 0.5).wanted
        'num_cpus=0.5, num_gpus=0'
        """
        rest = f", resources={self.resources}" if self.resources else ""
        return f"num_cpus={self.num_cpus}, num_gpus={self.num_gpus}{rest}"


class Worker(Protocol):
    """Works one batch at a time; its methods run in an event loop."""

    async def ready(self) -> None:
        """Return when the function is there.

        Raises:
            WorkerLost: its process is gone.
        """

    async def awaited(self) -> str:
        """Describe why the worker is not ready yet, for messages."""

    async def call(self, data: Any) -> Any:
        """Return the function's result for a batch.

        Raises:
            WorkerLost: its process is gone.
        """

    def close(self) -> None:
        """End the worker, with the work it is doing."""


MAKES_FUNCTION = "its process is there and makes its function"


class ThreadWorker:
    """A worker in a thread of this process, which a call that hangs does not keep from ending."""

    def __init__(self, spec: WorkerSpec) -> None:
        self._function = own_copy(spec.function)
        self._calls: SimpleQueue[tuple[Future[Any], tuple[Any, ...]] | None] = SimpleQueue()
        Thread(target=self._run, name=f"worker of {spec.name}", daemon=True).start()

    async def ready(self) -> None:
        await self._answer()

    async def awaited(self) -> str:
        return MAKES_FUNCTION

    async def call(self, data: Any) -> Any:
        return await self._answer(data)

    def close(self) -> None:
        self._calls.put(None)

    def _answer(self, *arguments: Any) -> asyncio.Future[Any]:
        answer: Future[Any] = Future()
        self._calls.put((answer, arguments))
        return asyncio.wrap_future(answer)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            answer, arguments = call
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                work: Callable[..., Any] = self._function if arguments else self._function.open
                answer.set_result(work(*arguments))
            except BaseException as error:  # it is the caller's, whose loop goes on
                answer.set_exception(error)


class InlineWorker:
    """A worker that works in the loop itself, for runs that must be the same each time."""

    def __init__(self, spec: WorkerSpec) -> None:
        self._function = own_copy(spec.function)

    async def ready(self) -> None:
        self._function.open()

    async def awaited(self) -> str:
        return MAKES_FUNCTION

    async def call(self, data: Any) -> Any:
        return self._function(data)

    def close(self) -> None:
        pass


def worker_opener(ctx: OperatorContext) -> Callable[[WorkerSpec], Worker]:
    """Return the function that creates workers for an operator."""
    if ctx.open_worker is not None:
        return ctx.open_worker
    return InlineWorker if ctx.wake is None else ThreadWorker


__all__ = [
    "MAKES_FUNCTION", "BatchFunction", "InlineWorker", "ThreadWorker", "Worker", "WorkerLost", "WorkerSpec",
    "worker_opener",
]  # fmt: skip
