"""The settings of checkpoints, state, restarts and slots of an environment: most methods read or set options."""

from __future__ import annotations

from typing import TypeVar

from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options
from rayflink.common.options.registry import CheckpointingMode
from rayflink.common.restart_strategy import RestartStrategyConfiguration, restart_strategy_of
from rayflink.common.time import Length
from rayflink.graph.attributes import ResourceSpec
from rayflink.graph.errors import PlanError
from rayflink.graph.transformations import call_site

from .checkpoint_config import CheckpointConfig
from .slot_sharing_group import SlotSharingGroup
from .state_backend import StateBackend, state_backend_of

E = TypeVar("E", bound="FaultTolerance")


class FaultTolerance:
    """The part of `StreamExecutionEnvironment` about checkpoints, state backends, restarts and slots."""

    _configuration: Configuration
    _slot_resources: dict[str, ResourceSpec]
    _state_backend: StateBackend | None = None

    def register_slot_sharing_group(self: E, slot_sharing_group: SlotSharingGroup) -> E:
        """Say what a slot of a slot sharing group has; operators name the group by `slot_sharing_group(name)`.

        Raises:
            TypeError: it is no `SlotSharingGroup`.
            PlanError: a group of this name has other resources.
        """
        group = slot_sharing_group
        if not isinstance(group, SlotSharingGroup):
            raise TypeError(f"a SlotSharingGroup is wanted, found {group!r:.100}; use SlotSharingGroup.builder(name)")
        asked, name = group.resources, group.get_name()
        if asked is not None:
            known = self._slot_resources.setdefault(name, asked)
            if known != asked:
                problem = f"slot sharing group {name!r} has {known} already, found {asked}"
                raise PlanError(problem, "give each group its resources once", call_site())
        return self

    def enable_checkpointing(self: E, interval: Length, mode: CheckpointingMode | None = None) -> E:
        """Take a checkpoint at this interval: milliseconds or a duration, above 0.

        Args:
            mode: what a restore guarantees about state; None for what the options say, by default exactly once.
        """
        config = self.get_checkpoint_config().set_checkpoint_interval(interval)
        if mode is not None:
            config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_config(self) -> CheckpointConfig:
        """Return the settings of checkpoints, which may be changed."""
        return CheckpointConfig(self._configuration)

    def get_checkpoint_interval(self) -> int:
        """Return the milliseconds between two checkpoints; -1 for none."""
        return self.get_checkpoint_config().get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Return the guarantee that a restore gives about state."""
        return self.get_checkpoint_config().get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """Return the guarantee that a restore gives about state."""
        return self.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Return whether barriers overtake data."""
        return self.get_checkpoint_config().is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """Return whether barriers overtake data in iterations too."""
        return self.get_checkpoint_config().is_force_unaligned_checkpoints()

    def set_state_backend(self: E, state_backend: StateBackend) -> E:
        """Set the backend that stores keyed state between records.

        Raises:
            TypeError: it is no state backend.
        """
        if not isinstance(state_backend, StateBackend):
            remedy = "use HashMapStateBackend() or EmbeddedRocksDBStateBackend()"
            raise TypeError(f"a StateBackend is wanted, found {state_backend!r:.100}; {remedy}")
        state_backend.apply(self._configuration)
        self._state_backend = state_backend
        return self

    def get_state_backend(self) -> StateBackend | None:
        """Return the backend that was set, or the one that the options name; None where there is none."""
        return self._state_backend or state_backend_of(self._configuration)

    def enable_changelog_state_backend(self: E, enabled: bool) -> E:
        """Write each change of state to a log, so that checkpoints are short, or not."""
        self._configuration.set(options.CHANGELOG_STATE_BACKEND, enabled)
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """Return whether the changelog was turned on or off; None where nothing was set."""
        option = options.CHANGELOG_STATE_BACKEND
        return self._configuration.get(option) if self._configuration.contains_key(option.key) else None

    def set_default_savepoint_directory(self: E, directory: str) -> E:
        """Set the directory of savepoints that name none."""
        self._configuration.set(options.SAVEPOINT_DIRECTORY, directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """Return the directory of savepoints that name none, or None."""
        return self._configuration.get(options.SAVEPOINT_DIRECTORY)

    def set_restart_strategy(self, restart_strategy_configuration: RestartStrategyConfiguration) -> None:
        """Set how often and how soon a failed job restarts; of PyFlink 1.20.

        Raises:
            TypeError: it is no restart strategy.
        """
        strategy = restart_strategy_configuration
        if not isinstance(strategy, RestartStrategyConfiguration):
            raise TypeError(
                f"a restart strategy is wanted, found {strategy!r:.100}; use RestartStrategies.no_restart()"
            )
        strategy.apply(self._configuration)

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        """Return how often and how soon a failed job restarts, as the options say."""
        return restart_strategy_of(self._configuration)


__all__ = ["FaultTolerance"]
