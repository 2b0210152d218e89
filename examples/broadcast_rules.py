"""Check card payments against rules that change while the job runs: each payment against the rules of its own time.

Shows: a broadcast stream whose records every subtask stores in broadcast state, a keyed stream that reads that state,
and a lookup by event time. Each rule is stored with the time from which it is valid, and a payment waits in keyed state
until the watermark passes its time: by then all earlier rules have arrived. So the result does not depend on the speed
of either stream.

Output: the payments that broke a rule, by their time:

    second  120: card B paid 700 EUR, single payments were limited to 500 EUR
    second  480: card A had paid 1050 EUR, the total was limited to 1000 EUR
    second  660: card A paid 250 EUR, single payments were limited to 200 EUR
    second  660: card A had paid 1300 EUR, the total was limited to 1000 EUR
    second  960: card B paid 300 EUR, single payments were limited to 200 EUR

    python examples/broadcast_rules.py           in this process
    python examples/broadcast_rules.py --ray     the same program on Ray
"""

import argparse
from typing import NamedTuple

from rayflink.common import WatermarkStrategy
from rayflink.datastream import KeyedBroadcastProcessFunction, StreamExecutionEnvironment
from rayflink.datastream.state import MapStateDescriptor, ValueStateDescriptor


class Rule(NamedTuple):
    """From second `at_s` on; `most` is None where the rule is withdrawn."""

    name: str
    at_s: int
    most: int | None


class Payment(NamedTuple):
    card: str
    at_s: int
    euros: int


RULES = [Rule("single", 0, 500), Rule("total", 300, 1_000), Rule("single", 600, 200), Rule("total", 900, None)]
PAYMENTS = [
    Payment("A", 60, 450),
    Payment("B", 120, 700),
    Payment("A", 240, 350),
    Payment("A", 480, 250),
    Payment("A", 660, 250),
    Payment("B", 720, 150),
    Payment("B", 960, 300),
    Payment("A", 1_000, 100),
]

VERSIONS = MapStateDescriptor("versions")
"""Name of a rule -> [(second from which it holds, most)], ascending."""


class Judge(KeyedBroadcastProcessFunction):
    """(second, card, what was wrong) of each payment that breaks a rule."""

    def open(self, runtime_context):
        self.waiting = runtime_context.get_map_state(MapStateDescriptor("waiting"))
        self.total = runtime_context.get_state(ValueStateDescriptor("total"))

    def process_broadcast_element(self, value, ctx):
        versions = ctx.get_broadcast_state(VERSIONS)
        versions[value.name] = sorted([*(versions[value.name] or ()), (value.at_s, value.most)])

    def process_element(self, value, ctx):
        self.waiting[value.at_s] = [*(self.waiting[value.at_s] or ()), value]
        ctx.timer_service().register_event_time_timer(value.at_s * 1000)

    def on_timer(self, timestamp, ctx):
        """All rules up to `timestamp` have come: the watermarks of both streams say so."""
        second = timestamp // 1000
        rules = ctx.get_broadcast_state(VERSIONS)
        single, most = as_of(rules["single"], second), as_of(rules["total"], second)
        for payment in self.waiting[second]:
            total = (self.total.value() or 0) + payment.euros
            self.total.update(total)
            if single is not None and payment.euros > single:
                yield second, payment.card, f"paid {payment.euros} EUR, single payments were limited to {single} EUR"
            if most is not None and total > most:
                yield second, payment.card, f"had paid {total} EUR, the total was limited to {most} EUR"
        del self.waiting[second]


def as_of(versions, second):
    """What held at that second; None where nothing did."""
    return next((most for since, most in reversed(versions or ()) if since <= second), None)


def judged(env):
    """The program."""
    in_order = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event, _: event.at_s * 1000)
    rules = env.from_collection(RULES).name("rules").assign_timestamps_and_watermarks(in_order)
    payments = env.from_collection(PAYMENTS).name("payments").assign_timestamps_and_watermarks(in_order)
    both = payments.key_by(lambda payment: payment.card).connect(rules.broadcast(VERSIONS))
    return both.process(Judge()).name("judge")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--ray", action="store_true", help="run on Ray instead of in this process")
    target = "ray" if arguments.parse_args().ray else "local"
    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": target, "parallelism.default": 2})
    found = list(judged(env).execute_and_collect("broadcast rules"))
    for second, card, what in sorted(found, key=lambda entry: entry[0]):
        print(f"second {second:>4}: card {card} {what}")


if __name__ == "__main__":
    main()
