"""Settings of a program's execution, as methods over its configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .configuration import Configuration
from .errors import ConfigError
from .execution_mode import ExecutionMode
from .input_dependency_constraint import InputDependencyConstraint
from .options import registry as options
from .restart_strategy import RestartStrategyConfiguration, restart_strategy_of


class ExecutionConfig:
    """The settings that `StreamExecutionEnvironment.get_config()` returns: each is an option of the configuration.

    What concerns Java's serializers and closures is stored and has no effect; submitting a job warns of that.

    Args:
        configuration: of the environment; it is changed by the setters.

    >>> config = ExecutionConfig(Configuration()).set_parallelism(4).enable_object_reuse()
    >>> config.get_parallelism(), config.is_object_reuse_enabled()
    (4, True)
    """

    PARALLELISM_DEFAULT = -1
    """Given to `set_parallelism`: the default of the configuration."""
    PARALLELISM_UNKNOWN = -2
    """Given to `set_parallelism`: leave it as it is."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    # restarts

    def set_restart_strategy(self, restart_strategy_configuration: RestartStrategyConfiguration) -> ExecutionConfig:
        """Set how often and how soon a failed job restarts; of PyFlink 1.20.

        >>> from rayflink.common.restart_strategy import RestartStrategies
        >>> ExecutionConfig(Configuration()).set_restart_strategy(RestartStrategies.no_restart()).get_restart_strategy()
        <Restart deactivated.>
        """
        restart_strategy_configuration.apply(self._configuration)
        return self

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        """Return how often and how soon a failed job restarts, as the options say."""
        return restart_strategy_of(self._configuration)

    # parallelism

    def get_parallelism(self) -> int:
        """Return the number of subtasks of operators that set none themselves."""
        return self._configuration.get(options.PARALLELISM)

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        """Set the number of subtasks of operators that set none, at least 1, or one of the two marks of this class."""
        if parallelism == self.PARALLELISM_DEFAULT:
            self._configuration.remove_config(options.PARALLELISM.key)
        elif parallelism != self.PARALLELISM_UNKNOWN:
            self._configuration.set(options.PARALLELISM, parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """Return the number of key groups of operators that set none themselves; -1: chosen by parallelism."""
        return self._configuration.get(options.MAX_PARALLELISM)

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        """Set the number of key groups of operators that set none themselves, in [1, 32768]."""
        self._configuration.set(options.MAX_PARALLELISM, max_parallelism)
        return self

    # times, in milliseconds

    def set_auto_watermark_interval(self, interval: int) -> ExecutionConfig:
        """Set the milliseconds between periodic watermarks; 0 turns them off."""
        self._configuration.set(options.AUTO_WATERMARK_INTERVAL, interval)
        return self

    def get_auto_watermark_interval(self) -> int:
        """Return the milliseconds between periodic watermarks."""
        return self._configuration.get(options.AUTO_WATERMARK_INTERVAL).to_millis()

    def set_latency_tracking_interval(self, interval: int) -> ExecutionConfig:
        """Set the milliseconds between two latency markers of a source; 0 and less send none."""
        self._configuration.set(options.LATENCY_INTERVAL, max(interval, 0))
        return self

    def get_latency_tracking_interval(self) -> int:
        """Return the milliseconds between two latency markers of a source; 0: none are sent."""
        return self._configuration.get(options.LATENCY_INTERVAL).to_millis()

    def set_task_cancellation_interval(self, interval: int) -> ExecutionConfig:
        """Store an interval in milliseconds, without effect: a function that runs is not interrupted."""
        self._configuration.set(options.CANCELLATION_INTERVAL, interval)
        return self

    def get_task_cancellation_interval(self) -> int:
        """Return the milliseconds between two interrupts of a task that is being cancelled."""
        return self._configuration.get(options.CANCELLATION_INTERVAL).to_millis()

    def set_task_cancellation_timeout(self, timeout: int) -> ExecutionConfig:
        """Set the milliseconds after which the process of a task that does not cancel is ended; 0 waits for ever."""
        self._configuration.set(options.CANCELLATION_TIMEOUT, timeout)
        return self

    def get_task_cancellation_timeout(self) -> int:
        """Return the milliseconds after which the process of a task that does not cancel is ended; 0: never."""
        return self._configuration.get(options.CANCELLATION_TIMEOUT).to_millis()

    # switches

    def enable_object_reuse(self) -> ExecutionConfig:
        """Hand values between chained functions without protecting them against later changes."""
        self._configuration.set(options.OBJECT_REUSE, True)
        return self

    def disable_object_reuse(self) -> ExecutionConfig:
        """Protect values that one chained function hands another against later changes."""
        self._configuration.set(options.OBJECT_REUSE, False)
        return self

    def is_object_reuse_enabled(self) -> bool:
        """Return whether values between chained functions go unprotected."""
        return self._configuration.get(options.OBJECT_REUSE)

    def enable_auto_generated_uids(self) -> ExecutionConfig:
        """Let operators without a uid be known by their place in the graph."""
        self._configuration.set(options.AUTO_GENERATED_UIDS, True)
        return self

    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """Refuse a program with an operator that has neither a uid nor a uid hash."""
        self._configuration.set(options.AUTO_GENERATED_UIDS, False)
        return self

    def has_auto_generated_uids_enabled(self) -> bool:
        """Return whether operators may do without a uid."""
        return self._configuration.get(options.AUTO_GENERATED_UIDS)

    def enable_generic_types(self) -> ExecutionConfig:
        """Store the setting: values of any type are taken."""
        self._configuration.set(options.GENERIC_TYPES, True)
        return self

    def disable_generic_types(self) -> ExecutionConfig:
        """Store the setting, without effect: values without a declared type are pickled."""
        self._configuration.set(options.GENERIC_TYPES, False)
        return self

    def has_generic_types_disabled(self) -> bool:
        """Return whether `disable_generic_types` was called."""
        return not self._configuration.get(options.GENERIC_TYPES)

    def enable_force_kryo(self) -> ExecutionConfig:
        """Store the setting, without effect: there is no Kryo."""
        self._configuration.set(options.FORCE_KRYO, True)
        return self

    def disable_force_kryo(self) -> ExecutionConfig:
        """Store the setting: there is no Kryo."""
        self._configuration.set(options.FORCE_KRYO, False)
        return self

    def is_force_kryo_enabled(self) -> bool:
        """Return whether `enable_force_kryo` was called."""
        return self._configuration.get(options.FORCE_KRYO)

    def enable_force_avro(self) -> ExecutionConfig:
        """Store the setting, without effect: records are not written as Avro."""
        self._configuration.set(options.FORCE_AVRO, True)
        return self

    def disable_force_avro(self) -> ExecutionConfig:
        """Store the setting: records are not written as Avro."""
        self._configuration.set(options.FORCE_AVRO, False)
        return self

    def is_force_avro_enabled(self) -> bool:
        """Return whether `enable_force_avro` was called."""
        return self._configuration.get(options.FORCE_AVRO)

    def enable_closure_cleaner(self) -> ExecutionConfig:
        """Store the setting: Python's functions take along what they use and no more."""
        self._configuration.set(options.CLOSURE_CLEANER, options.ClosureCleanerLevel.RECURSIVE)
        return self

    def disable_closure_cleaner(self) -> ExecutionConfig:
        """Store the setting, without effect: Python's functions take along what they use and no more."""
        self._configuration.set(options.CLOSURE_CLEANER, options.ClosureCleanerLevel.NONE)
        return self

    def is_closure_cleaner_enabled(self) -> bool:
        """Return whether `disable_closure_cleaner` was not called."""
        return self._configuration.get(options.CLOSURE_CLEANER) is not options.ClosureCleanerLevel.NONE

    def is_use_snapshot_compression(self) -> bool:
        """Return whether snapshots of keyed state are to be compressed."""
        return self._configuration.get(options.SNAPSHOT_COMPRESSION)

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        """Store the setting, without effect: snapshots are not compressed."""
        self._configuration.set(options.SNAPSHOT_COMPRESSION, use_snapshot_compression)
        return self

    # parameters of the program

    def get_global_job_parameters(self) -> dict[str, str]:
        """Return the parameters that every function can read from its runtime context."""
        within = f"{options.GLOBAL_JOB_PARAMETERS.key}."
        one_by_one = {
            key.removeprefix(within): value
            for key, value in self._configuration.to_dict().items()
            if key.startswith(within)
        }
        together = self._configuration.get(options.GLOBAL_JOB_PARAMETERS)
        return {**together, **one_by_one} if together else one_by_one

    def set_global_job_parameters(self, global_job_parameters_dict: Mapping[str, Any]) -> ExecutionConfig:
        """Set the parameters that functions read with `RuntimeContext.get_job_parameter`; they replace earlier ones.

        Values become strings.
        """
        whole = options.GLOBAL_JOB_PARAMETERS.key
        for key in self._configuration.key_set():
            if key == whole or key.startswith(f"{whole}."):
                self._configuration.remove_config(key)
        for key, value in global_job_parameters_dict.items():
            self._configuration.set_string(f"{whole}.{key}", str(value))
        return self

    # of Flink 1.x

    def set_execution_mode(self, execution_mode: ExecutionMode) -> ExecutionConfig:
        """Set the execution mode to PIPELINED, which every streaming job is.

        Raises:
            ConfigError: another one, which Flink has for its DataSet API.
        """
        if execution_mode is not ExecutionMode.PIPELINED:
            remedy = "use env.set_runtime_mode(RuntimeExecutionMode.BATCH) for batch exchanges"
            raise ConfigError("execution mode", str(execution_mode), "ExecutionMode.PIPELINED", remedy)
        return self

    def get_execution_mode(self) -> ExecutionMode:
        """Return PIPELINED."""
        return ExecutionMode.PIPELINED

    def set_default_input_dependency_constraint(
        self, input_dependency_constraint: InputDependencyConstraint
    ) -> ExecutionConfig:
        """Set the constraint to ANY, the one that a scheduler has followed since Flink 1.13.

        Raises:
            ConfigError: ALL.
        """
        if input_dependency_constraint is not InputDependencyConstraint.ANY:
            remedy = "leave it out: a batch job starts a task when all its blocking inputs are complete"
            raise ConfigError("input dependency constraint", str(input_dependency_constraint), "ANY", remedy)
        return self

    def get_default_input_dependency_constraint(self) -> InputDependencyConstraint:
        """Return ANY."""
        return InputDependencyConstraint.ANY

    # of the JVM

    def get_default_kryo_serializer_classes(self) -> dict[str, str]:
        """Return {}: there is no Kryo."""
        return {}

    def get_registered_kryo_types(self) -> list[str]:
        """Return []: there is no Kryo."""
        return []

    def get_registered_pojo_types(self) -> list[str]:
        """Return []: there are no Java classes."""
        return []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExecutionConfig) and self._configuration == other._configuration

    def __hash__(self) -> int:
        return hash(self._configuration)


__all__ = ["ExecutionConfig"]
