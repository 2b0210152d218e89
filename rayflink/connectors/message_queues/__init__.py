"""Sources of brokers that deliver a message again unless it is acknowledged: RabbitMQ, NATS JetStream, MQTT.

Each subtask has a connection of its own, and a thread that reads it ahead of the task into a bounded queue. Each
delivery has a tag, which only the connector understands. Deliveries get numbers in the order in which they are given
out; the number is the position of the split, so the snapshot of a checkpoint says which deliveries it contains. When
that checkpoint is complete, all of them are acknowledged in one call. A job without checkpoints acknowledges what it
gives out. After a failure the broker delivers again what was not acknowledged, so a source is at least once; where
messages have ids, `SeenIds` drops those that were seen, and it is exactly once, at parallelism 1.

A connector implements two things:

- `BrokerConsumer` (`consumer_thread`): one connection, used by one thread alone. `receive` returns `Deliveries`, which
  are columns: messages, tags and, where there are some, ids and timestamps. `acknowledge` gets tags of this connection
  only, in the order of delivery. It raises `BrokerOutage` for what may pass (the thread then connects anew, with
  pauses, until the outage timeout), and `BrokerRefusal` for what a restart would only repeat.
- A subclass of `QueueSource` (`queue_source`) whose `connect` opens a `BrokerConsumer`; its `prepare` may declare the
  queue, once, before a job that starts afresh consumes. `QueueReading` has the
  settings that all share: name and place of the queue, prefetch, policy for malformed messages, outage timeout, and
  whether messages that were seen are dropped.

Everything else is here: `deliveries` has the columns and the runs made of them; `unacknowledged` decides what a
complete checkpoint acknowledges; `seen_ids` decides what was seen; `queue_reader` is a `LogReader` that ties them
together and reports `numUnacknowledged`, `numPrefetchStalls`, `numReconnects` and `numMessagesDropped`. Decoding, side
outputs and the queue itself are those of `message_logs`.
"""
