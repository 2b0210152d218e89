"""A job's coordinator under test: its program, its commands and what its tasks say."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from rayflink.actors.job.job_master import JobMaster
from rayflink.actors.messages.commands import Command, DeployTask, SendToTask, SlotsGranted
from rayflink.actors.messages.executions import Execution
from rayflink.actors.messages.messages import TaskFailure, TaskStateChanged
from rayflink.actors.messages.states import ExecutionState
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment


def three_vertices(**options: str) -> Any:
    """Source (1) -> Map (2) -> Sink (1), unchained; underscores in option names stand for dots."""
    given = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    env = StreamExecutionEnvironment.get_execution_environment(given)
    mapped = env.from_collection(["a", "b"]).rebalance().map(str.upper).set_parallelism(2)
    mapped.rebalance().sink_to(CollectSink("out")).set_parallelism(1)
    return env.get_job_graph("three")


def ids() -> Callable[[], str]:
    numbers = count()
    return lambda: f"{next(numbers):032x}"


class Job:
    """A JobMaster and the moment; `on` hands it an event and returns its commands."""

    def __init__(self, graph: Any) -> None:
        self.master = JobMaster(graph, ids(), {})
        self.now = 0

    def start(self) -> list[Command]:
        return self.master.start(self.now)

    def on(self, event: Any, now: int | None = None) -> list[Command]:
        self.now = self.now if now is None else now
        return self.master.handle(event, self.now)

    def deploy(self) -> list[str]:
        """Start and grant the slots; the names deployed, in order."""
        self.start()
        return names(self.on(SlotsGranted()))

    def execution(self, name: str) -> Execution:
        return next(e for e in self.master.executions.values() if e.name == name)

    def says(self, name: str, state: ExecutionState, now: int | None = None, **more: Any) -> list[Command]:
        return self.on(TaskStateChanged(self.execution(name).attempt, state, **more), now)

    def all_run(self) -> None:
        self.deploy()
        for execution in list(self.master.executions.values()):
            self.says(execution.name, ExecutionState.RUNNING)

    def states(self) -> dict[str, str]:
        return {e.name: e.state.value for e in self.master.executions.values()}

    def sent(self, commands: list[Command]) -> dict[str, Any]:
        """Task name -> the message it is sent."""
        name_of = {e.attempt: e.name for e in self.master.executions.values()}
        return {name_of[c.attempt]: c.message for c in commands if isinstance(c, SendToTask)}


def names(commands: list[Command]) -> list[str]:
    return [c.deployment.name for c in commands if isinstance(c, DeployTask)]


def failure(message: str) -> TaskFailure:
    return TaskFailure("ValueError", message, "")
