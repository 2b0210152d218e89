"""RabbitMQ queues as a source and a sink; needs `pip install 'rayflink[rabbitmq]'`. See docs/rabbitmq.md.

- `rabbitmq_errors`: what can go wrong, as an outage that may pass or as a refusal;
- `rabbitmq_connection`: the settings of connections, and the client library;
- `rabbitmq_source`: one queue, consumed as `message_queues` says;
- `rabbitmq_publisher`: a connection that publishes and waits for the broker's confirmations;
- `rabbitmq_sink`: records as messages.
"""
