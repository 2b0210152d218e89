"""Look for stolen cards by a rule that changes while payments come: in a stream, and by the same pattern in SQL.

A payment of less than 5 EUR, followed within a minute by one above a limit, is a sign that a stolen card was tried out.
The limit is 800 EUR, and 500 EUR from second 1800 on. A small payment before that second is followed up with the old
limit, also beyond the second: partial matches of the old version go on to their ends.

In the stream the pattern is a `PatternRule` with a version, and the new version comes in a stream of rules. In SQL the
rules are a table, and each payment is joined with the version of its time; MATCH_RECOGNIZE compares with the limit of
the small payment. Payments are generated with a fixed seed.

Output: the number of suspicious pairs of payments by version of the rule

    version  pairs
          1     43
          2     89
    the query gives the same rows

    python examples/fraud_rules.py           in this process
    python examples/fraud_rules.py --ray     the stream on Ray: the running cluster, else one of its own
"""

import argparse
import random
from collections import Counter
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import NamedTuple

from rayflink.cep import CEP, Pattern, PatternRule
from rayflink.common import Duration, WatermarkStrategy
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.table import EnvironmentSettings, TableEnvironment

SECONDS, CARDS = 3_600, 40
SMALL = 5


class Limit(NamedTuple):
    """From second `since` on."""

    version: int
    since: int
    most: int


class Payment(NamedTuple):
    second: int
    card: int
    euros: int


LIMITS = [Limit(1, 0, 800), Limit(2, 1_800, 500)]


def payments():
    """Return payments by time: one a second, and none of a card twice in a second."""
    draw = random.Random(7)
    for second in range(SECONDS):
        card, euros = draw.randrange(CARDS), draw.choices([draw.randint(1, 4), draw.randint(5, 1_000)], [1, 9])[0]
        yield Payment(second, card, euros)


def is_small(payment):
    return payment.euros < SMALL


def fraud(most):
    """Return the pattern of a limit."""
    small = Pattern.begin("small").where(is_small)
    return small.followed_by("large").where(lambda payment: payment.euros > most).within(Duration.of_minutes(1))


def rule_of(limit):
    return PatternRule("fraud", limit.version, partial(fraud, limit.most))


def in_order(second_of):
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    return strategy.with_timestamp_assigner(lambda record, _: second_of(record) * 1000)


def by_stream(env):
    """Return the program of the stream."""
    first, *later = LIMITS
    stream = env.from_collection(list(payments())).name("payments")
    stream = stream.assign_timestamps_and_watermarks(in_order(lambda payment: payment.second))
    changes = env.from_collection(later).name("limits")
    changes = changes.assign_timestamps_and_watermarks(in_order(lambda limit: limit.since)).map(rule_of)
    pairs = CEP.patterns(stream.key_by(lambda payment: payment.card), [rule_of(first)], changes)
    return pairs.select(row_of)


def row_of(match):
    (small,), (large,) = match["small"], match["large"]
    return large.second, large.card, small.euros, large.euros, match.version


QUERY = f"""
SELECT second, card, small, large, version
FROM (
    SELECT p.second, p.card, p.euros, p.ts, l.version, l.most
    FROM payments AS p JOIN limits AS l ON p.second >= l.since AND p.second < l.before
)
MATCH_RECOGNIZE (
    PARTITION BY card
    ORDER BY ts
    MEASURES LARGE.second AS second, SMALL.euros AS small, LARGE.euros AS large, SMALL.version AS version
    AFTER MATCH SKIP TO NEXT ROW
    PATTERN (SMALL OTHER* LARGE) WITHIN INTERVAL '1' MINUTE
    DEFINE
        SMALL AS SMALL.euros < {SMALL},
        OTHER AS OTHER.euros <= SMALL.most,
        LARGE AS LARGE.euros > SMALL.most
)"""


def by_sql():
    """Return the rows that the query gives."""
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    t_env.get_config().set_string("execution.target", "local")
    begin = datetime(2026, 1, 1, tzinfo=timezone.utc).replace(tzinfo=None)
    rows = [(*payment, begin + timedelta(seconds=payment.second)) for payment in payments()]
    t_env.create_temporary_view("payments", t_env.from_elements(rows, ["second", "card", "euros", "ts"]))
    ends = [limit.since for limit in LIMITS[1:]] + [SECONDS]
    limits = [(*limit, before) for limit, before in zip(LIMITS, ends, strict=True)]
    t_env.create_temporary_view("limits", t_env.from_elements(limits, ["version", "since", "most", "before"]))
    with t_env.execute_sql(QUERY).collect() as results:
        return [tuple(row) for row in results]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--ray", action="store_true", help="run the stream on Ray instead of in this process")
    target = "ray" if arguments.parse_args().ray else "local"
    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": target, "parallelism.default": 2})
    pairs = sorted(by_stream(env).execute_and_collect("fraud rules"))
    counts = Counter(version for *_, version in pairs)
    print("version  pairs")
    for version, count in sorted(counts.items()):
        print(f"{version:>7}{count:>7}")
    print("the query gives the same rows" if sorted(by_sql()) == pairs else "the query gives other rows")


if __name__ == "__main__":
    main()
