"""What programs say of checkpoints, state backends and restarts: it becomes options."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from rayflink.common import Configuration, Duration, RestartStrategies, RestartStrategyConfiguration, Time
from rayflink.common.errors import ConfigError
from rayflink.common.options import registry as options
from rayflink.common.options.ignored_options import warn_of_unheeded
from rayflink.datastream import (
    CheckpointConfig,
    CheckpointingMode,
    CheckpointStorage,
    EmbeddedRocksDBStateBackend,
    ExternalizedCheckpointCleanup,
    ExternalizedCheckpointRetention,
    FileSystemCheckpointStorage,
    FsStateBackend,
    HashMapStateBackend,
    JobManagerCheckpointStorage,
    MemoryStateBackend,
    PredefinedOptions,
    RocksDBStateBackend,
    StateBackend,
    StreamExecutionEnvironment,
)
from rayflink.state.storage.storage import StorageNotSupported


@pytest.fixture
def env():
    return StreamExecutionEnvironment(Configuration())


def warned(env) -> str:
    """What submitting the job would warn of, without the lines of this file where the options were set."""
    with pytest.warns(UserWarning) as warnings:
        warn_of_unheeded(env.get_configuration())
    text, places = re.subn(rf" \({re.escape(__file__)}:\d+\)", "", str(warnings[0].message))
    assert places
    return text


def test_enabling_checkpoints_sets_options(env):
    assert env.get_checkpoint_interval() == -1 and not env.get_checkpoint_config().is_checkpointing_enabled()
    assert env.enable_checkpointing(3_000, CheckpointingMode.AT_LEAST_ONCE) is env
    assert env.get_checkpoint_interval() == 3_000
    assert env.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    assert env.get_checkpointing_consistency_mode() is CheckpointingMode.AT_LEAST_ONCE
    assert env.get_configuration().get(options.CHECKPOINT_INTERVAL) == Duration.of_millis(3_000)
    assert env.get_configuration().get_string("execution.checkpointing.mode") == "AT_LEAST_ONCE"
    for given in (Duration.of_seconds(2), Time.seconds(2), timedelta(seconds=2)):
        assert env.enable_checkpointing(given).get_checkpoint_interval() == 2_000
    assert env.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE, "the mode is kept where none is given"
    with pytest.raises(ConfigError, match=r"execution\.checkpointing\.interval.*above 0"):
        env.enable_checkpointing(0)


CHECKPOINT_SETTINGS = [
    ("checkpointing_mode", CheckpointingMode.EXACTLY_ONCE, CheckpointingMode.AT_LEAST_ONCE),
    ("checkpoint_interval", -1, 9), ("checkpoint_timeout", 600_000, 7), ("min_pause_between_checkpoints", 0, 5),
    ("max_concurrent_checkpoints", 1, 3), ("tolerable_checkpoint_failure_number", 0, 4),
    ("externalized_checkpoint_retention", ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS,
     ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION),
    ("aligned_checkpoint_timeout", Duration.of_millis(0), Duration.of_millis(8)),
    ("alignment_timeout", Duration.of_millis(0), Duration.of_millis(9)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "default", "value"), CHECKPOINT_SETTINGS, ids=[name for name, *_ in CHECKPOINT_SETTINGS]
)
def test_each_setting_of_checkpoints_is_an_option(env, name, default, value):
    config = env.get_checkpoint_config()
    assert getattr(config, f"get_{name}")() == default
    assert getattr(config, f"set_{name}")(value) is config
    assert getattr(env.get_checkpoint_config(), f"get_{name}")() == value


def test_checkpoint_settings_that_are_on_or_off(env):
    config = env.get_checkpoint_config()
    assert config.is_fail_on_checkpointing_errors()
    assert not config.set_fail_on_checkpointing_errors(False).is_fail_on_checkpointing_errors()
    assert config.get_tolerable_checkpoint_failure_number() == 2**31 - 1
    assert config.enable_unaligned_checkpoints().is_unaligned_checkpoints_enabled()
    assert env.is_unaligned_checkpoints_enabled()
    assert not config.disable_unaligned_checkpoints().is_unaligned_checkpoints_enabled()
    assert not config.is_force_unaligned_checkpoints()
    assert config.set_force_unaligned_checkpoints().is_force_unaligned_checkpoints()
    assert env.is_force_unaligned_checkpoints()
    assert not config.is_externalized_checkpoints_enabled()
    retained = ExternalizedCheckpointCleanup.DELETE_ON_CANCELLATION
    assert config.enable_externalized_checkpoints(retained).is_externalized_checkpoints_enabled()
    assert config.set_externalized_checkpoint_cleanup(retained).get_externalized_checkpoint_cleanup() is retained
    assert (CheckpointConfig.DEFAULT_TIMEOUT, CheckpointConfig.DEFAULT_MAX_CONCURRENT_CHECKPOINTS) == (600_000, 1)


def test_checkpoint_storages_are_options(env):
    config = env.get_checkpoint_config()
    assert config.get_checkpoint_storage() is None
    config.set_checkpoint_storage_dir("file:///checkpoints")
    stored = config.get_checkpoint_storage()
    assert isinstance(stored, FileSystemCheckpointStorage) and isinstance(stored, CheckpointStorage)
    assert stored.get_checkpoint_path() == "file:///checkpoints" and stored.get_savepoint_path() is None
    assert config.set_checkpoint_storage(JobManagerCheckpointStorage(max_state_size=77)) is config
    assert config.get_checkpoint_storage() is None
    assert env.get_configuration().get(options.MAX_INLINE_STATE).bytes == 77
    config.set_checkpoint_storage(JobManagerCheckpointStorage("file:///meta"))
    assert env.get_configuration().get(options.CHECKPOINT_DIRECTORY) == "file:///meta"
    in_memory = JobManagerCheckpointStorage()
    assert (in_memory.get_checkpoint_path(), in_memory.get_savepoint_path()) == (None, None)
    assert in_memory.get_max_state_size() == JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE == 5 << 20
    files = FileSystemCheckpointStorage("p", 100, 200)
    assert (files.get_min_file_size_threshold(), files.get_write_buffer_size()) == (100, 200)
    assert FileSystemCheckpointStorage("p").get_write_buffer_size() == 20 * 1024
    assert "path=p" in str(files) and "max state size" in str(in_memory)
    with pytest.raises(ValueError, match="needs the path of a directory, found None"):
        FileSystemCheckpointStorage()
    with pytest.raises(ValueError, match=r"is in \[0, 1048576\], found -1"):
        FileSystemCheckpointStorage("p", -1)
    with pytest.raises(TypeError, match="found 'p'; for a path use set_checkpoint_storage_dir"):
        config.set_checkpoint_storage("p")


@pytest.mark.spec("G15", "pluggable")
def test_state_backends_are_options(env):
    assert env.get_state_backend() is None
    memory = HashMapStateBackend()
    assert env.set_state_backend(memory).get_state_backend() is memory
    assert env.get_configuration().get(options.STATE_BACKEND) is options.StateBackendType.HASHMAP
    env.set_state_backend(EmbeddedRocksDBStateBackend(False))
    assert env.get_configuration().get(options.CHECKPOINT_INCREMENTAL) is False
    assert env.get_configuration().get(options.STATE_BACKEND) is options.StateBackendType.ROCKSDB
    warn_of_unheeded(env.get_configuration())
    for name, kind in (("hashmap", HashMapStateBackend), ("rocksdb", EmbeddedRocksDBStateBackend)):
        named = StreamExecutionEnvironment({"state.backend": name}).get_state_backend()
        assert type(named) is kind and isinstance(named, StateBackend) and kind.__name__ in str(named)
    with pytest.raises(TypeError, match=r"found 'rocksdb'; use HashMapStateBackend\(\) or EmbeddedRocksDB"):
        env.set_state_backend("rocksdb")


def test_a_rocksdb_backend_keeps_what_it_is_told():
    backend = EmbeddedRocksDBStateBackend()
    assert (backend.get_db_storage_paths(), backend.get_options()) == (None, None)
    assert not backend.is_incremental_checkpoints_enabled()
    assert backend.get_predefined_options() is PredefinedOptions.DEFAULT
    backend.set_db_storage_paths("/a", "/b")
    backend.set_predefined_options(PredefinedOptions.FLASH_SSD_OPTIMIZED)
    backend.set_number_of_transfer_threads(2)
    assert backend.get_db_storage_paths() == ["/a", "/b"]
    assert backend.get_predefined_options() is PredefinedOptions.FLASH_SSD_OPTIMIZED
    assert backend.get_number_of_transfer_threads() == 2
    with pytest.raises(ValueError, match="found 0"):
        backend.set_number_of_transfer_threads(0)
    with pytest.raises(ConfigError, match="no Java class.*set_predefined_options"):
        backend.set_options("org.example.Factory")


def test_addresses_of_folders_have_no_slash_at_their_end(env):
    assert FileSystemCheckpointStorage("file:///x/").get_checkpoint_path() == "file:///x"
    assert FsStateBackend("/x/").get_checkpoint_path() == "/x"
    assert JobManagerCheckpointStorage("/x//").get_checkpoint_path() == "/x"
    env.get_configuration().set(options.CHECKPOINT_DIRECTORY, "file:///x/")
    env.get_configuration().set(options.SAVEPOINT_DIRECTORY, "/x/")
    env.get_configuration().set(options.ROCKSDB_DIRS, ["file:///db/", "/other"])
    env.get_configuration().set(options.TMP_DIRS, ["file:///tmp/"])
    env.from_collection([1]).print()
    found = env.get_job_graph().configuration
    wanted = (options.CHECKPOINT_DIRECTORY, options.SAVEPOINT_DIRECTORY, options.ROCKSDB_DIRS, options.TMP_DIRS)
    assert [found[option.key] for option in wanted] == ["file:///x", "/x", "/db;/other", "/tmp"]


def test_folders_and_settings_for_a_kind_of_disk_are_options(env):
    backend = EmbeddedRocksDBStateBackend()
    backend.set_db_storage_paths("file:///a/", "/b")
    assert backend.get_db_storage_paths() == ["/a", "/b"]
    with pytest.raises(StorageNotSupported, match="s3://bucket/db"):
        backend.set_db_storage_paths("s3://bucket/db")
    backend.set_predefined_options(PredefinedOptions.SPINNING_DISK_OPTIMIZED_HIGH_MEM)
    env.set_state_backend(backend)
    configuration = env.get_configuration()
    assert configuration.get(options.ROCKSDB_DIRS) == ["/a", "/b"]
    assert configuration.get(options.ROCKSDB_THREADS) == 4
    assert configuration.get(options.ROCKSDB_BLOCK_SIZE).bytes == 128 << 10


def test_the_backends_of_pyflink_1_20_say_where_checkpoints_go_too(env):
    files = FsStateBackend("file:///c", "file:///s", 10, 5)
    assert (files.get_checkpoint_path(), files.get_min_file_size_threshold()) == ("file:///c", 10)
    assert files.get_write_buffer_size() == 10 and files.is_using_asynchronous_snapshots()
    rocks = RocksDBStateBackend("file:///r", True)
    assert isinstance(rocks.get_checkpoint_backend(), FsStateBackend) and rocks.is_incremental_checkpoints_enabled()
    rocks.set_number_of_transfering_threads(3)
    assert rocks.get_number_of_transfering_threads() == 3
    configuration = env.get_configuration()
    env.set_state_backend(files)
    assert configuration.get(options.STATE_BACKEND) is options.StateBackendType.HASHMAP
    assert configuration.get(options.CHECKPOINT_DIRECTORY) == "file:///c"
    assert env.get_default_savepoint_directory() == "file:///s"
    env.set_state_backend(rocks)
    assert configuration.get(options.STATE_BACKEND) is options.StateBackendType.ROCKSDB
    assert configuration.get(options.CHECKPOINT_DIRECTORY) == "file:///r"
    small = MemoryStateBackend(max_state_size=9)
    assert small.get_max_state_size() == 9 and small.is_using_asynchronous_snapshots()
    env.set_state_backend(small)
    assert configuration.get(options.MAX_INLINE_STATE).bytes == 9 and "size=9" in str(small)
    env.set_state_backend(RocksDBStateBackend(checkpoint_stream_backend=MemoryStateBackend("file:///m")))
    assert configuration.get(options.CHECKPOINT_DIRECTORY) == "file:///m"
    for wrong in (FsStateBackend, RocksDBStateBackend):
        with pytest.raises(ValueError, match="found"):
            wrong()


def test_savepoints_and_the_log_of_changes_are_options(env):
    assert env.get_default_savepoint_directory() is None
    assert env.set_default_savepoint_directory("file:///s").get_default_savepoint_directory() == "file:///s"
    assert env.is_changelog_state_backend_enabled() is None
    assert env.enable_changelog_state_backend(False).is_changelog_state_backend_enabled() is False
    assert env.enable_changelog_state_backend(True).is_changelog_state_backend_enabled() is True
    assert "'state.changelog.enabled' has no effect: this version writes no log of changes" in warned(env)


def test_restart_strategies_are_options_and_come_back_from_them(env):
    assert env.get_restart_strategy() == RestartStrategies.fall_back_restart()
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 500))
    fixed = env.get_restart_strategy()
    assert isinstance(fixed, RestartStrategies.FixedDelayRestartStrategyConfiguration)
    assert isinstance(fixed, RestartStrategyConfiguration)
    assert fixed.get_restart_attempts() == 3
    assert fixed.get_delay_between_attempts_interval() == timedelta(milliseconds=500)
    env.set_restart_strategy(RestartStrategies.failure_rate_restart(2, timedelta(seconds=60), Time.seconds(1)))
    rated = env.get_restart_strategy()
    assert rated == RestartStrategies.failure_rate_restart(2, 60_000, 1_000) != fixed
    assert (rated.get_max_failure_rate(), rated.get_failure_interval()) == (2, timedelta(seconds=60))
    assert rated.get_delay_between_attempts_interval() == timedelta(seconds=1)
    assert env.get_configuration().get(options.RESTART_STRATEGY) is options.RestartStrategyType.FAILURE_RATE
    assert hash(rated) == hash(RestartStrategies.failure_rate_restart(2, 60_000, 1_000))
    assert "2 failures within interval 60000 ms" in rated.get_description()
    env.set_restart_strategy(RestartStrategies.fall_back_restart())
    assert env.get_restart_strategy() == rated, "the fallback leaves the options as they are"
    env.set_restart_strategy(RestartStrategies.no_restart())
    assert env.get_restart_strategy().get_description() == "Restart deactivated."
    assert "Cluster" in RestartStrategies.fall_back_restart().get_description()
    with pytest.raises(TypeError, match="delay_between_attempts_interval: a length of time must be"):
        RestartStrategies.fixed_delay_restart(1, "soon")
    with pytest.raises(TypeError, match=r"found 3; use RestartStrategies\.no_restart"):
        env.set_restart_strategy(3)


@pytest.mark.filterwarnings("error")
def test_a_program_with_checkpoints_takes_the_last_one_at_its_end_without_waiting():
    env = StreamExecutionEnvironment({"execution.target": "local"})
    env.enable_checkpointing(3_600_000)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 10))
    assert list(env.from_collection([1, 2]).map(lambda n: n + 1).execute_and_collect()) == [2, 3]


def test_places_are_paths_from_the_root_in_every_process_of_the_job(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = {
        "state.checkpoints.dir": "checkpoints",
        "execution.checkpointing.savepoint-dir": "/savepoints",
        "high-availability.storageDir": "s3://bucket/jobs",
        "execution.state-recovery.path": "../savepoint-1",
    }
    env = StreamExecutionEnvironment(given)
    env.from_collection([1]).print()
    found = env.get_job_graph().configuration
    assert found["execution.checkpointing.dir"] == f"{tmp_path}/checkpoints"
    assert found["execution.checkpointing.savepoint-dir"] == "/savepoints"
    assert found["high-availability.storageDir"] == "s3://bucket/jobs"
    assert found["execution.state-recovery.path"] == f"{tmp_path.parent}/savepoint-1"


def test_a_savepoint_is_in_the_folder_that_its_path_means_where_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    env = StreamExecutionEnvironment({"execution.target": "local"})
    env.from_sequence(1, 1_000_000_000).map(str).add_sink(lambda text: None)
    client = env.execute_async()
    while {subtask["state"] for one in client.status()["vertices"] for subtask in one["subtasks"]} != {"RUNNING"}:
        client.get_job_status()  # lets it go on for a moment
    future = client.stop_with_savepoint(False, "savepoints")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert future.result().startswith(f"{tmp_path}/savepoints/savepoint-")
