"""The formats of messages in SQL: JSON, CSV, Avro, Protobuf, raw bytes, and those of change data capture.

- `contract`: what a format of messages gives: a schema that decodes batches of messages to columns, and one back.
- `known_formats`: the formats by name.
- `column_schemas`: the base of schemas that work by columns.
- `json_messages`, `csv_messages`, `raw_messages`: the formats `json`, `csv` and `raw`.
- `change_rows`: the rows that messages of change data capture stand for, by columns.
- `change_json`: what the formats of change data capture in JSON share.
- `debezium_json`: `debezium-json` and `ogg-json`.
- `canal_json`: `canal-json` and `maxwell-json`.
- `avro_messages`: the format `avro`.
- `avro_confluent`: `avro-confluent` and `debezium-avro-confluent`, whose schemas are in a registry.
- `protobuf_messages`: the format `protobuf`.
- `message_files`: files with one message a line, for the connector `filesystem`.

Formats of whole files are in `rayflink.table.connectors.formats`; connectors that carry messages, such as Kafka's, are
in rooms of their own above this one.
"""
