"""MQTT brokers as a source and a sink; needs `pip install 'rayflink[mqtt]'`. See docs/mqtt.md.

- `mqtt_errors`, `mqtt_broker`, `mqtt_connection`: brokers, connections, and what can go wrong with them;
- `mqtt_messages`: messages as records, and records as messages;
- `mqtt_consumer`: the sessions of one subtask, whose messages are acknowledged when a checkpoint is complete;
- `mqtt_source`, `mqtt_sink`: what a program builds.
"""
