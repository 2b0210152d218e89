"""Apache Kafka: the source with its splits, the sink with its transactions, and the client that both use."""
