"""Configuration: typed access, text in and out, command line, file, unknown keys."""

import copy
import inspect
import pickle
import re
import threading
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.config_options import ConfigOption, ConfigOptions
from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError
from rayflink.common.options import registry as options
from rayflink.common.options.option_types import DURATION, LIST, MAP, MEMORY, MemorySize
from rayflink.common.time import Duration


def test_values_are_set_and_read_as_in_pyflink():
    config = Configuration().set_string("s", "x").set_integer("i", 5).set_boolean("b", True).set_float("f", 0.5)
    config.set_bytearray("y", bytearray(b"ab"))
    assert config.get_string("s", "") == "x" and config.get_string("none", "d") == "d"
    assert (config.get_integer("i", 0), config.get_boolean("b", False), config.get_float("f", 0)) == (5, True, 0.5)
    assert config.get_bytearray("y", bytearray()) == bytearray(b"ab")
    assert (config.get_integer("none", 1), config.get_boolean("none", True)) == (1, True)
    assert config.get_float("none", 2) == 2.0
    assert config.key_set() == {"s", "i", "b", "f", "y"} and config.contains_key("s")
    assert config.get_string("i", "") == "5" and config.get_string("b", "") == "true"
    assert config.remove_config("s") and not config.remove_config("s") and not config.contains_key("s")


def test_configurations_merge_copy_compare_and_pickle():
    config = Configuration.from_dict({"a": "1"})
    merged = Configuration(config).add_all(config, "p.")
    assert merged.to_dict() == {"a": "1", "p.a": "1"} and config.to_dict() == {"a": "1"}
    target = {"z": "0"}
    merged.set_integer("n", 2).set_float("f", 1.5).set_boolean("b", True).set_bytearray("y", bytearray([1]))
    merged.add_all_to_dict(target)
    assert target == {"z": "0", "a": "1", "p.a": "1", "n": 2, "f": 1.5, "b": True, "y": bytearray([1])}
    for twin in (copy.deepcopy(config), pickle.loads(pickle.dumps(config))):
        assert twin == config and hash(twin) == hash(config) and str(twin) == str(config)
    assert Configuration().set_integer("a", 1) == config != Configuration()


def test_a_configuration_is_written_as_flink_writes_it_without_its_secrets():
    config = Configuration().set_string("k1", "v1").set_integer("k2", 1).set_string("s3.secret-key", "abc")
    assert str(config) == "{k1=v1, k2=1, s3.secret-key=******}"
    assert repr(config) == f"Configuration({config})" and str(Configuration()) == "{}"


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("- /a\n- /b\n", ["/a", "/b"]),
        ("- 'a;b'\n-   \"c, d\"\n-\n", ["a;b", "c, d"]),
        ("[/a,\n  /b]", ["/a", "/b"]),
        ("['a, b', 1377]", ["a, b", "1377"]),
        ("[a: b, c]", ["a: b", "c"]),
        ("- x", ["x"]),
        ("/a;/b", ["/a", "/b"]),
        ("", []),
    ],
)
def test_a_list_is_read_from_one_line_or_several(text, items):
    assert Configuration.parse_list_value(text) == items
    assert Configuration().set_string("io.tmp.dirs", text or " ").get(options.TMP_DIRS) == items


def test_a_list_in_a_block_of_a_file_is_read(tmp_path):
    path = tmp_path / "config.yaml"
    for text in ("- /a\n- /b\n", "\n  - /a\n  - /b\n", " [/a,\n  /b]\n", " |\n  - /a\n  - /b\n"):
        path.write_text("io.tmp.dirs:" + ("\n" if text[0] == "-" else "") + text)
        assert Configuration.from_file(path).get(options.TMP_DIRS) == ["/a", "/b"]


def test_a_value_that_does_not_parse_names_key_found_wanted_and_example():
    config = Configuration().set_string("taskmanager.memory.segment-size", "lots")
    with pytest.raises(ConfigError) as caught:
        config.get(options.BATCH_MAX_BYTES)
    assert str(caught.value) == (
        f"option 'taskmanager.memory.segment-size' ({__file__}:80): found 'lots', wanted memory size; "
        "write for example rayflink.batch.max-bytes: 32 kb or 1 mb"
    )
    with pytest.raises(ConfigError, match="found 'lots'"):
        config.check()


def test_a_value_out_of_range_says_the_range():
    with pytest.raises(ConfigError, match="found 0, wanted a number above 0"):
        Configuration().set(options.PARALLELISM, 0)
    with pytest.raises(ConfigError, match="wanted -1 or a number in"):
        Configuration().set(options.MAX_PARALLELISM, 32769)


def test_jars_are_refused_with_the_reason():
    with pytest.raises(ConfigError, match="no JVM for others"):
        Configuration().set_string("pipeline.jars", "file:///a.jar").check()


def test_a_fallback_key_counts_only_where_the_key_is_absent():
    config = Configuration().set_string("state.checkpoints.dir", "/old")
    assert config.get(options.CHECKPOINT_DIRECTORY) == "/old"
    assert config.set_string("execution.checkpointing.dir", "/new").get(options.CHECKPOINT_DIRECTORY) == "/new"


