"""Tables in Kafka: the connectors `kafka` and `upsert-kafka`.

- `kafka_connectors`: the two connectors, from a table's options to a source or sink.
- `kafka_options`: their options; `start_and_end`: those that say where reading starts and ends.
- `message_columns`: which columns of a table are in the key, the value and the metadata of a message.
- `kafka_metadata`: the metadata columns.
- `table_source`, `decode_rows`: reading, from messages to columns.
- `table_sink`, `encode_rows`, `upsert_buffer`: writing, from columns to messages.
"""
