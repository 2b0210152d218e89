"""Match two streams, orders and payments, by order number: paid, paid too late, or never paid.

Shows: two keyed streams processed by one function, state that both share by key, and event-time timers. The result
does not depend on the order and speed of the streams: the order waits in state for its payment, or the payment for
its order.

Output: the outcome of each order, sorted by its number:

    order 1: 40 EUR, paid after 120 s
    order 2: 15 EUR, not paid within 600 s
    order 3: 99 EUR, paid after 0 s
    order 4: 7 EUR, not paid within 600 s
    order 4: a payment at second 1110, when no order waits for it
    order 5: 20 EUR, paid after 600 s

    python examples/connected_streams.py           in this process
    python examples/connected_streams.py --ray     the same program on Ray
"""

import argparse
from typing import NamedTuple

from rayflink.common import WatermarkStrategy
from rayflink.datastream import KeyedCoProcessFunction, StreamExecutionEnvironment
from rayflink.datastream.state import ValueStateDescriptor

MOST_WAIT_S = 600


class Order(NamedTuple):
    number: int
    at_s: int
    euros: int


class Payment(NamedTuple):
    order: int
    at_s: int


ORDERS = [Order(1, 100, 40), Order(2, 130, 15), Order(3, 200, 99), Order(4, 210, 7), Order(5, 300, 20)]
PAYMENTS = [Payment(3, 200), Payment(1, 220), Payment(5, 900), Payment(4, 1_110)]


class Match(KeyedCoProcessFunction):
    """(order number, what became of it), by order number."""

    def open(self, runtime_context):
        self.order = runtime_context.get_state(ValueStateDescriptor("order"))
        self.payment = runtime_context.get_state(ValueStateDescriptor("payment"))

    def process_element1(self, value, ctx):
        self.order.update(value)
        ctx.timer_service().register_event_time_timer((value.at_s + MOST_WAIT_S) * 1000)

    def process_element2(self, value, ctx):
        self.payment.update(value)
        ctx.timer_service().register_event_time_timer(value.at_s * 1000)

    def on_timer(self, timestamp, ctx):
        """Everything up to `timestamp` has come: the watermarks of both streams say so."""
        number, order, payment = ctx.get_current_key(), self.order.value(), self.payment.value()
        if payment and payment.at_s * 1000 <= timestamp:
            if order:
                yield number, f"{order.euros} EUR, paid after {payment.at_s - order.at_s} s"
            else:
                yield number, f"a payment at second {payment.at_s}, when no order waits for it"
            self.order.clear()
            self.payment.clear()
        elif order:
            yield number, f"{order.euros} EUR, not paid within {MOST_WAIT_S} s"
            self.order.clear()


def matched(env):
    """The program."""
    in_order = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event, _: event.at_s * 1000)
    orders = env.from_collection(ORDERS).name("orders").assign_timestamps_and_watermarks(in_order)
    payments = env.from_collection(PAYMENTS).name("payments").assign_timestamps_and_watermarks(in_order)
    both = orders.key_by(lambda order: order.number).connect(payments.key_by(lambda payment: payment.order))
    return both.process(Match()).name("match")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--ray", action="store_true", help="run on Ray instead of in this process")
    target = "ray" if arguments.parse_args().ray else "local"
    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": target})
    found = list(matched(env).execute_and_collect("connected streams"))
    for number, what in sorted(found, key=lambda entry: entry[0]):
        print(f"order {number}: {what}")


if __name__ == "__main__":
    main()
