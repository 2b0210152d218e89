"""Enrich orders with the customer's name and the product's price from a service that is called asynchronously.

Shows: many concurrent calls, retries after a failure, a timeout for each call with a default answer, and results that
are still in the order of the orders.

Output: the enriched orders, then the number of calls:

    order 1  Ada          lamp       2 x 40 =  80
    order 2  Bo           chair      1 x 85 =  85
    order 3  Ada          desk       1 x 210 = 210
    order 4  customer 9   lamp       3 x 40 = 120
    order 5  Cleo         shelf      2 x 60 = 120
    order 6  Bo           lamp       1 x 40 =  40
    8 calls for 6 orders

    python examples/async_enrichment.py           in this process
    python examples/async_enrichment.py --ray     the same program on Ray
"""

import argparse
import asyncio

from rayflink.common import Time
from rayflink.datastream import AsyncDataStream, AsyncFunction, AsyncRetryStrategy, StreamExecutionEnvironment

ORDERS = [
    {"id": 1, "customer": 1, "product": "lamp", "count": 2},
    {"id": 2, "customer": 2, "product": "chair", "count": 1},
    {"id": 3, "customer": 1, "product": "desk", "count": 1},
    {"id": 4, "customer": 9, "product": "lamp", "count": 3},
    {"id": 5, "customer": 3, "product": "shelf", "count": 2},
    {"id": 6, "customer": 2, "product": "lamp", "count": 1},
]


class Service:
    """Stands for a service on the network: it takes its time, is overloaded at first, and does not know customer 9."""

    CUSTOMERS = {1: "Ada", 2: "Bo", 3: "Cleo"}
    PRICES = {"lamp": 40, "chair": 85, "desk": 210, "shelf": 60}

    def __init__(self) -> None:
        self.calls_of = {}

    async def find(self, order):
        """(customer's name, price), and how often this order was asked for."""
        calls = self.calls_of[order["id"]] = self.calls_of.get(order["id"], 0) + 1
        await asyncio.sleep(0.02 * (7 - order["id"]))  # later orders are answered sooner
        if order["id"] in (2, 5) and calls == 1:
            raise ConnectionError("overloaded")
        if order["customer"] not in self.CUSTOMERS:
            await asyncio.sleep(60)
        return self.CUSTOMERS[order["customer"]], self.PRICES[order["product"]], calls


class Enrich(AsyncFunction):
    """The order with name, price and number of calls."""

    def open(self, runtime_context):
        self.service = Service()

    async def async_invoke(self, order):
        name, price, calls = await self.service.find(order)
        return [{**order, "name": name, "price": price, "calls": calls}]

    def timeout(self, order):
        name, price = f"customer {order['customer']}", Service.PRICES[order["product"]]
        return [{**order, "name": name, "price": price, "calls": 1}]


def enriched(env):
    """The orders, in their order, with what the service knows of them."""
    again = AsyncRetryStrategy.exponential_backoff(
        max_attempts=3,
        initial_delay=20,
        max_retry_delay=500,
        multiplier=2,
        result_predicate=None,
        exception_predicate=lambda error: isinstance(error, ConnectionError),
    )
    orders = env.from_collection(ORDERS)
    return AsyncDataStream.ordered_wait_with_retry(orders, Enrich(), Time.seconds(1), again, capacity=10)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--ray", action="store_true", help="run on Ray instead of in this process")
    target = "ray" if arguments.parse_args().ray else "local"
    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": target})

    calls = 0
    for order in enriched(env).execute_and_collect("async enrichment"):
        calls += order["calls"]
        cost = f"{order['count']} x {order['price']} = {order['count'] * order['price']:3}"
        print(f"order {order['id']}  {order['name']:12} {order['product']:10} {cost}")
    print(f"{calls} calls for {len(ORDERS)} orders")


if __name__ == "__main__":
    main()
