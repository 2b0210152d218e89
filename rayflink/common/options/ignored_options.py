"""Options that this version reads and does not act on, and keys that no option bears: never silent.

Which options those are, and what this version does instead, stands with each option (`ConfigOption.unheeded`).
"""

from __future__ import annotations

from typing import Any

from ..config_options import ConfigOption
from ..configuration import Configuration
from ..user_code.call_sites import warn_user
from . import registry as options
from .option_types import MAP

_DONE_ANYWAY: dict[str, tuple[Any, ...]] = {
    options.CHAIN_DIFFERENT_MAX_PARALLELISM.key: (True,),
    options.CHECKPOINT_INCREMENTAL.key: (True, False),
    options.CHANGELOG_STATE_BACKEND.key: (False,),
    options.HISTORY_CLEAN.key: (True,),
    options.HISTORY_SSL.key: (True,),
    options.GENERIC_TYPES.key: (True,),
    options.FORCE_KRYO.key: (False,),
    options.FORCE_AVRO.key: (False,),
    options.CLOSURE_CLEANER.key: tuple(options.ClosureCleanerLevel),
    options.SNAPSHOT_COMPRESSION.key: (False,),
    options.STATE_BACKEND.key: (options.StateBackendType.HASHMAP,),
}
"""Values of such options that ask for what this version does."""


def warn_of_unheeded(configuration: Configuration) -> None:
    """Warn once of everything set that has no effect."""
    said = [
        f"{', '.join(keys)} {'has' if len(keys) == 1 else 'have'} no effect: this version {what}"
        for what, keys in _without_effect(configuration).items()
    ]
    for key, near in configuration.unknown_options().items():
        meant = f"; did you mean {near[0]!r}?" if near else ""
        said.append(f"{_named(configuration, key)} is no option{meant}")
    if said:
        warn_user("configuration: " + "; ".join(said))


def _named(configuration: Configuration, key: str) -> str:
    origin = configuration.origin(key)
    return f"{key!r} ({origin})" if origin else repr(key)


def _key_set(configuration: Configuration, option: ConfigOption[Any]) -> str:
    """Return the key by which the option is set, "" where it is not."""
    keys = (option.key, *option.fallback_keys)
    present_keys = configuration.key_set()
    entries = sorted(key for key in present_keys if option.type is MAP and key.startswith(f"{option.key}."))
    return next((key for key in (*keys, *entries) if key in present_keys), "")


def _without_effect(configuration: Configuration) -> dict[str, list[str]]:
    """Map what this version does instead to the keys that it makes idle."""
    keys_by_replacement: dict[str, list[str]] = {}
    for option in options.all_options():
        key = _key_set(configuration, option) if option.unheeded else ""
        done_anyway = (*_DONE_ANYWAY.get(option.key, ()), options.WITHOUT_EFFECT.get(option.key))
        if key and configuration.get(option) not in done_anyway:
            keys_by_replacement.setdefault(option.unheeded, []).append(_named(configuration, key))
    for option, is_idle, what in _idle_beside_others(configuration):
        key = _key_set(configuration, option) if is_idle else ""
        if key:
            keys_by_replacement.setdefault(what, []).append(_named(configuration, key))
    return keys_by_replacement


def _idle_beside_others(configuration: Configuration) -> tuple[tuple[ConfigOption[Any], bool, str], ...]:
    """Return the options that other options make idle: whether they do now, and what this version does instead."""
    get = configuration.get
    in_process = get(options.EXIT_ON_OUT_OF_MEMORY) and get(options.TARGET) is options.Target.LOCAL
    in_batches = get(options.RUNTIME_MODE).name == "BATCH"
    counts_twice = (
        get(options.CHECKPOINT_UNALIGNED) and get(options.CHECKPOINT_MODE) is options.CheckpointingMode.AT_LEAST_ONCE
    )
    return (
        (
            options.EXIT_ON_OUT_OF_MEMORY,
            in_process,
            "fails the task alone on MemoryError where execution.target is local",
        ),
        (options.CHECKPOINT_INTERVAL, in_batches, "takes no checkpoints in batch mode"),
        (options.CHECKPOINT_UNALIGNED, counts_twice, "lets barriers overtake records with EXACTLY_ONCE alone"),
    )
