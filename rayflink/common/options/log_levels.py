"""Levels from which on the lines of a job's loggers are stored."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..configuration import Configuration
from ..errors import ConfigError
from . import registry as options
from .option_values import LOG_LEVELS

DEFAULT = "INFO"


@dataclass(frozen=True, slots=True)
class LogLevels:
    """The levels of all loggers of a process that runs tasks.

    Args:
        level: of all that have none of their own: DEBUG, INFO, WARNING, ERROR or CRITICAL.
        loggers: name -> level; a name stands for those below it too, as `logging` has it.
    """

    level: str = DEFAULT
    loggers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> LogLevels:
        """Set levels as `rayflink.log.level` and `rayflink.log.loggers` of a job say.

        Raises:
            ConfigError: one is no level.

        >>> LogLevels.of({"rayflink.log.loggers": "my_job:DEBUG,urllib3:error"})
        LogLevels(level='INFO', loggers=(('my_job', 'DEBUG'), ('urllib3', 'ERROR')))
        """
        get = Configuration.from_dict(config).get
        loggers = {name: level.upper() for name, level in (get(options.LOGGER_LEVELS) or {}).items()}
        for name, level in loggers.items():
            if level not in LOG_LEVELS:
                key = f"{options.LOGGER_LEVELS.key}.{name}"
                raise ConfigError(key, level, f"one of {', '.join(LOG_LEVELS)}", "give a level of Python's logging")
        return cls((get(options.LOG_LEVEL) or DEFAULT).upper(), tuple(loggers.items()))

    def apply(self) -> None:
        """Set the levels in this process."""
        for logger in (logging.getLogger(), logging.getLogger("rayflink")):
            logger.setLevel(self.level)
        for name, level in self.loggers:
            logging.getLogger(name).setLevel(level)


__all__ = ["DEFAULT", "LogLevels"]
