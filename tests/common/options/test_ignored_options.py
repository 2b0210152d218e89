"""Options without effect are said to have none when a job is submitted."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path
from typing import Any

import pytest

from rayflink.common.config_options import ConfigOption
from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError
from rayflink.common.options import autoscaler_options, options_page
from rayflink.common.options import registry as options
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.state.storage.stored_checkpoints import NoCheckpointError
from tests.source_files import PRODUCT, imports_of, source_files


def run(**given: Any) -> list[int]:
    chosen = {key.replace("__", "-").replace("_", "."): value for key, value in given.items()}
    env = StreamExecutionEnvironment({"execution.target": "local", **chosen})
    rows: list[int] = list(env.from_collection([1]).execute_and_collect())
    return rows


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"taskmanager_jvm__exit__on__oom": True}, "'taskmanager.jvm-exit-on-oom' .*has no effect"),
        ({"state_changelog_enabled": True}, "'state.changelog.enabled' .*has no effect: .*writes no log of changes"),
        (
            {"execution_checkpointing_snapshot__compression": True},
            "'execution.checkpointing.snapshot-compression' .*has no effect: .*does not compress",
        ),
        (
            {"execution_runtime__mode": "BATCH", "execution_checkpointing_interval": "1 s"},
            "'execution.checkpointing.interval' .*has no effect: .*takes no checkpoints in batch mode",
        ),
        (
            {"execution_checkpointing_unaligned": True, "execution_checkpointing_mode": "AT_LEAST_ONCE"},
            "'execution.checkpointing.unaligned' .*has no effect: .*with EXACTLY_ONCE alone",
        ),
        ({"pipeline_force__kryo": True}, "'pipeline.force-kryo' .*has no effect: .*has no Kryo"),
        (
            {
                "pipeline_force__kryo": True,
                "pipeline_force__avro": True,
            },
            "'pipeline.force-kryo' .*has no effect: .*'pipeline.force-avro' .*has no effect",
        ),
        ({"paralellism_default": 4}, "'paralellism.default' .*is no option; did you mean 'parallelism.default'"),
    ],
)
def test_an_option_without_effect_is_warned_of(given: dict[str, Any], said: str) -> None:
    with pytest.warns(UserWarning, match=said):
        assert run(**given) == [1]


def test_options_with_effect_give_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(restart__strategy_type="none", parallelism_default=2, state_backend_type="hashmap") == [1]
        assert run(execution_attached=True, execution_checkpointing_incremental=False) == [1]
        assert run(execution_runtime__mode="BATCH", execution_checkpointing_mode="AT_LEAST_ONCE") == [1]


def test_a_snapshot_to_start_from_that_is_not_there_is_refused() -> None:
    with pytest.raises(NoCheckpointError, match="no checkpoint or savepoint at /no/such"):
        run(execution_state__recovery_path="/no/such")


FLINKS_OPTIONS = Path(__file__).parents[2] / "golden" / "flink_table_options.txt"
"""The options of Flink 2.3 that begin with `table.` or `python.`."""
OPTIONS_AS_METHODS = {
    *(f"rayflink.common.{name}" for name in ("options.registry", "options.ignored_options")),
    *(f"rayflink.common.{name}" for name in ("execution_config", "restart_strategy")),
    *(f"rayflink.datastream.{name}" for name in ("checkpoint_config", "checkpoint_storage", "fault_tolerance")),
    "rayflink.datastream.state_backend",
}
"""What names options without acting on them."""


def names_read() -> set[str]:
    """Names in `rayflink.common.options.registry` that the engine uses elsewhere."""
    names = set()
    for source in source_files(PRODUCT):
        if source.module in OPTIONS_AS_METHODS:
            continue
        text = source.text()
        if "options" not in text:
            continue
        tree = ast.parse(text)  # not kept: so many objects would slow down every look for garbage of later tests
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "options":
                names.add(node.attr)
        parts = (imported.module.rpartition(".") for imported in imports_of(tree, source.package))
        names |= {name for package, _, name in parts if package == "rayflink.common.options.registry"}
    return names


@pytest.mark.slow
def test_an_option_nobody_reads_is_marked_as_not_heeded_and_no_other() -> None:
    """A mark that became false is found as well: remove it with the reader that made it so."""
    names = [pair for module in (options, autoscaler_options) for pair in vars(module).items()]
    named = {value.key: name for name, value in names if isinstance(value, ConfigOption)}
    read = names_read()
    assert {"PARALLELISM", "AUTO_WATERMARK_INTERVAL"} <= read
    every = options.all_options()
    unread = {option.key for option in every if named.get(option.key) not in read and not option.refused}
    marked = {option.key for option in options.all_options() if option.unheeded}
    takes_one_value = {options.CREDIT_MODEL.key, *options.ONE_VALUE}
    set_by_a_method = {options.PIPELINE_JARS.key}
    assert marked == unread - takes_one_value | set_by_a_method


@pytest.mark.slow
def test_no_option_of_flinks_tables_is_unknown() -> None:
    keys = FLINKS_OPTIONS.read_text(encoding="utf-8").split()
    known = options.by_key()
    assert len(keys) > 80 and [key for key in keys if key not in known] == []


def test_an_option_that_would_change_results_has_one_value() -> None:
    for key in options.ONE_VALUE:
        with pytest.raises(ConfigError, match=f"{key}.*, which is the only value here"):
            Configuration.from_dict({key: {"table.legacy-nested-row-nullability": "true"}.get(key, "7")}).check()
    Configuration.from_dict({"table.exec.legacy-cast-behaviour": "disabled"}).check()


def test_the_page_of_options_marks_what_is_not_heeded() -> None:
    rows = [line for line in options_page.markdown().splitlines() if line.startswith("| `")]
    marked = {row.split("`")[1] for row in rows if "**Not supported yet**: this version" in row}
    assert marked == {option.key for option in options.all_options() if option.unheeded}
    assert "state.changelog.enabled" in marked
