"""The registry: Flink's names and defaults, and a documentation page that says the same."""

import pytest

from rayflink.actors.messages.checkpoint_settings import CheckpointSettings
from rayflink.actors.messages.settings import JobSettings, TaskSettings
from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError
from rayflink.common.options import options_page
from rayflink.common.options import registry as options
from rayflink.datastream import StreamExecutionEnvironment


def default(key: str) -> str:
    option = options.by_key()[key]
    assert option.key == key
    return option.default_text()


@pytest.mark.spec("V01", "key")
def test_flinks_key_sets_the_size_of_a_network_buffer_whose_default_is_larger():
    assert default("rayflink.batch.max-bytes") == "1 mb"
    for given, size in (("32 kb", 32 * 1024), ("64 kb", 64 * 1024)):
        assert TaskSettings.of({"taskmanager.memory.segment-size": given}).max_bytes == size


def test_a_node_has_2048_network_buffers():
    assert default("taskmanager.network.numberOfBuffers") == "2048"


def test_a_channel_has_two_buffers_and_a_gate_eight_more():
    assert default("taskmanager.network.memory.buffers-per-channel") == "2"
    assert default("taskmanager.network.memory.floating-buffers-per-gate") == "8"
    assert default("taskmanager.network.memory.max-buffers-per-channel") == "10"


@pytest.mark.spec("V06", "on", "O30", "on")
def test_credit_flow_control_is_on_and_cannot_be_turned_off():
    assert default("taskmanager.network.credit-model") == "true"
    with pytest.raises(ConfigError, match="no other flow control"):
        Configuration().set_string("taskmanager.network.credit-model", "false").check()


@pytest.mark.spec("V07")
def test_the_buffer_timeout_takes_minus_one_zero_and_more():
    assert default("execution.buffer-timeout.interval") == "100 ms"
    env = StreamExecutionEnvironment()
    env.from_collection([1]).rebalance().print()
    assert {edge.buffer_timeout_ms for edge in env.get_job_graph().edges} == {100}, "flushed every 100 ms"
    for raw, millis in (("-1", -1), ("0 ms", 0), ("5 ms", 5)):
        assert options.BUFFER_TIMEOUT.read(raw).to_millis() == millis


def test_one_state_kept_by_the_coordinator_has_at_most_5_mb():
    assert options.MAX_INLINE_STATE.default_text() == "5 mb"


@pytest.mark.spec("V14", "V15")
def test_one_checkpoint_is_retained_and_cancellation_may_keep_or_delete_it():
    assert default("execution.checkpointing.num-retained") == "1"
    assert CheckpointSettings.of({}).retained == 1
    members = {member.value for member in options.ExternalizedCheckpointRetention}
    assert members >= {"RETAIN_ON_CANCELLATION", "DELETE_ON_CANCELLATION"}
    config = Configuration().set_string(
        "execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION"
    )
    found = config.get(options.CHECKPOINT_RETENTION)
    assert found is options.ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION


@pytest.mark.spec("V16", "names")
@pytest.mark.parametrize("value", ["none", "off", "disable", "fixed-delay", "failure-rate", "exponential-delay"])
def test_restart_strategies_bear_flinks_names(value):
    assert Configuration().set_string("restart-strategy.type", value).get(options.RESTART_STRATEGY).value == value


@pytest.mark.parametrize("value", ["fixeddelay", "failurerate", "exponentialdelay", "FIXED_DELAY"])
def test_hyphens_in_the_names_of_restart_strategies_do_not_count(value):
    found = Configuration().set_string("restart-strategy.type", value).get(options.RESTART_STRATEGY)
    assert found.value.replace("-", "") == value.lower().replace("_", "")


def test_cancellation_interrupts_every_30_s_and_gives_up_after_180_s():
    assert default("task.cancellation.interval") == "30 s"
    assert default("task.cancellation.timeout") == "3 min"


def test_detailed_network_metrics_are_off_unless_configured():
    assert default("taskmanager.network.detailed-metrics") == "false"


@pytest.mark.spec("V25", "ask", "heartbeat")
def test_heartbeats_and_requests_have_timeouts_that_answer_to_the_older_names():
    assert (default("heartbeat.interval"), default("heartbeat.timeout")) == ("10 s", "50 s")
    assert Configuration().get(options.ASK_TIMEOUT).to_millis() == 10_000
    debug = {"akka.ask.timeout": "100000 s", "heartbeat.interval": 10_000_000, "heartbeat.timeout": 50_000_000}
    assert Configuration.from_dict(debug).get(options.ASK_TIMEOUT).to_millis() == 100_000_000
    found = JobSettings.of(debug)
    assert (found.ask_timeout_ms, found.heartbeat_interval_ms) == (100_000_000, 10_000_000)
    assert found.heartbeat_timeout_ms == 50_000_000


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("parallelism.default", "1"),
        ("pipeline.max-parallelism", "-1"),
        ("pipeline.object-reuse", "false"),
        ("pipeline.operator-chaining.enabled", "true"),
        ("pipeline.auto-watermark-interval", "200 ms"),
        ("execution.runtime-mode", "STREAMING"),
        ("execution.checkpointing.mode", "EXACTLY_ONCE"),
        ("execution.checkpointing.timeout", "10 min"),
        ("execution.checkpointing.max-concurrent-checkpoints", "1"),
        ("execution.checkpointing.tolerable-failed-checkpoints", "0"),
        ("restart-strategy.fixed-delay.attempts", "1"),
        ("restart-strategy.exponential-delay.backoff-multiplier", "1.5"),
        ("slot.request.timeout", "5 min"),
        ("metrics.latency.interval", "0 ms"),
        ("rayflink.batch.max-rows", "1048576"),
        ("taskmanager.network.memory.buffer-debloat.enabled", "true"),
        ("taskmanager.network.memory.buffer-debloat.target", "1 s"),
        ("taskmanager.network.memory.buffer-debloat.period", "200 ms"),
        ("taskmanager.network.memory.buffer-debloat.threshold-percentages", "25"),
        ("rayflink.task.time-slice", "10 ms"),
        ("rayflink.exchange.max-in-flight-calls", "2"),
        ("rayflink.exchange.missing-message-timeout", "30 s"),
        ("rayflink.partitioner.key-cache-size", "65536"),
    ],
)
def test_defaults_are_flinks_or_the_designs(key, text):
    assert default(key) == text


def test_every_default_is_a_value_its_own_option_takes():
    for option in options.all_options():
        assert option.help.endswith("."), option.key
        if option.default is not None:
            assert option.read(option.default) == option.read(option.default_text()) == option.default, option.key


def test_no_key_is_registered_twice():
    keys = [key for option in options.all_options() for key in (option.key, *option.fallback_keys)]
    assert len(keys) == len(set(keys))


def test_the_documentation_page_is_what_the_registry_prints(repository):
    assert (repository / "docs" / "configuration.md").read_text(encoding="utf-8") == options_page.markdown()
