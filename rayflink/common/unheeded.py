"""Options that this version reads and does not act on, and keys that no option bears: never silent."""

from __future__ import annotations

import warnings
from typing import Any

from . import options
from .config_options import ConfigOption
from .configuration import Configuration
from .errors import ConfigError

_NEVER_RESTART = ("NONE", "OFF", "DISABLE")


def warn_of_unheeded(configuration: Configuration) -> None:
    """Warn once of everything set that has no effect.

    Raises:
        ConfigError: a snapshot to start from is set; to start from nothing instead would be wrong.
    """
    path = configuration.get(options.RESTORE_PATH)
    if path is not None:
        remedy = "this version cannot start from a snapshot; leave the option out to start without state"
        raise ConfigError(options.RESTORE_PATH.key, repr(path), "no value", remedy)
    said = [f"{key!r} has no effect: this version {what}" for key, what in _without_effect(configuration)]
    for key, near in configuration.unknown_options().items():
        said.append(f"{key!r} is no option{f'; did you mean {near[0]!r}?' if near else ''}")
    if said:
        warnings.warn("configuration: " + "; ".join(said), UserWarning, stacklevel=2)


def _is_set(configuration: Configuration, option: ConfigOption[Any]) -> bool:
    return any(map(configuration.contains_key, (option.key, *option.fallback_keys)))


def _without_effect(configuration: Configuration) -> list[tuple[str, str]]:
    found = []
    if configuration.get(options.CHECKPOINT_INTERVAL) is not None:
        found.append((options.CHECKPOINT_INTERVAL.key, "takes no checkpoints"))
    restart = configuration.get(options.RESTART_STRATEGY)
    if restart is not None and restart.name not in _NEVER_RESTART:
        found.append((options.RESTART_STRATEGY.key, "never restarts a job"))
    if configuration.get(options.EXIT_ON_OUT_OF_MEMORY) and configuration.get(options.TARGET) is options.Target.LOCAL:
        what = "fails the task alone on MemoryError where execution.target is local"
        found.append((options.EXIT_ON_OUT_OF_MEMORY.key, what))
    if _is_set(configuration, options.STATE_BACKEND) and configuration.get(options.STATE_BACKEND).name != "HASHMAP":
        found.append((options.STATE_BACKEND.key, "keeps keyed state in memory"))
    if _is_set(configuration, options.MANAGED_FRACTION):
        found.append((options.MANAGED_FRACTION.key, "has no state backend that would use managed memory"))
    return found
