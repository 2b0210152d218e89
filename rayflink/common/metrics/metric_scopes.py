"""Scope formats: what stands before a metric's name in its identifier (`metrics.scope.*`).

Source: apache/flink ScopeFormats, ScopeFormat.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..config_options import ConfigOption
from ..configuration import Configuration, reading
from ..options import registry as options

_PARENT = "*"


@dataclass(frozen=True)
class ScopeFormats:
    """The formats of a job, each with the format of its parent in place of a leading ``*``.

    Args:
        jm: of the coordinator's process.
        jm_job: of the job there.
        tm: of a slot's process.
        tm_job: of the job there.
        task: of a subtask.
        operator: of an operator's subtask.
        delimiter: between the components of an identifier.

    >>> formats = ScopeFormats.of({"metrics.scope.task": "*.<task_name>.<subtask_index>"})
    >>> formats.task
    '<host>.taskmanager.<tm_id>.<job_name>.<task_name>.<subtask_index>'
    >>> formats.bound(formats.jm_job, {"<host>": "n1", "<job_name>": "count words"})
    'n1.jobmanager.count words'
    """

    jm: str
    jm_job: str
    tm: str
    tm_job: str
    task: str
    operator: str
    delimiter: str

    @classmethod
    def of(cls, config: Mapping[str, str] | Configuration) -> ScopeFormats:
        """Read the formats from the options.

        Raises:
            ConfigError: a format names a variable that is not there.
        """
        configuration = config if isinstance(config, Configuration) else reading(config)
        jm = _format(configuration, options.SCOPE_JM, "")
        tm = _format(configuration, options.SCOPE_TM, "")
        tm_job = _format(configuration, options.SCOPE_TM_JOB, tm)
        task = _format(configuration, options.SCOPE_TASK, tm_job)
        return cls(
            jm,
            _format(configuration, options.SCOPE_JM_JOB, jm),
            tm,
            tm_job,
            task,
            _format(configuration, options.SCOPE_OPERATOR, task),
            _text(configuration, options.SCOPE_DELIMITER),
        )

    def bound(self, form: str, variables: Mapping[str, str]) -> str:
        """Fill in the variables of a format; one without a value is "null", as in Flink."""
        parts = form.split(".")
        return self.delimiter.join((variables.get(part) or "null") if _is_variable(part) else part for part in parts)


def _format(configuration: Configuration, option: ConfigOption[str], parent: str) -> str:
    form = _text(configuration, option)
    if form.split(".")[0] != _PARENT:
        return form
    return parent + form[1:]


def _text(configuration: Configuration, option: ConfigOption[str]) -> str:
    value = configuration.get(option)
    assert value is not None, "scope options have defaults"
    return value


def _is_variable(part: str) -> bool:
    return len(part) >= 3 and part[0] == "<" and part[-1] == ">"


__all__ = ["ScopeFormats"]
