"""Nexmark's events as a table, by the statements with which the public suite declares it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rayflink.connectors.nexmark import AUCTION, BID, PERSON, Nexmark
from rayflink.table import EnvironmentSettings, SqlError, TableEnvironment

FIELDS = {
    "person": "id BIGINT, name VARCHAR, emailAddress VARCHAR, creditCard VARCHAR, city VARCHAR, state VARCHAR, "
    "`dateTime` TIMESTAMP(3), extra VARCHAR",
    "auction": "id BIGINT, itemName VARCHAR, description VARCHAR, initialBid BIGINT, reserve BIGINT, "
    "`dateTime` TIMESTAMP(3), expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra VARCHAR",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, `dateTime` TIMESTAMP(3), "
    "extra VARCHAR",
}
EVENTS = """CREATE TABLE datagen (event_type INT, {columns}, `dateTime` AS CASE
  WHEN event_type = 0 THEN person.`dateTime` WHEN event_type = 1 THEN auction.`dateTime` ELSE bid.`dateTime` END,
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND) WITH ('connector' = 'nexmark', {options})"""


def declared(options: str, parallelism: int = 2) -> TableEnvironment:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {"execution.target": "local", "table.local-time-zone": "UTC"}.items():
        t_env.get_config().set_string(key, value)
    t_env.get_config().set_string("parallelism.default", str(parallelism))
    columns = ", ".join(f"{kind} ROW<{fields}>" for kind, fields in FIELDS.items())
    t_env.execute_sql(EVENTS.format(columns=columns, options=options))
    return t_env


@pytest.mark.slow
@pytest.mark.parametrize("parallelism", [1, 3])
def test_views_of_the_public_suite_have_the_events_of_the_rules(parallelism: int) -> None:
    t_env = declared("'first-event.rate' = '100', 'next-event.rate' = '100', 'events.num' = '300'", parallelism)
    rules = Nexmark(events_per_second=100)
    kinds_of_events = (rules.persons, rules.auctions, rules.bids)
    for kind, name in ((PERSON, "person"), (AUCTION, "auction"), (BID, "bid")):
        names = [field.split()[0].strip("`") for field in FIELDS[name].split(", ")]
        chosen = ", ".join("`dateTime`" if one == "dateTime" else f"{name}.{one}" for one in names)
        found = t_env.sql_query(f"SELECT {chosen} FROM datagen WHERE event_type = {kind}").to_arrow()
        expected = pa.table(kinds_of_events[kind](rules.numbers(kind, 0, 300)))
        rows = sorted(zip(*found.to_pydict().values(), strict=True), key=str)
        assert rows == sorted(zip(*expected.to_pydict().values(), strict=True), key=str)


@pytest.mark.slow
def test_windows_over_events_lose_none() -> None:
    t_env = declared("'first-event.rate' = '100', 'events.num' = '5000'")
    counted = t_env.sql_query(
        "SELECT window_start, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE datagen, DESCRIPTOR(`dateTime`), "
        "INTERVAL '10' SECOND)) WHERE event_type = 2 GROUP BY window_start, window_end"
    ).to_arrow()
    assert counted["n"].to_pylist() == [920] * 5


def test_proportions_hot_ratios_and_sizes_are_options() -> None:
    t_env = declared(
        "'events.num' = '100', 'person.proportion' = '2', 'auction.proportion' = '2', 'bid.proportion' = '6', "
        "'bid.hot-ratio.auctions' = '1', 'bid.avg-size' = '32b', 'seed' = '7'"
    )
    bids = t_env.sql_query("SELECT bid.auction, bid.extra FROM datagen WHERE event_type = 2").to_arrow()
    rules = Nexmark(proportions=(2, 2, 6), hot=(1, 4, 4), sizes=(200, 500, 32), seed=7)
    expected = rules.bids(rules.numbers(BID, 0, 100))
    assert sorted(bids.column(0).to_pylist()) == sorted(expected["auction"].to_pylist())
    assert bids.num_rows == 60 and set(bids.column(1).to_pylist()) == {""}


@pytest.mark.parametrize(
    ("options", "columns", "said"),
    [
        ("'next-event.rate' = '5'", "event_type INT", "a next-event.rate of 5 and a first of 10000"),
        ("'person.proportion' = '0'", "event_type INT", "there are none to bid for"),
        ("'first-event.rate' = '0'", "event_type INT", "expected a whole number from 1 on"),
        ("'event.num' = '1'", "event_type INT", r"did you mean events\.num"),
        ("'events.num' = '1'", "persons ROW<id BIGINT>", "did you mean person"),
        ("'events.num' = '1'", "person ROW<id INT>", "a field 'id' of type INT in 'person'"),
    ],
)
def test_what_is_not_of_nexmark_is_reported(options: str, columns: str, said: str) -> None:
    with pytest.raises(SqlError, match=said):
        t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        t_env.execute_sql(f"CREATE TABLE datagen ({columns}) WITH ('connector' = 'nexmark', {options})")
        t_env.from_path("datagen")
