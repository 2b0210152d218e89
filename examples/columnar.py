"""Process a million readings of a thousand sensors as columns: polars filters whole batches, and few rows remain.

Readings are generated as Arrow columns, one batch for each number of a sequence; no Python objects exist before the
last step. A function annotated with `polars.DataFrame` receives one; pandas and pyarrow tables work the same way.

Shows: `map_batches`, columns that are passed from step to step, and a keyed sum after them.

Output: readings above 90 degrees by site, of 1,000,000:

    site    readings   sum of degrees
    east       24708          2359623
    north      24723          2361054
    south      24711          2359909
    west       24732          2361883

    python examples/columnar.py           in this process
    python examples/columnar.py --ray     the same program on Ray
"""

import argparse

import polars as pl

from rayflink.datastream import StreamExecutionEnvironment

BATCHES, ROWS = 20, 50_000
SITES = pl.Series("site", ["north", "east", "south", "west"])


def readings(batch: pl.DataFrame) -> pl.DataFrame:
    """`ROWS` readings for each number in the column; a mixing of the row number stands for chance."""
    numbers = pl.concat([pl.int_range(n * ROWS, (n + 1) * ROWS, eager=True) for n in batch.to_series()])
    mixed = (numbers * 2_654_435_761) % 4_294_967_296
    return pl.DataFrame({"sensor": mixed % 1000, "degrees": mixed // 65_536 % 101})


def hot(batch: pl.DataFrame) -> pl.DataFrame:
    """(site, readings, sum of degrees) of this batch, for readings above 90 degrees."""
    found = batch.filter(pl.col("degrees") > 90)
    by_site = found.group_by(site=SITES.gather(found["sensor"] % 4), maintain_order=True)
    return by_site.agg(readings=pl.len().cast(pl.Int64), degrees=pl.col("degrees").sum())


def totals(env):
    """(site, readings, sum of degrees) so far, for each batch and site."""
    batches = env.from_sequence(0, BATCHES - 1).map_batches(readings).name("readings").map_batches(hot).name("hot")
    return batches.map(tuple).key_by(lambda row: row[0]).reduce(lambda a, b: (a[0], a[1] + b[1], a[2] + b[2]))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--ray", action="store_true", help="run on Ray instead of in this process")
    target = "ray" if arguments.parse_args().ray else "local"
    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": target})
    env.set_parallelism(2)

    last = {row[0]: row for row in totals(env).execute_and_collect("columnar")}
    print(f"{'site':8}{'readings':>8} {'sum of degrees':>16}")
    for site, count, degrees in sorted(last.values()):
        print(f"{site:8}{count:8} {degrees:16}")


if __name__ == "__main__":
    main()
