"""Apache Kafka: the source with its splits, the sink with its transactions, and the client that both use.

- `kafka_source`, `kafka_enumerator`, `kafka_reader`: partitions are found, assigned to readers and read in batches;
  `kafka_offsets` resolves where they start and stop, `kafka_decoding` makes batches of messages.
- `kafka_sink`, `kafka_producing`, `kafka_committing`: messages are sent at once, or after their checkpoint; then
  `kafka_chunks` holds them, and `kafka_transactions` writes them with the entry of `kafka_ledger`.
- `block_producer` gives the client messages by columns, through the C functions that `librdkafka` declares.
- `kafka_client`, `kafka_properties`, `kafka_errors`: the client library, which every node needs.

Formats of messages are in `rayflink.table.connectors.messages`, the tables in `rayflink.table.connectors.kafka`.
"""