def test_an_error_under_a_fallback_key_names_that_key():
    with pytest.raises(ConfigError, match="option 'restart-strategy'"):
        Configuration().set_string("restart-strategy", "never").get(options.RESTART_STRATEGY)


def test_unknown_keys_are_accepted_and_reported_with_near_matches():
    config = Configuration().set_string("paralelism.default", "4").set_string("my.own", "x")
    config.set_string("pipeline.global-job-parameters.x", "1").set_string("state.savepoints.dir", "/s")
    assert config.unknown_options() == {"paralelism.default": ["parallelism.default"], "my.own": []}


def test_d_arguments_are_taken_out_of_a_command_line():
    config, rest = Configuration.from_args(["job.py", "-D", "a.b=1", "-Dc=x=y", "--input", "f", "--", "-Dz=1"])
    assert config.to_dict() == {"a.b": "1", "c": "x=y"} and rest == ["job.py", "--input", "f", "--", "-Dz=1"]
    for wrong in (["-D"], ["-Dkey"], ["-D", "=1"]):
        with pytest.raises(ConfigError, match="wanted key=value"):
            Configuration.from_args(wrong)


def test_a_flat_file_is_read(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(
        '# top\nparallelism.default: 4  # four\n\nexecution.checkpointing.dir: "s3://b/c #1"\nu: http://h:1/p#x\n'
    )
    assert Configuration.from_file(path).to_dict() == {
        "parallelism.default": "4",
        "execution.checkpointing.dir": "s3://b/c #1",
        "u": "http://h:1/p#x",
    }


def test_a_nested_file_is_read_as_flinks_config_yaml(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(
        "# nested and dotted keys together\n"
        "execution:\n"
        "  checkpointing:\n"
        "    interval: 10 s\n"
        "    mode: EXACTLY_ONCE\n"
        "  buffer-timeout.interval: 5 ms  # five\n"
        "io.tmp:\n"
        "  dirs: [/a, /b]\n"
        "pipeline:\n"
        "  global-job-parameters: {city: 'Ulm', since: 1377}\n"
        "  cached-files:\n"
        "    - {name: n1, path: p1}\n"
        "    - name: n2\n"
        "      path: p2\n"
    )
    config = Configuration.from_file(path)
    assert config.to_dict() == {
        "execution.checkpointing.interval": "10 s",
        "execution.checkpointing.mode": "EXACTLY_ONCE",
        "execution.buffer-timeout.interval": "5 ms",
        "io.tmp.dirs": "/a;/b",
        "pipeline.global-job-parameters": "city:Ulm,since:1377",
        "pipeline.cached-files": "name:n1,path:p1;name:n2,path:p2",
    }
    assert config.get(options.GLOBAL_JOB_PARAMETERS) == {"city": "Ulm", "since": "1377"}
    assert config.origin("execution.checkpointing.mode") == f"{path}:5"
    path.write_text("")
    assert Configuration.from_file(path).to_dict() == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\na: 2\n", "line 2: 'a' a second time, after line 1"),
        ("a:\n  b: 1\na.b: 2\n", "line 3: 'a.b' a second time, after line 2"),
        ("novalue\n", "line 1: 'novalue'"),
        ("a:1\n", "line 1: 'a:1'"),
        ("- a\n", "line 1: a list"),
        ("x: 1\na:\n", "line 2: 'a' without a value"),
        ("a: ~\n", "line 1: 'a' without a value"),
        ("a: {}\n", "line 1: 'a' without a value"),
        ("a:\n  [1, [2]]\n", "line 2: 'a' with a list in a list"),
        ("pipeline.global-job-parameters:\n  x: [1]\n", "line 2: .* with a list in it"),
        ("? [a]\n: 1\n", "line 1: a key that is not a string"),
        ("a: 1\n  b: 2\n", "line 2: mapping values are not allowed here"),
        ("a: [1\n", "line 2: expected ',' or ']'"),
        ("a: 1\n---\nb: 2\n", "line 2: but found another document"),
        ("a: \x01\n", "special characters are not allowed"),
    ],
)
def test_a_file_that_holds_no_options_is_refused_with_the_line(tmp_path, text, said):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=rf"config.yaml.*: found .*{said}.*wanted `key: value`"):
        Configuration.from_file(path)


@pytest.mark.parametrize(
    ("raw", "millis"),
    [
        ("10 ms", 10), ("10ms", 10), ("1 min", 60_000), ("2 h", 7_200_000), ("3 days", 259_200_000), ("5", 5),
        ("PT10S", 10_000), ("pt1.5s", 1500), ("P1DT1M", 86_460_000), ("-PT1S", -1000), ("PT-0.001S", -1), ("-1", -1),
        (7, 7), (timedelta(seconds=1), 1000), (Duration.of_millis(4), 4), ("1000 us", 1), ("2 seconds", 2000),
    ],
)  # fmt: skip
def test_durations_are_read_in_all_spellings(raw, millis):
    assert DURATION.read(raw) == Duration.of_millis(millis)


