"""The network of a simulated cluster: calls between tasks and commands to them, as faults delay and lose them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from rayflink.actors.exchange.frames import Envelope, TaskAddress
from rayflink.actors.messages.commands import CommandLost
from rayflink.actors.messages.messages import ToTask

from ..faults import Call, CommandFate
from .context import SimulationContext
from .scheduler import FirstOfEachTarget, Lanes, Pool, ScheduledEvent
from .tasks import SimulatedTasks


class SimulatedNetwork:
    """All that is under way to tasks; three sources of events.

    Calls of one task to another arrive in their order, unless a fault reorders them. Commands for one task always do.

    Args:
        context: of the run.
        tasks: who sends and receives.
    """

    def __init__(self, context: SimulationContext, tasks: SimulatedTasks) -> None:
        self._context, self._tasks = context, tasks
        self.calls = Pool() if context.faults.reorders else FirstOfEachTarget()
        self.returns = Pool()
        """Calls that have arrived, of which the sender does not know yet."""
        self.commands = Lanes()

    def deliver(self, envelope: Envelope) -> None:
        """Put a call on its way, as the faults will have it."""
        sender, receiver = self._tasks.names[envelope.sender], self._tasks.names[envelope.receiver]
        call = Call(envelope, sender, receiver, self._context.clock.now_ms(), envelope.receiver)
        for each in self._context.faults.transmit(call):
            self.calls.add(ScheduledEvent(each.due_ms, (each.sender, each.receiver), Arrival(self, each)))

    def arrive(self, call: Call) -> None:
        """Let a call arrive, or be lost on its way."""
        content = f"{call.envelope.sequence}: {call.frames}"
        self._context.note("deliver" if call.deliver else "lose", f"{call.sender} -> {call.receiver}", content)
        receiver = self._tasks.running.get(call.attempt)
        if receiver is not None and call.deliver:
            receiver.mail(call.envelope)
        if call.is_answered:
            pair = call.envelope.sender, call.attempt
            self.returns.add(ScheduledEvent(0, pair, Return(self, *pair)))

    def return_call(self, sender: TaskAddress, receiver: TaskAddress) -> None:
        """Let the sender of a call know that it has arrived."""
        task = self._tasks.running.get(sender)
        if task is not None:
            task.returned(receiver)
            self._tasks.wake(sender)

    def send_command(self, attempt: TaskAddress, message: ToTask) -> list[CommandLost]:
        """Put a command on its way, and return the failures that its sender sees, where faults let the call fail."""
        context, command, receiver = self._context, type(message).__name__, self._tasks.names[attempt]
        due_ms = context.clock.now_ms() + context.faults.command_delay_ms()
        failures: list[CommandLost] = []
        for fate in context.faults.command_fates(command, receiver):
            context.note("lose", receiver, f"{command} {fate.value}")
            failures.append(CommandLost(attempt, command, "the simulation broke the connection"))
            if fate is CommandFate.LOST:
                return failures
        self.commands.add(ScheduledEvent(due_ms, attempt, partial(self._obey, attempt, message)))
        return failures

    def _obey(self, attempt: TaskAddress, message: ToTask) -> None:
        self._context.note("command", self._tasks.names[attempt], repr(message))
        receiver = self._tasks.running.get(attempt)
        if receiver is not None:
            receiver.mail(message)


@dataclass(frozen=True, slots=True)
class Arrival:
    """The action of a call that arrives; that of two equal copies is the same."""

    network: SimulatedNetwork
    call: Call

    def __call__(self) -> None:
        self.network.arrive(self.call)


@dataclass(frozen=True, slots=True)
class Return:
    """The action of a call that returns to its sender; that of two calls of one pair of tasks is the same."""

    network: SimulatedNetwork
    sender: TaskAddress
    receiver: TaskAddress

    def __call__(self) -> None:
        self.network.return_call(self.sender, self.receiver)


__all__ = ["SimulatedNetwork"]
