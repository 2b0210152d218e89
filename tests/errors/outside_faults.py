"""Faults of outside systems: what a user does or suffers, what becomes of the job, and the test that shows it.

The parts of an error's message stand in the test itself, which `test_outside_faults.py` checks, so that the table in
docs/failures.md says what the tests see. `python -m tests.errors.bad_inputs` writes it.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONNECTORS = ROOT / "tests" / "connectors"
BEGIN = "<!-- outside faults: begin, made by `python -m tests.errors.bad_inputs` -->"
END = "<!-- outside faults: end -->"
RETRIED, STARTS, FAILS = "goes on", "refused before it starts", "fails"


@dataclass(frozen=True)
class OutsideFault:
    """One fault.

    Args:
        what: for people.
        job: RETRIED: it waits and loses nothing; STARTS: it does not start; FAILS: it fails, and its restart strategy
            says whether it tries again.
        says: parts of the error's message; for RETRIED the metrics that count it, if there are any.
        file: of the test, below tests/connectors.
        test: its name.
    """

    system: str
    what: str
    job: str
    says: tuple[str, ...]
    file: str
    test: str

    def source(self) -> str:
        """The source of the test, with the values of its parameters."""
        return _functions(CONNECTORS / self.file)[self.test]


@cache
def _functions(path: Path) -> dict[str, str]:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found[node.name] = "\n".join(lines[first - 1 : node.end_lineno])
    return found


SOURCE, SINK, CRASHES = (f"kafka/test_kafka_{name}.py" for name in ("source_faults", "sink_faults", "source"))
TOPICS, TLS = "kafka/test_kafka_sink_topics.py", "kafka/test_kafka_tls.py"
CDC, REGISTRY = "postgres/test_postgres_cdc_faults.py", "avro/test_registry.py"
CDC_TABLE = "../table/connectors/cdc/test_postgres_cdc_table.py"
READ, WRITTEN = "object_stores/test_object_source.py", "object_stores/test_object_sink.py"
STAGED, CHANGES, SCAN, LOOKUP = (
    f"postgres/test_postgres_{name}.py" for name in ("sink", "changes_sink", "scan", "lookup")
)
LINES = "files/test_malformed_lines.py"
DELTA, ICEBERG = "lakes/test_delta_faults.py", "lakes/test_iceberg_faults.py"
LAKES, ON_S3 = "lakes/test_lake_sources.py", "lakes/test_lakes_on_s3.py"
COMPACTION = "lakes/test_iceberg_compaction.py"
MYSQL, RABBIT = "mysql/test_mysql_cdc_faults.py", "rabbitmq/test_rabbitmq.py"
NATS, MQTT = "nats/test_nats.py", "mqtt/test_mqtt.py"
REDIS, WEBHOOK, REQUESTS = "redis/test_redis_streams.py", "http/test_http_source.py", "http/test_http_sink.py"

ALL = [
    OutsideFault("Kafka", "brokers are down when a source starts", RETRIED, (), SOURCE,
                 "test_brokers_that_are_down_at_the_start_are_waited_for"),
    OutsideFault("Kafka", "no broker answers for default.api.timeout.ms", FAILS, ("answered for",), SOURCE,
                 "test_brokers_that_never_answer_are_an_error_in_time"),
    OutsideFault("Kafka", "brokers are down when a sink starts", FAILS,
                 ("looking up topic", "check that the brokers run"), TOPICS,
                 "test_brokers_that_are_down_when_a_sink_starts_are_an_error_in_time"),
    OutsideFault("Kafka", "the same, and they come while the job restarts", RETRIED, ("numRestarts",), TOPICS,
                 "test_a_job_whose_brokers_are_down_at_the_start_is_restarted_until_they_are_there"),
    OutsideFault("Kafka", "a broker is away while a source reads", RETRIED, ("numBrokerOutages",), SOURCE,
                 "test_reading_goes_on_when_a_broker_is_back"),
    OutsideFault("Kafka", "brokers are away for longer than broker.outage.timeout.ms", FAILS,
                 ("no records from", "broker.outage.timeout"), SOURCE,
                 "test_an_outage_that_lasts_too_long_is_an_error"),
    OutsideFault("Kafka", "a broker is away when an exactly-once sink commits", RETRIED,
                 ("retriedCommittables", "pendingCommittables"), SINK,
                 "test_the_task_goes_on_while_the_broker_is_away_and_then_writes_its_chunks"),
    OutsideFault("Kafka", "no broker takes messages for delivery.timeout.ms", FAILS,
                 ("writing to topic", "check that the brokers run"), SINK,
                 "test_messages_that_no_broker_takes_fail_the_checkpoint"),
    OutsideFault("Kafka", "the topic of a source is missing", FAILS, ("there is no such topic",), SOURCE,
                 "test_a_missing_topic_or_partition_is_named"),
    OutsideFault("Kafka", "the topic of a sink is missing", FAILS, ("does not exist at", "create it"), SINK,
                 "test_a_missing_topic_is_named_at_the_start"),
    OutsideFault("Kafka", "the topic of a sink is deleted between checkpoint and commit", FAILS,
                 ("does not exist at", "create it"), TOPICS, "test_a_topic_that_is_deleted_before_the_commit_is_named"),
    OutsideFault("Kafka", "the same, and it is created again before the commit", RETRIED, (), TOPICS,
                 "test_messages_of_a_checkpoint_go_into_a_topic_that_was_created_again"),
    OutsideFault("Kafka", "partitions are added to the topic of a sink", RETRIED, (), TOPICS,
                 "test_partitions_that_are_added_lose_nothing_and_get_messages"),
    OutsideFault("Kafka", "a topic is deleted while it is read", FAILS, ("does not exist any more",), SOURCE,
                 "test_a_topic_that_is_deleted_while_it_is_read_is_an_error"),
    OutsideFault("Kafka", "a topic was deleted and created again", FAILS, ("was deleted and created again",), SOURCE,
                 "test_a_topic_that_was_created_again_is_known_by_its_id"),
    OutsideFault("Kafka", "the same, with auto.offset.reset set", RETRIED, ("numOffsetResets",), SOURCE,
                 "test_a_topic_that_was_created_again_is_read_on_where_the_program_says"),
    OutsideFault("Kafka", "partitions are added", RETRIED, (), CRASHES,
                 "test_new_partitions_and_topics_are_discovered"),
    OutsideFault("Kafka", "retention has removed the offset of a checkpoint", FAILS, ("retention",), SOURCE,
                 "test_offsets_that_retention_has_removed_are_an_error"),
    OutsideFault("Kafka", "wrong credentials", FAILS,
                 ("failed with", "AUTHENTICATION", "check the properties"), SOURCE,
                 "test_wrong_credentials_are_an_error_without_the_password"),
    OutsideFault("Kafka", "wrong credentials of a sink", FAILS,
                 ("failed with", "AUTHENTICATION", "check the properties"), TOPICS,
                 "test_wrong_credentials_fail_the_sink_at_once_without_the_password"),
    OutsideFault("Kafka", "the brokers' certificate is signed by another authority", FAILS,
                 ("certificate verify failed", "check the properties"), TLS,
                 "test_brokers_that_another_authority_has_signed_are_refused"),
    OutsideFault("Kafka", "credentials expire while a source reads", FAILS, ("failed with", "AUTHENTICATION"), SOURCE,
                 "test_credentials_that_are_refused_while_reading_are_an_error"),
    OutsideFault("Kafka", "a record is too large to be received", FAILS,
                 ("too large to receive", "increase receive.message.max.bytes"), SOURCE,
                 "test_a_record_too_large_to_receive_is_an_error"),
    OutsideFault("Kafka", "a record is larger than the client may send", FAILS, ("is larger than message.max.bytes",),
                 SINK, "test_a_record_that_is_too_large_is_named_before_the_checkpoint"),
    OutsideFault("Kafka", "a record is larger than its topic takes", FAILS,
                 ("larger than is allowed", "max.message.bytes of the topic"), SINK,
                 "test_a_message_that_the_topic_refuses_fails_the_task_with_the_remedy"),
    OutsideFault("sources of messages", "a record cannot be decoded", FAILS, ("cannot be decoded",), CRASHES,
                 "test_a_malformed_record_fails_the_job_and_is_named"),
    OutsideFault("sources of messages", "the same, with MalformedRecords.skip()", RETRIED, ("numRecordsInErrors",),
                 CRASHES, "test_malformed_records_are_skipped_and_counted"),
    OutsideFault("files", "a line cannot be read", FAILS, ("line 1",), LINES, "test_lines_are_left_out_or_fail"),
    OutsideFault("files", "the same, with MalformedRecords.side_output()", RETRIED, ("numRecordsInErrors",), LINES,
                 "test_each_line_comes_once_wherever_the_reading_stops"),
    OutsideFault("schema registry", "it fails for a while", RETRIED, (), REGISTRY,
                 "test_a_registry_that_fails_for_a_while_is_asked_again"),
    OutsideFault("schema registry", "it is down", FAILS, ("does not answer in 3 tries", "start it, or correct its URL"),
                 REGISTRY, "test_a_registry_that_is_down_is_an_error_after_the_retries"),
    OutsideFault("schema registry", "it is down, with MalformedRecords.skip()", FAILS, ("does not answer",), REGISTRY,
                 "test_an_outage_of_the_registry_skips_no_messages"),
    OutsideFault("schema registry", "it does not have a schema", FAILS,
                 ("has no schema with id 7", "check that the URL"), REGISTRY,
                 "test_unknown_ids_and_subjects_are_an_error_that_is_remembered"),
    OutsideFault("schema registry", "a schema is incompatible with the ones before", FAILS,
                 ("refuses the schema of", "incompatible", "give new fields a default"), REGISTRY,
                 "test_an_incompatible_schema_is_refused_with_a_remedy"),
    OutsideFault("PostgreSQL CDC", "the server crashes and comes back", RETRIED, (), CDC,
                 "test_a_server_that_crashes_and_comes_back_loses_and_repeats_nothing"),
    OutsideFault("PostgreSQL CDC", "the connection is lost", RETRIED, (), CDC,
                 "test_a_connection_that_is_lost_is_opened_again_where_it_was"),
    OutsideFault("PostgreSQL CDC", "the replication slot is dropped", FAILS,
                 ("replication slot 'slot' is gone", "start the job anew"), CDC,
                 "test_a_slot_that_is_dropped_ends_the_job_with_the_remedy"),
    OutsideFault("PostgreSQL CDC", "the server has deleted the log", FAILS,
                 ("the server has deleted the log that replication slot 'slot' needs",), CDC,
                 "test_a_slot_whose_log_is_deleted_says_so"),
    OutsideFault("PostgreSQL CDC", "a checkpoint is older than the slot", FAILS,
                 ("the changes in between are gone",), CDC, "test_a_checkpoint_that_is_older_than_the_slot_is_refused"),
    OutsideFault("PostgreSQL CDC", "two jobs read one slot", FAILS, ("has another reader",), CDC,
                 "test_two_jobs_with_one_slot_are_refused"),
    OutsideFault("PostgreSQL CDC", "wal_level is not logical", STARTS,
                 ("wal_level = replica", "set wal_level = logical"), CDC,
                 "test_a_server_without_logical_decoding_is_refused"),
    OutsideFault("PostgreSQL CDC", "a wrong password", STARTS, ("password authentication failed",), CDC,
                 "test_a_wrong_password_is_not_shown"),
    OutsideFault("PostgreSQL CDC", "changes by key, and the table has another key than SQL declares", STARTS,
                 ("has no primary key; add one, or set 'changelog-mode' = 'all'",), CDC_TABLE,
                 "test_upserts_by_another_key_than_that_of_the_table_are_refused"),
    OutsideFault("PostgreSQL CDC", "a captured column is dropped", FAILS,
                 ("column 'n' of public.t was dropped or renamed", "start the job anew"), CDC,
                 "test_changes_of_the_table_that_do_not_fit_end_the_job"),
    OutsideFault("PostgreSQL CDC", "TRUNCATE", FAILS, ("TRUNCATE was run on public.t", "skip_truncates()"), CDC,
                 "test_a_truncated_table_ends_the_job"),
    OutsideFault("object store", "requests fail in passing", RETRIED, (), READ,
                 "test_requests_that_fail_in_passing_are_made_again_and_counted"),
    OutsideFault("object store", "it never answers", FAILS, ("tried 5 times, at last: ", "look at the store"), READ,
                 "test_a_store_that_never_answers_is_an_outage_that_ends"),
    OutsideFault("object store", "it is busy when a sink commits", RETRIED, (), WRITTEN,
                 "test_a_store_that_is_busy_at_the_commit_is_tried_again_later"),
    OutsideFault("object store", "the bucket is missing", STARTS,
                 ("there is no such bucket", "correct the bucket's name"), READ,
                 "test_a_store_that_refuses_is_an_error_before_the_job_runs"),
    OutsideFault("object store", "the bucket is forbidden", STARTS, ("the store forbids it", "permit the credentials"),
                 READ, "test_a_store_that_refuses_is_an_error_before_the_job_runs"),
    OutsideFault("object store", "wrong credentials", STARTS, ("does not accept the credentials", "set s3.access-key"),
                 READ, "test_a_store_that_refuses_is_an_error_before_the_job_runs"),
    OutsideFault("object store", "another region", STARTS, ("in another region", "s3.region"), READ,
                 "test_a_store_that_refuses_is_an_error_before_the_job_runs"),
    OutsideFault("object store", "the clocks differ", STARTS,
                 ("the clocks of this machine and of the store differ", "NTP"), READ,
                 "test_a_store_that_refuses_is_an_error_before_the_job_runs"),
    OutsideFault("object store", "the bucket is full", FAILS, ("the bucket is full", "raise the quota"), WRITTEN,
                 "test_a_store_that_refuses_an_upload_is_an_error_with_the_remedy"),
    OutsideFault("object store", "an object is changed or deleted after the listing", FAILS,
                 ("written anew since it was listed; leave objects as they are",), READ,
                 "test_an_object_that_changes_or_goes_after_the_listing_is_an_error"),
    OutsideFault("PostgreSQL scan", "a table or a column is missing", STARTS, ("is not there, found", "has no column"),
                 SCAN, "test_what_does_not_fit_is_found_before_the_job_starts"),
    OutsideFault("PostgreSQL scan", "a wrong password", STARTS, ("password authentication failed",), SCAN,
                 "test_a_wrong_password_is_named_and_not_shown"),
    OutsideFault("PostgreSQL scan", "a connection is lost", RETRIED, (), SCAN,
                 "test_what_happens_to_the_table_meanwhile_is_named"),
    OutsideFault("PostgreSQL scan", "the table is altered while it is read", FAILS, ("was altered",), SCAN,
                 "test_what_happens_to_the_table_meanwhile_is_named"),
    OutsideFault("PostgreSQL lookup", "a connection is lost", RETRIED, (), LOOKUP,
                 "test_a_lost_connection_is_repeated_and_counted_out"),
    OutsideFault("PostgreSQL lookup", "a column is dropped", FAILS, ("does not exist", "start the job again"), LOOKUP,
                 "test_a_lost_connection_is_repeated_and_counted_out"),
    OutsideFault("PostgreSQL sink", "a connection is lost", RETRIED, ("numReconnects",), STAGED,
                 "test_a_connection_that_was_lost_is_opened_again_and_counted"),
    OutsideFault("PostgreSQL sink", "the server is away at the commit", RETRIED, (), STAGED,
                 "test_while_the_server_is_away_commits_are_tried_again_between_other_work"),
    OutsideFault("PostgreSQL sink", "the user may create no table", FAILS, ("grant CREATE on schema 'public'",), STAGED,
                 "test_without_the_right_to_make_tables_the_remedy_is_told"),
    OutsideFault("PostgreSQL sink", "the table is missing at the start", FAILS,
                 ("is not there, found", "create it, or correct the name"), STAGED,
                 "test_what_is_wrong_with_the_sink_is_told_with_the_remedy_before_the_first_record"),
    OutsideFault("PostgreSQL sink", "the table is gone at the commit", FAILS,
                 ("does not exist", "make the table as it was when they"), STAGED,
                 "test_a_table_that_is_gone_fails_the_task_and_gets_its_rows_when_it_is_back"),
    OutsideFault("PostgreSQL sink", "the table refuses rows at the commit", FAILS,
                 ("cannot be moved to table", "duplicate key"), STAGED,
                 "test_rows_the_table_refuses_fail_the_task_and_are_moved_when_there_is_room"),
    OutsideFault("PostgreSQL sink of changes", "a connection is lost, or a deadlock is broken", RETRIED, (), CHANGES,
                 "test_a_lost_connection_and_a_deadlock_are_repeated"),
    OutsideFault("Delta", "another job commits at the same time", RETRIED, (), DELTA,
                 "test_two_jobs_append_to_one_table"),
    OutsideFault("Iceberg", "another job commits at the same time", RETRIED, (), ICEBERG,
                 "test_another_commits_between_the_look_and_the_commit"),
    OutsideFault("Delta", "rows are deleted or overwritten in a table that a stream reads", FAILS,
                 ("version 1 ", "skip_change_commits"), LAKES,
                 "test_a_version_that_is_no_append_fails_or_is_passed_over"),
    OutsideFault("Delta", "a version that a stream needs is gone from the log", FAILS, ("is gone from its log",), LAKES,
                 "test_a_version_that_is_gone_from_the_log_is_an_error"),
    OutsideFault("Iceberg", "a snapshot that a stream has read is rolled back", FAILS, ("is expired or rolled back",),
                 LAKES, "test_an_iceberg_snapshot_that_was_rolled_back_is_an_error"),
    OutsideFault("Delta, Iceberg", "the bucket is missing", FAILS,
                 ("there is no such bucket", "correct the bucket's name"), ON_S3,
                 "test_a_bucket_that_is_missing_is_an_error_with_the_remedy"),
    OutsideFault("Delta", "a compaction fails", RETRIED, (), ON_S3,
                 "test_a_compaction_that_fails_is_counted_and_harms_no_row"),
    OutsideFault("Iceberg", "rows are deleted or replaced while small files are merged", RETRIED, (), COMPACTION,
                 "test_another_commits_while_files_are_merged"),
    OutsideFault("Redis", "the server is killed and comes back", RETRIED, (), REDIS,
                 "test_a_killed_server_is_waited_for"),
    OutsideFault("Redis", "no server answers for the outage timeout", FAILS,
                 ("no service by Redis at", "check that it runs"), REDIS,
                 "test_refusals_of_the_server_name_the_remedy"),
    OutsideFault("Redis", "wrong credentials, or missing permissions", FAILS,
                 ("refuses access", "correct user, password and permissions"), REDIS,
                 "test_refusals_of_the_server_name_the_remedy"),
    OutsideFault("Redis", "the key is no stream", FAILS, ("is no stream", "give the key of a stream"), REDIS,
                 "test_refusals_of_the_server_name_the_remedy"),
    OutsideFault("Redis", "entries are trimmed unread", FAILS, ("are gone unread", "let streams keep more"), REDIS,
                 "test_entries_that_were_trimmed_unread_are_an_error_or_counted"),
    OutsideFault("Redis", "the same, with MissingMessages.SKIP", RETRIED, ("numMessagesMissing",), REDIS,
                 "test_entries_that_were_trimmed_unread_are_an_error_or_counted"),
    OutsideFault("HTTP sink", "the service fails for a while", RETRIED, ("numRequestRetries",), REQUESTS,
                 "test_what_meets_an_outage_is_sent_again"),
    OutsideFault("HTTP sink", "the service does not answer", FAILS, ("did not take a request in",), REQUESTS,
                 "test_a_service_that_is_not_there_fails_the_job_with_its_address"),
    OutsideFault("HTTP sink", "the service refuses a record", FAILS,
                 ("refused 1 records with HTTP 422", "correct them"), REQUESTS,
                 "test_a_refusal_fails_or_goes_to_the_dead_letters"),
    OutsideFault("HTTP sink", "the same, with dead letters", RETRIED, (), REQUESTS,
                 "test_a_refusal_fails_or_goes_to_the_dead_letters"),
    OutsideFault("HTTP source", "a request cannot be decoded, and is answered 400", RETRIED, ("numRecordsInErrors",),
                 WEBHOOK, "test_what_is_no_good_request_is_answered"),
    OutsideFault("HTTP source", "too many requests wait, and are answered 503", RETRIED, ("numRequestsRejected",),
                 WEBHOOK, "test_too_many_requests_are_rejected_and_counted"),
    OutsideFault("HTTP source", "the port is in use", FAILS, ("cannot listen on", "choose a free port"), WEBHOOK,
                 "test_a_port_in_use_is_named"),
    OutsideFault("MySQL CDC", "the server crashes and comes back", RETRIED, (), MYSQL,
                 "test_a_server_that_crashes_and_comes_back_loses_and_repeats_nothing"),
    OutsideFault("MySQL CDC", "a connection is lost", RETRIED, (), MYSQL,
                 "test_a_connection_that_is_lost_is_opened_again_where_it_was"),
    OutsideFault("MySQL CDC", "another server answers, with GTIDs", RETRIED, (), MYSQL,
                 "test_another_server_is_read_from_the_same_gtid_on_in_the_middle_of_a_transaction"),
    OutsideFault("MySQL CDC", "another server answers, without GTIDs", FAILS,
                 ("another server answers", "switch GTIDs on"), MYSQL,
                 "test_another_server_without_gtids_is_refused"),
    OutsideFault("MySQL CDC", "the server has deleted the log", FAILS,
                 ("the server does not have the log from", "start the job anew"), MYSQL,
                 "test_a_log_that_is_deleted_says_so"),
    OutsideFault("MySQL CDC", "two jobs have one server id", FAILS, ("another reader of the log has the server id",),
                 MYSQL, "test_two_jobs_with_one_server_id_are_refused"),
    OutsideFault("MySQL CDC", "a table, a key or a permission is missing", STARTS,
                 ("no table matches", "GRANT SELECT, REPLICATION SLAVE"), MYSQL,
                 "test_what_is_missing_is_found_before_the_job_starts"),
    OutsideFault("MySQL CDC", "the log has statements, or no whole rows", STARTS, ("the server has",), MYSQL,
                 "test_settings_of_the_server_that_do_not_do_are_found"),
    OutsideFault("MySQL CDC", "columns change whose names are not in the log", FAILS,
                 ("was altered", "set binlog_row_metadata = FULL"), MYSQL,
                 "test_columns_that_change_without_their_names_in_the_log_end_the_job"),
    OutsideFault("RabbitMQ", "connections and the broker are killed", RETRIED, (), RABBIT,
                 "test_nothing_is_lost_or_doubled_when_connections_and_the_broker_are_killed"),
    OutsideFault("RabbitMQ", "the queue is deleted", FAILS, ("it is not there", "start the job anew"), RABBIT,
                 "test_a_queue_that_is_deleted_fails_the_job"),
    OutsideFault("RabbitMQ", "no broker answers for the outage timeout", FAILS,
                 ("no service by RabbitMQ at", "check that it runs"), RABBIT,
                 "test_refusals_of_the_broker_name_the_remedy"),
    OutsideFault("RabbitMQ", "wrong credentials", FAILS, ("refuses the credentials; correct set_user_name",), RABBIT,
                 "test_refusals_of_the_broker_name_the_remedy"),
    OutsideFault("RabbitMQ", "a full queue rejects messages", FAILS,
                 ("does not accept a message", "check whether a queue is full"), RABBIT,
                 "test_refusals_of_the_broker_name_the_remedy"),
    OutsideFault("NATS", "the server is killed and comes back", RETRIED, (), NATS,
                 "test_a_killed_server_is_waited_for"),
    OutsideFault("NATS", "no server answers for the outage timeout", FAILS,
                 ("no service by NATS at", "check that it runs"), NATS, "test_refusals_of_the_server_name_the_remedy"),
    OutsideFault("NATS", "wrong credentials, or missing permissions", FAILS,
                 ("refuses access", "correct user, password, token or key"), NATS,
                 "test_refusals_of_the_server_name_the_remedy"),
    OutsideFault("NATS", "messages are removed unread", FAILS, ("are gone unread",), NATS,
                 "test_messages_that_were_removed_unread_are_an_error_or_counted"),
    OutsideFault("NATS", "the same, with MissingMessages.SKIP", RETRIED, ("numMessagesMissing",), NATS,
                 "test_messages_that_were_removed_unread_are_an_error_or_counted"),
    OutsideFault("NATS", "the stream removes what was read", FAILS, ("removes what was read", "which has this"), NATS,
                 "test_refusals_of_the_server_name_the_remedy"),
    OutsideFault("NATS", "the stream is made anew", FAILS, ("is another one", "start the job anew"), NATS,
                 "test_messages_that_were_removed_unread_are_an_error_or_counted"),
    OutsideFault("NATS", "the stream is full for the outage timeout", FAILS, ("is full", "raise its limits"), NATS,
                 "test_a_full_stream_is_waited_for"),
    OutsideFault("MQTT", "the broker restarts", RETRIED, (), MQTT, "test_a_broker_that_restarts_is_waited_for"),
    OutsideFault("MQTT", "no broker answers for the outage timeout", FAILS,
                 ("no service by MQTT at", "check that it runs"), MQTT, "test_refusals_of_the_broker_name_the_remedy"),
    OutsideFault("MQTT", "wrong credentials", FAILS, ("connecting failed", "correct user and password"), MQTT,
                 "test_refusals_of_the_broker_name_the_remedy"),
    OutsideFault("MQTT", "two jobs have one client id", FAILS, ("closed 10 connections in a row",), MQTT,
                 "test_two_jobs_with_one_client_id_do_not_fight_for_ever"),
]  # fmt: skip


def page_with_faults(page: str) -> str:
    """The page with the table as it should be."""
    rows = [f"| {row.system} | {row.what} | {row.job} | {_shown(row)} |" for row in ALL]
    head = ["| system | fault | the job | the error says, or the metrics that count it |", "|---|---|---|---|"]
    table = "\n".join([BEGIN, *head, *rows, END])
    return re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: table, page, flags=re.DOTALL)


def _shown(row: OutsideFault) -> str:
    return " ... ".join(f"`{part.strip()}`" for part in row.says)
