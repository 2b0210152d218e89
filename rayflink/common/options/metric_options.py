"""The options of metrics, of progress in the terminal, and of logs; `registry` has them with all others."""

from __future__ import annotations

from ..config_options import ConfigOption
from .option_declaring import LONGER_THAN_ZERO as _LONGER_THAN_ZERO
from .option_declaring import NO_NEGATIVE_TIME as _NO_NEGATIVE_TIME
from .option_declaring import POSITIVE as _POSITIVE
from .option_declaring import declare as _option
from .option_declaring import millis as _ms
from .option_types import BOOLEAN, DURATION, INT, LIST, MAP, STRING, enum_type
from .option_values import LOG_LEVELS, LogFormat

METRICS = "Metrics"
"""The heading of these options."""
LATENCY_INTERVAL = _option(METRICS, "metrics.latency.interval", DURATION, _ms(0),
                           "Time between two latency markers of a source; 0 sends none. Each operator reports their "
                           "age in milliseconds as `latency.source_id.<operator id>.latency`.", test=_NO_NEGATIVE_TIME)
LATENCY_HISTORY = _option(METRICS, "metrics.latency.history-size", INT, 128,
                          "Number of latencies in a histogram; at least 1.", test=_POSITIVE)


def _scope(key: str, default: str, subject: str, variables: str, older: str = "") -> ConfigOption[str]:
    """Register a scope format whose components in angle brackets must be of `variables`."""
    known = {f"<{name}>" for name in variables.split()}

    def accepts(form: str) -> bool:
        named = {part for part in form.split(".") if part.startswith("<") and part.endswith(">")}
        return bool(form) and named <= known and (form.split(".")[0] != "*" or "job" in variables)

    help = f"Scope of the metrics of {subject}. Variables: {', '.join(f'`<{name}>`' for name in variables.split())}."
    if "job" in variables:
        help += " A leading `*` stands for the scope above."
    wanted = f"components joined by dots, variables among {', '.join(sorted(known))}"
    return _option(METRICS, key, STRING, default, help, *([(older,)] if older else []), test=(accepts, wanted))


_OF_JOB, _OF_TASK = "job_id job_name", "task_id task_name task_attempt_id task_attempt_num subtask_index"
SCOPE_JM = _scope("metrics.scope.jm", "<host>.jobmanager", "the coordinator's process", "host")
SCOPE_JM_JOB = _scope("metrics.scope.jm-job", "<host>.jobmanager.<job_name>", "a job", f"host {_OF_JOB}",
                      "metrics.scope.jm.job")
SCOPE_TM = _scope("metrics.scope.tm", "<host>.taskmanager.<tm_id>", "a slot's process", "host tm_id")
SCOPE_TM_JOB = _scope("metrics.scope.tm-job", "<host>.taskmanager.<tm_id>.<job_name>", "a job in a slot's process",
                      f"host tm_id {_OF_JOB}", "metrics.scope.tm.job")
SCOPE_TASK = _scope("metrics.scope.task", "<host>.taskmanager.<tm_id>.<job_name>.<task_name>.<subtask_index>",
                    "a subtask", f"host tm_id {_OF_JOB} {_OF_TASK}")
SCOPE_OPERATOR = _scope("metrics.scope.operator",
                        "<host>.taskmanager.<tm_id>.<job_name>.<operator_name>.<subtask_index>",
                        "a subtask's operator", f"host tm_id {_OF_JOB} {_OF_TASK} operator_id operator_name")
SCOPE_DELIMITER = _option(METRICS, "metrics.scope.delimiter", STRING, ".",
                          "Separator of the components of a metric's identifier.",
                          test=(lambda value: len(value) == 1, "one character"))
REPORTERS = _option(METRICS, "metrics.reporters", LIST, ["prom"],
                    "Reporters of a job on Ray. The only one is `prom`: metrics with the names of Flink's "
                    "PrometheusReporter, in lower case and prefixed by `ray_`, on the metrics port of each Ray node. "
                    "It requires `rayflink[cluster]` on the node. An empty list turns it off.",
                    test=(lambda value: set(value) <= {"prom"}, "`prom`, or an empty list"))
PROM_INTERVAL = _option(METRICS, "metrics.reporter.prom.interval", DURATION, _ms(5_000),
                        "Time between two reports of a task; Ray forwards them every 10 s.", test=_LONGER_THAN_ZERO)
PROM_FILTER_LABELS = _option(METRICS, "metrics.reporter.prom.filterLabelValueCharacters", BOOLEAN, True,
                             "Replace characters other than letters, digits, `:` and `_` in label values by `_`.")
PROM_FACTORY = _option(METRICS, "metrics.reporter.prom.factory.class", STRING, None, "The Java class of the reporter.",
                       unheeded="has one reporter of that name, and no Java class")
PROM_PORT = _option(METRICS, "metrics.reporter.prom.port", STRING, None, "Port of Flink's reporter.",
                    unheeded="reports on the metrics port of Ray: `ray start --metrics-export-port`")
SAMPLE_KEY_GROUPS = _option(METRICS, "rayflink.metrics.key-groups", BOOLEAN, True,
                            "Sample the keys that are sent to a keyed vertex of two subtasks or more, so that the "
                            "dashboard and `rayflink status` name the key groups with most records.")
NAME_HOT_KEYS = _option(METRICS, "rayflink.metrics.hot-keys", BOOLEAN, False,
                        "Name the keys with most records as well. Keys are data of the program: everybody who may "
                        "read the job sees them, and archives have them.")
TERMINAL_PROGRESS = _option(METRICS, "rayflink.terminal.progress", BOOLEAN, True,
                            "While a program waits for its job and standard error is a terminal, show a table of "
                            "rates, watermark lag, and busy and back-pressured times there.")
LOG_LEVEL = _option(METRICS, "rayflink.log.level", STRING, None,
                    "Lowest level in the log of a job on Ray (INFO if not set), or of the root logger of a local job.",
                    test=(lambda value: value.upper() in LOG_LEVELS, f"one of {', '.join(LOG_LEVELS)}"))
LOGGER_LEVELS = _option(METRICS, "rayflink.log.loggers", MAP, None, "Lowest levels of single loggers: `my_job:DEBUG`.")
LOG_FORMAT = _option(METRICS, "rayflink.log.format", enum_type(LogFormat), LogFormat.TEXT,
                     "Form of log lines: `text`, or `json`, an object for each line with `time`, `level`, `logger`, "
                     "`message`, `job`, `vertex`, `subtask`, `attempt` and `exception`, as far as they are known.")