@pytest.mark.parametrize("raw", ["", "ms", "1.5 s", "10 parsecs", "P", "PT", "1 sss", True, None, 1.5])
def test_what_is_no_duration_is_refused(raw):
    with pytest.raises(ValueError):
        DURATION.read(raw)


@pytest.mark.parametrize(
    ("raw", "size"), [("32 kb", 32768), ("1mb", 2**20), ("512 bytes", 512), ("7", 7), (9, 9), ("1 G", 2**30), ("0", 0)]
)
def test_memory_sizes_are_read_in_all_spellings(raw, size):
    assert MEMORY.read(raw) == MemorySize(size)


@given(st.integers(-(2**70), 2**70))
def test_a_written_duration_reads_back(nanos):
    assert DURATION.read(DURATION.write(Duration(nanos))) == Duration(nanos)


@given(st.integers(0, 2**50))
def test_a_written_memory_size_reads_back(size):
    assert MEMORY.read(MEMORY.write(MemorySize(size))) == MemorySize(size)


def test_lists_and_maps_are_read_and_written():
    assert LIST.read("a; b;") == LIST.read("[a, 'b']") == LIST.read(("a", "b")) == ["a", "b"]
    assert MAP.read("k1:v1, k2:http://x") == {"k1": "v1", "k2": "http://x"}
    assert LIST.write(["a", "b"]) == "a;b" and MAP.write({"k": "v"}) == "k:v"
    for broken in (lambda: LIST.write(["a;b"]), lambda: MAP.write({"a:b": "c"}), lambda: MAP.read("novalue")):
        with pytest.raises(ValueError):
            broken()


@pytest.mark.parametrize("text", ["EXACTLY_ONCE", "exactly-once", "Exactly_Once"])
def test_enum_options_do_not_mind_case_and_dashes(text):
    config = Configuration().set_string("execution.checkpointing.mode", text)
    assert config.get(options.CHECKPOINT_MODE) is options.CheckpointingMode.EXACTLY_ONCE


def test_options_are_built_as_in_pyflink():
    option = ConfigOptions.key("my.size").int_type().default_value(100)
    assert option == ConfigOption("my.size", option.type, 100)
    assert Configuration().get(option) == 100 and Configuration().set_string("my.size", "7").get(option) == 7
    assert Configuration().get(ConfigOptions.key("x").string_type().no_default_value()) is None
    with pytest.raises(ConfigError):
        Configuration().set(option, 2**31)
    old = option.with_fallback_keys("my.old")
    assert Configuration().set_integer("my.old", 3).get(old) == 3


@pytest.mark.spec("B17")
@pytest.mark.parametrize("hidden", [threading.Lock(), {"a": [threading.Lock()]}, object(), print])
def test_an_object_no_other_process_could_read_is_refused(hidden):
    config = Configuration.from_dict({"plain": {"a": [1, None, "x"]}, "my.option": hidden})
    with pytest.raises(ConfigError, match=r"option 'my.option': .*the configuration could not be serialized with it"):
        config.check()
    config.remove_config("my.option")
    config.check()


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("paralelism", "parallelism.default"),
        ("checkpoint.interval", "execution.checkpointing.interval"),
        ("executon.target", "execution.target"),
        ("runtime-mode", "execution.runtime-mode"),
    ],
)
def test_a_misspelled_key_finds_the_one_that_was_meant_by_any_of_its_parts(key, meant):
    assert Configuration.from_dict({key: 1}).unknown_options()[key][0] == meant


def test_an_option_of_a_file_knows_its_line_until_it_is_set_anew(tmp_path):
    file = tmp_path / "options.yaml"
    file.write_text("\nparallelism.default: 3\n", encoding="utf-8")
    config = Configuration().add_all(Configuration.from_file(file))
    assert Configuration(config).origin("parallelism.default") == f"{file}:2"
    line = inspect.currentframe().f_lineno + 1
    assert config.set_string("parallelism.default", "4").origin("parallelism.default") == f"{__file__}:{line}"
    assert config.origin("execution.target") == ""


def test_an_error_says_where_the_value_was_set_and_which_was_meant(tmp_path):
    file = tmp_path / "options.yaml"
    file.write_text("execution:\n  runtime-mode: BATH\nparallelism.default: many\n", encoding="utf-8")
    config = Configuration.from_file(file)
    at = f"'execution.runtime-mode' ({file}:2): found 'BATH', wanted one of STREAMING, BATCH, AUTOMATIC"
    with pytest.raises(ConfigError, match=re.escape(f"{at}; did you mean BATCH?")):
        config.get(options.RUNTIME_MODE)
    config.remove_config("execution.runtime-mode")
    with pytest.raises(ConfigError, match=re.escape(f"({file}:3): found 'many', wanted int; write for example")):
        config.check()
    with pytest.raises(ConfigError, match=re.escape(f"({__file__}:")):
        Configuration.from_dict({"pipeline.object-reuse": "ture"}).check()
    with pytest.raises(ConfigError, match=r"wanted true or false; did you mean true\?"):
        Configuration.from_dict({"pipeline.object-reuse": "ture"}).check()
