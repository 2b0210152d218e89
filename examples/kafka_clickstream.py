"""Sessions of a website's visitors, from one Kafka topic to another, each exactly once.

Clicks are JSON messages. A visitor's session ends after ten minutes without a click. It becomes one JSON message, which
is visible with the checkpoint that contains it. The places of malformed messages go to a topic of their own.

Output: the topics are read again by a plain consumer that sees committed messages only:

    200 clicks of 5 visitors, 4 malformed messages
    sessions   36
    clicks     200
    longest    visitor-0, 19 clicks in 40 minutes
    malformed  4, the first at partition 0, offset 12

    docker run --rm -p 9092:9092 apache/kafka:4.1.0               a broker
    pip install 'rayflink[kafka]'
    python examples/kafka_clickstream.py localhost:9092           in this process
    python examples/kafka_clickstream.py localhost:9092 --ray     the same program on Ray
"""

import argparse
import json
import random
import uuid

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from rayflink.common import OutputTag, SimpleStringSchema, Time, WatermarkStrategy
from rayflink.common.serialization import DeserializationSchema, SerializationSchema
from rayflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from rayflink.datastream.connectors.base import DeliveryGuarantee, MalformedRecords
from rayflink.datastream.connectors.kafka import KafkaOffsetsInitializer as Offsets
from rayflink.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink, KafkaSource
from rayflink.datastream.window import EventTimeSessionWindows

VISITORS, CLICKS, MALFORMED = 5, 200, 4
MINUTE = 60_000
MALFORMED_TAG = OutputTag("malformed")


class Click(DeserializationSchema):
    """A JSON object with visitor, page and time in milliseconds."""

    def deserialize(self, message):
        click = json.loads(message)
        return click["visitor"], click["page"], click["time"]


class Json(SerializationSchema):
    """A session as JSON, or one field of it."""

    def __init__(self, *field):
        self.field = field

    def serialize(self, element):
        return json.dumps(element[self.field[0]] if self.field else element).encode()


class Session(ProcessWindowFunction):
    """Describes the clicks of one visitor without a long pause."""

    def process(self, key, context, elements):
        window = context.window()
        pages = [page for _, page, _ in elements]
        minutes = (window.end - window.start) // MINUTE - 10
        yield {"visitor": key, "start": window.start, "minutes": minutes, "clicks": len(pages), "pages": sorted(pages)}


def write_clicks(servers, topic):
    """Write the clicks, in order of time, and some malformed messages between them."""
    chance, times, clicks = random.Random(7), [0] * VISITORS, []
    for number in range(CLICKS):
        visitor = number % VISITORS
        times[visitor] += chance.choice((1, 1, 2, 3, 4, 30)) * MINUTE
        clicks.append({"visitor": f"visitor-{visitor}", "page": f"/{chance.choice('abc')}", "time": times[visitor]})
    clicks.sort(key=lambda click: click["time"])
    messages = [json.dumps(click).encode() for click in clicks]
    for number in range(MALFORMED):
        messages.insert(12 + 40 * number, b'{"visitor": ')
    producer = Producer({"bootstrap.servers": servers})
    for message in messages:
        producer.produce(topic, message, partition=0)
    producer.flush()


def sessions_of(env, servers, clicks, sessions, malformed):
    """Write the job into an environment."""
    source = (
        KafkaSource.builder().set_bootstrap_servers(servers).set_topics(clicks).set_group_id(clicks)
        .set_starting_offsets(Offsets.earliest()).set_bounded(Offsets.latest())
        .set_value_only_deserializer(Click()).set_malformed_records(MalformedRecords.side_output(MALFORMED_TAG))
        .build()
    )  # fmt: skip
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda click, _: click[2])
    stream = env.from_source(source, times, "clicks")
    windows = stream.key_by(lambda click: click[0]).window(EventTimeSessionWindows.with_gap(Time.minutes(10)))
    keyed = KafkaRecordSerializationSchema.builder().set_topic(sessions).set_key_serialization_schema(Json("visitor"))
    sink = KafkaSink.builder().set_bootstrap_servers(servers)
    sink = sink.set_record_serializer(keyed.set_value_serialization_schema(Json()).build())
    sink = sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix(sessions)
    windows.process(Session()).sink_to(sink.build())
    plain = KafkaRecordSerializationSchema.builder().set_topic(malformed)
    plain = plain.set_value_serialization_schema(SimpleStringSchema()).build()
    places = stream.get_side_output(MALFORMED_TAG).map(lambda record: record.place)
    places.sink_to(KafkaSink.builder().set_bootstrap_servers(servers).set_record_serializer(plain).build())


def committed(servers, topic):
    """Return the committed messages of a topic with one partition."""
    settings = {"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.partition.eof": True})
    consumer.subscribe([topic])
    values = []
    while (message := consumer.poll(30)) is not None and message.error() is None:
        values.append(message.value().decode())
    consumer.close()
    return values


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("servers", help="host:port of a broker")
    arguments.add_argument("--ray", action="store_true", help="run on Ray instead of in this process")
    chosen = arguments.parse_args()
    run = uuid.uuid4().hex[:8]
    topics = [f"{name}-{run}" for name in ("clicks", "sessions", "malformed")]
    admin = AdminClient({"bootstrap.servers": chosen.servers})
    for created in admin.create_topics([NewTopic(name, 1) for name in topics]).values():
        created.result()

    write_clicks(chosen.servers, topics[0])
    options = {"execution.target": "ray" if chosen.ray else "local", "execution.checkpointing.interval": "100 ms"}
    env = StreamExecutionEnvironment.get_execution_environment(options)
    sessions_of(env, chosen.servers, *topics)
    env.execute("clickstream")

    sessions = [json.loads(value) for value in committed(chosen.servers, topics[1])]
    places = sorted(committed(chosen.servers, topics[2]))
    longest = max(sorted(sessions, key=lambda session: session["visitor"]), key=lambda session: session["clicks"])
    print(f"{CLICKS} clicks of {VISITORS} visitors, {MALFORMED} malformed messages")
    print(f"sessions   {len(sessions)}")
    print(f"clicks     {sum(session['clicks'] for session in sessions)}")
    print(f"longest    {longest['visitor']}, {longest['clicks']} clicks in {longest['minutes']} minutes")
    print(f"malformed  {len(places)}, the first at {places[0].partition(', ')[2]}")


if __name__ == "__main__":
    main()
