"""MQTT brokers as a source and a sink; needs `pip install 'rayflink[mqtt]'`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.connectors.mqtt.mqtt_errors import MqttConflict as MqttConflict
    from rayflink.connectors.mqtt.mqtt_errors import MqttOutage as MqttOutage
    from rayflink.connectors.mqtt.mqtt_errors import MqttRefusal as MqttRefusal
    from rayflink.connectors.mqtt.mqtt_messages import MqttMessage as MqttMessage
    from rayflink.connectors.mqtt.mqtt_sink import MqttSink as MqttSink
    from rayflink.connectors.mqtt.mqtt_sink import MqttSinkBuilder as MqttSinkBuilder
    from rayflink.connectors.mqtt.mqtt_source import MqttSource as MqttSource
    from rayflink.connectors.mqtt.mqtt_source import MqttSourceBuilder as MqttSourceBuilder
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.connectors.mqtt.mqtt_errors": "MqttConflict MqttOutage MqttRefusal",
            "rayflink.connectors.mqtt.mqtt_messages": "MqttMessage",
            "rayflink.connectors.mqtt.mqtt_sink": "MqttSink MqttSinkBuilder",
            "rayflink.connectors.mqtt.mqtt_source": "MqttSource MqttSourceBuilder",
        },
    )
