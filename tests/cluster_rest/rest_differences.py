"""The differences between what rayflink and Flink 2.3 answer to the same requests, each with its reason.

The key is a pattern of the lines that `tests/cluster_rest/test_rest_conformance.py` finds: the request, where in the
answer, what differs. A reason that fits no line any more is an error, too.
"""

from __future__ import annotations

IN_ANSWERS = {
    r".*\?includeSerializedValue=true /serialized-user-task-accumulators/parsed: missing here":
        "values of Python are not serialized as objects of Java",
    r".* /jobs/\{job\}/execution-result /job-execution-result/accumulator-results/parsed: missing here":
        "values of Python are not serialized as objects of Java; .../accumulators has them as strings",
    r"(failed|restarting) .*/exceptions\S* .*/failureLabels/type: not in Flink":
        "Flink has labels where a plugin gives them; here USER and SYSTEM differ as by its own plugin",
    r"failed .*/exceptions\S* .*/(endpoint|taskManagerId|taskName): not in Flink":
        "Flink wraps the last failure into one of the job as a whole; here the failure of the task is the root",
    r"failed .*/exceptions\S* .*/concurrentExceptions\[\]: empty here":
        "Flink has the failure of the task within that of the job; here it is the root itself",
    r".* vertex 0 .*/jm-operator-metrics \[\]: empty here": "sources report in their tasks, not in the coordinator",
    r"(running|restarting) /jobs/\{job\}/resource-requirements status: Flink 500, here 200":
        "Flink's default scheduler has none; here every job can be rescaled, as with its adaptive scheduler",
    r".* /(jobs/\{job\}/)?jobmanager/environment /jvm/options\[\]: empty here":
        "an interpreter of Python has no options where none are given",
    r"cluster /jars /files\[\]: empty here": "there are no jars",
    r"running vertex . .*/flamegraph\S* /data: missing here": "these jobs are stepped by the test, in no process",
    r"\w+ /jobs/\{job\}/rescales/(config|overview|summary|history) status: Flink 404, here 200":
        "likewise, and changes are remembered without an option",
}  # fmt: skip
"""Differences of answers."""
IN_REFUSALS = {
    r"running .*/rescales/details/[0-9a-f]{32} text: .*": "Flink's default scheduler has none",
    r"running /jobs/\{job\}/exceptions\?maxExceptions=-1 status: Flink 500, here 400": "a wrong parameter is named",
    r"running /jobs/0+.*(status|resource-requirements) status: Flink 500, here 404":
        "a job that is not there is no fault of the server",
    r"(finished|failed) /jobs/\{job\}/resource-requirements status: Flink 500, here 404":
        "a job that has ended is no fault of the server",
    r"running /jobs/[0-9a-f]{32}/execution-result text: .*": "one text for all requests",
    r"running /(jobs/\{job\}/)?nosuch text: .*": "no files are looked for",
    r"running /(taskmanagers/nosuch|applications/[0-9a-f]{32}) status: Flink 500, here 404":
        "what is not there is no fault of the server",
    r"running /savepoint-disposal/[0-9a-f]{32} text: .*": "Flink names an object of its own",
}
"""Differences of errors: their status, or the text."""
MISSING_METRICS = {
    r"mailbox.*|changelogBusy.*|(soft|hard)BackPressured.*|max(Soft|Hard)BackPressure.*|initializationTime":
        "a task here has no mailbox of mails, no changelog, and one kind of back-pressure",
    r"(Shuffle\.Netty\.Input\.)?num(Bytes|Buffers)In(Local|Remote).*":
        "only tasks on Ray tell local from remote, and bytes alone",
    r"Shuffle\.Netty\.(In|Out)put\.Buffers\.(in|out)putQueueSize": "the lengths of queues are counted in buffers",
    r"numFiredTimers.*": "timers are not counted",
    r"OPERATOR\.num(Bytes(In|Out|Send).*|RecordsSend.*|RecordsInErrors)": "bytes are counted by task",
    r"OPERATOR\.(currentEmitEventTimeLag|sourceIdleTime)": "sources report watermarkLag and isIdle",
    r"OPERATOR\.split\..*": "splits have other names, and report currentWatermark and isIdle alone",
    r"(allSubTasksRunningOrFinished|deploying|initializing)Time": "the recovery of the job's status has the phases",
    r"numRescales|lastCheckpoint(MetadataSize|ProcessedData)": "not counted",
}  # fmt: skip
"""Metrics that Flink has and rayflink has not."""
