"""Tables and times as people see them."""

from rayflink.cli.render import (
    late_records,
    metric_lines,
    moment,
    records_in,
    table,
    vertex_table,
    watermark,
)
from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP


def operator(records_in=0, records_out=0, seen=None, **metrics):
    return {
        "id": "a", "name": "op", "numRecordsIn": records_in, "numRecordsOut": records_out,
        "currentInputWatermark": seen, "metrics": metrics,
    }  # fmt: skip


def subtask(*operators, state="FINISHED"):
    stamps = {"RUNNING": 1_000, **({} if state == "RUNNING" else {state: 3_000})}
    return {"state": state, "timestamps": stamps, "metrics": {"operators": list(operators)} if operators else {}}


def vertex(*subtasks, name="Map", received=0, sent=0):
    return {
        "id": name, "name": name, "parallelism": len(subtasks), "numRecordsIn": received, "numRecordsOut": sent,
        "subtasks": list(subtasks),
    }  # fmt: skip


def test_numbers_stand_to_the_right_and_a_missing_one_is_a_dash():
    shown = table(("name", "n"), [("a", 1), ("bcd", None), ("e", 12345)])
    assert shown.splitlines() == ["name       n", "----  ------", "a          1", "bcd        -", "e     12,345"]


def test_a_table_without_rows_shows_its_names():
    assert table(("a", "long name"), []).splitlines() == ["a  long name", "-  ---------"]


def test_names_and_texts_of_others_tell_a_terminal_nothing():
    assert table(("name",), [("a\x1b[2J\nb",)]).splitlines()[2] == r"a\x1b[2J\x0ab"


def test_moments_are_utc_and_the_ends_of_time_have_names():
    assert [moment(t) for t in (None, MIN_TIMESTAMP, MAX_TIMESTAMP)] == ["-", "-", "end"]
    assert moment(0) == "1970-01-01 00:00:00"
    assert moment(-1_000) == "1969-12-31 23:59:59"
    assert moment(2**62) == str(2**62)


def test_a_source_reads_what_its_first_operator_emits():
    assert records_in(vertex(subtask(operator(records_out=3)), subtask(operator(records_out=4)))) == 7
    assert records_in(vertex(subtask(operator(9, 9)), received=9)) == 9


def test_late_records_of_all_subtasks_and_operators_are_summed():
    first = subtask(operator(numLateRecordsDropped=2), operator(**{"window.numLateRecordsDropped": 3}))
    assert late_records(vertex(first, subtask(operator(numLateRecordsDropped=1, other=9)))) == 6


def test_a_vertex_stands_at_the_watermark_of_its_slowest_subtask():
    assert watermark(vertex(subtask(operator(seen=5)), subtask(operator(seen=3)))) == 3
    assert watermark(vertex(subtask(operator(seen=5)), subtask(operator(seen=None)))) is None
    assert watermark(vertex(subtask())) is None


def test_the_rate_of_an_ended_vertex_is_over_the_time_it_ran():
    line = vertex_table([vertex(subtask(operator(10, 10)), received=10, sent=8)]).splitlines()[2].split()
    assert line == ["Map", "1", "10", "8", "0", "5", "-"]


def test_all_metrics_of_a_job_are_listed_by_identifier():
    counted = {"scope": "n1.tm.Map.0", "numBytesIn": 5, "pid": 12, "operators": []}
    status = {"scope": "n1.jm.job", "metrics": {"uptime": 9}, "vertices": [{"subtasks": [{"metrics": counted}]}]}
    assert metric_lines(status).splitlines() == ["n1.jm.job.uptime 9", "n1.tm.Map.0.numBytesIn 5"]
