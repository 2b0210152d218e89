"""Samples as text: Prometheus's format and OpenMetrics, with a bound."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from rayflink.common.metrics.prometheus import SUMMARY, Sample
from rayflink.common.metrics.prometheus_text import OMITTED, TextFormat, accepted_format, exposition

LARGE = 1 << 20


def lines(samples, text_format=TextFormat.PROMETHEUS, most_bytes=LARGE):
    text = exposition(samples, text_format, most_bytes).decode()
    assert text.endswith("\n")
    return [line for line in text.splitlines() if OMITTED not in line]


def test_the_samples_of_a_family_stand_together_under_one_head():
    samples = [Sample("a", {"x": "1"}, 1, "of a"), Sample("b", {}, 2.5, "of b"), Sample("a", {"x": "2"}, 3, "other")]
    assert lines(samples) == [
        "# HELP a of a", "# TYPE a gauge", 'a{x="1"} 1', 'a{x="2"} 3', "# HELP b of b", "# TYPE b gauge", "b 2.5",
    ]  # fmt: skip


def test_a_summary_has_one_head_for_its_quantiles_and_its_count():
    samples = [
        Sample("s_count", {}, 4, "s", SUMMARY, "s"),
        Sample("s", {"quantile": "0.5"}, 7, "s", SUMMARY, "s"),
    ]
    assert lines(samples) == ["# HELP s s", "# TYPE s summary", "s_count 4", 's{quantile="0.5"} 7']


def test_the_later_of_two_samples_of_one_series_counts():
    samples = [Sample("a", {"x": "1", "y": "2"}, value, "a") for value in (1, 9)]
    assert lines(samples)[2:] == ['a{x="1",y="2"} 9']


def test_a_counter_of_openmetrics_has_its_suffix_in_the_samples_alone():
    counter = [Sample("requests_total", {}, 3, 'all "requests"', "counter")]
    assert lines(counter, TextFormat.OPEN_METRICS) == [
        '# HELP requests all \\"requests\\"', "# TYPE requests counter", "requests_total 3", "# EOF",
    ]  # fmt: skip
    assert lines(counter)[:2] == ['# HELP requests_total all "requests"', "# TYPE requests_total counter"]


def test_what_breaks_a_line_or_ends_a_value_is_escaped():
    assert lines([Sample("a", {"x": 'b\\c"d\ne'}, 1, "two\nlines")])[0::2] == [
        "# HELP a two\\nlines", 'a{x="b\\\\c\\"d\\ne"} 1',
    ]  # fmt: skip


@pytest.mark.parametrize("text_format", TextFormat)
def test_what_has_no_room_is_left_out_and_counted(text_format):
    samples = [Sample(name, {"n": str(n)}, n, name) for name in ("first", "second") for n in range(100)]
    text = exposition(samples, text_format, 2_000)
    assert len(text) <= 2_000
    written = [line for line in text.decode().splitlines() if line.startswith(("first{", "second{"))]
    assert 0 < len(written) < 200 and written[0].startswith("first")
    assert f"{OMITTED} {200 - len(written)}" in text.decode().splitlines()


@pytest.mark.parametrize(
    "accept, wanted",
    [
        ("", TextFormat.PROMETHEUS),
        ("application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5", TextFormat.OPEN_METRICS),
        ("application/openmetrics-text;q=0.1, text/plain", TextFormat.PROMETHEUS),
        ("application/openmetrics-text;q=nonsense", TextFormat.PROMETHEUS),
    ],
)
def test_the_scraper_chooses_the_form(accept, wanted):
    assert accepted_format(accept) is wanted


@pytest.mark.slow
def test_prometheus_own_tool_reads_it():
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    samples = [
        Sample("s_count", {"a": 'b"\\\n'}, 4, "s\nt", SUMMARY, "s"),
        Sample("s", {"a": 'b"\\\n', "quantile": "0.5"}, 7e300, "s", SUMMARY, "s"),
        Sample("requests_total", {}, 3, "requests", "counter"),
    ]
    text = exposition(samples, TextFormat.PROMETHEUS, LARGE)
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, timeout=30)
    assert b"error while linting" not in checked.stderr and checked.returncode in (0, 3), checked.stderr
