"""Checks a deployment in the process of a task before it runs.

Source: apache/flink TaskExecutor.submitTask.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

from rayflink.common.options.log_levels import LogLevels
from rayflink.graph.job_graph import JobGraph
from rayflink.state.errors import RayflinkError

from ...exchange.frames import TaskAddress
from ...messages.messages import TaskDeployment
from ...messages.scheduling import Slot
from ..driver.user_program import unpack

DEFECT = "this is a defect of the runtime, please report it"


class TaskSubmissionError(RayflinkError):
    """The process that was to run an attempt refuses its deployment."""

    def __init__(self, task: str, problem: str, remedy: str) -> None:
        super().__init__(task, problem, remedy)
        self.task, self.problem, self.remedy = task, problem, remedy

    def __str__(self) -> str:
        return f"could not submit task {self.task}: {self.problem}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class SlotAssignment:
    """The slot and job that a process was started for.

    Args:
        job_id: whose tasks it may run.
        slot: whose subtasks it may run.
        leader_id: of the coordinator that made it; each life of a coordinator has an id of its own.
        namespace: Ray namespace of the job.
        log_levels: of its loggers.
        title: the job's name and the tasks that the slot is for, for people.
    """

    job_id: str
    slot: Slot
    leader_id: str
    namespace: str = "rayflink"
    log_levels: LogLevels = LogLevels()
    title: str = ""


class DeploymentGuard:
    """Accepts the deployments that its process was started for, each once."""

    def __init__(self, assignment: SlotAssignment) -> None:
        self._assignment = assignment
        self._accepted: set[TaskAddress] = set()

    def accept(self, deployment: TaskDeployment, slot: Slot, leader_id: str) -> None:
        """Accept the deployment to `slot` that the coordinator `leader_id` requests.

        Raises:
            TaskSubmissionError: it is of another job, coordinator or slot, or was accepted before.
        """
        mine, remedy = self._assignment, DEFECT
        if deployment.job_id != mine.job_id:
            problem = f"this process has no coordinator of job {deployment.job_id}, it is of job {mine.job_id}"
        elif leader_id != mine.leader_id:
            problem = f"the coordinator's leader id {leader_id} does not match the expected leader id {mine.leader_id}"
            remedy = "a coordinator deploys to processes of its own making only"
        elif slot != mine.slot:
            problem = f"no slot {slot} is allocated here for attempt {deployment.attempt}, only {mine.slot}"
        elif deployment.attempt in self._accepted:
            problem = f"this process already contains a task for id {deployment.attempt}"
        else:
            self._accepted.add(deployment.attempt)
            return
        raise TaskSubmissionError(deployment.title, problem, remedy)


class LoadedProgram:
    """The job of a process, unpickled once: its script's globals and classes are there once, as in any process.

    Unpickled again for another task, it would give its classes back the attributes they were sent with, and their
    methods other globals, under a task that runs. Methods may be called by several threads.
    """

    def __init__(self) -> None:
        self._graph: JobGraph | None = None
        self._loading = threading.Lock()

    def whole(self, program: bytes, deployment: TaskDeployment) -> TaskDeployment:
        """Return the deployment with the user's code: its operators, and the partitioners of its outputs.

        They travel in the program alone. Sent with each attempt as well, they would bring classes of the job's script
        of their own, and a key of one class is no key of the other.

        Raises:
            TaskSubmissionError: the program is another job's.
            Exception: whatever unpickling the program raises here.
        """
        with self._loading:
            graph = unpack(program) if self._graph is None else self._graph
            if graph.id != (wanted := deployment.program_id or deployment.job_id):
                problem = f"inconsistent job ID information inside the deployment ({wanted} vs. {graph.id})"
                raise TaskSubmissionError(deployment.title, problem, DEFECT)
            self._graph = graph
        partitioners = {edge.dataset_id: edge.partitioner for edge in graph.edges}
        outputs = tuple(replace(output, partitioner=partitioners[output.dataset]) for output in deployment.outputs)
        return replace(deployment, operators=graph.vertex(deployment.vertex_id).operators, outputs=outputs)


def without_code(deployment: TaskDeployment, program_id: str = "") -> TaskDeployment:
    """Return the deployment as it is sent; `LoadedProgram.whole` puts the user's code back.

    Args:
        program_id: of the job in the packed program, where it is another one; "": that of the deployment.
    """
    outputs = tuple(replace(output, partitioner=None) for output in deployment.outputs)
    return replace(deployment, operators=(), outputs=outputs, program_id=program_id)
