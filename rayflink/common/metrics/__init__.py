"""Metrics, and the reports that people read about a job: tables of its status and a progress display.

`metric_group` is what functions and tasks register with, under Flink's names; `metric_names` lists every name,
`metric_scopes` their prefixes. `prometheus` has them as Prometheus names them, `prometheus_status` those of a job's
status, `process_samples` those of this process, and `prometheus_text` writes them for a scraper. `job_report`,
`status_report` and `live_table` turn a job's status into rows; `watermark_lag` finds the input that holds a watermark
back.

Tasks and the job master count; nothing here reads a clock of its own.
"""
