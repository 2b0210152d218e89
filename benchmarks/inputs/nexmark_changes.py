"""Nexmark's queries whose results change, as nexmark/nexmark has them: joins, groups and ranks of endless streams.

Their rows are compared after all changes were applied; see `folded`. q6 asks for the average price of a seller's last
ten auctions; as published, by OVER (ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) above prices that still change, Flink
refuses it up to 2.3. Here a Top-N finds the last ten, which both engines take.
"""

from __future__ import annotations

_RANKS = ("price < 10000", "price >= 10000 AND price < 1000000", "price >= 1000000")


def _counts(what: str, name: str) -> list[str]:
    """Return a count of all bids, and one of those of each range of prices."""
    filtered = [f"{what} FILTER (WHERE {condition}) AS rank{rank}_{name}" for rank, condition in enumerate(_RANKS, 1)]
    return [f"{what} AS total_{name}", *filtered]


_BIDS, _BIDDERS, _AUCTIONS = (
    _counts("COUNT(*)", "bids"),
    _counts("COUNT(DISTINCT bidder)", "bidders"),
    _counts("COUNT(DISTINCT auction)", "auctions"),
)
_STATISTICS = ", ".join([*_BIDS, *_BIDDERS, *_AUCTIONS])
_STATISTICS_COLUMNS = ", ".join(
    f"{rank}_{name} BIGINT" for name in ("bids", "bidders", "auctions") for rank in ("total", "rank1", "rank2", "rank3")
)
_DAY = "DATE_FORMAT(`dateTime`, 'yyyy-MM-dd')"
_BID = "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), extra STRING"
_AUCTION = (
    "itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, {auction}dateTime TIMESTAMP(3), "
    "expires TIMESTAMP(3), seller BIGINT, category BIGINT, {auction}extra STRING"
)
SINKS = {
    "q3": "name STRING, city STRING, state STRING, id BIGINT",
    "q4": "id BIGINT, final BIGINT",
    "q6": "seller BIGINT, avg_price BIGINT",
    "q9": f"id BIGINT, {_AUCTION.format(auction='auction_')}, auction BIGINT, bidder BIGINT, price BIGINT, "
    "bid_dateTime TIMESTAMP(3), bid_extra STRING",
    "q15": f"`day` STRING, {_STATISTICS_COLUMNS}",
    "q16": f"channel STRING, `day` STRING, `minute` STRING, {_STATISTICS_COLUMNS}",
    "q17": "auction BIGINT, `day` STRING, total_bids BIGINT, rank1_bids BIGINT, rank2_bids BIGINT, rank3_bids BIGINT, "
    "min_price BIGINT, max_price BIGINT, avg_price BIGINT, sum_price BIGINT",
    "q18": _BID,
    "q19": f"{_BID}, rank_number BIGINT",
    "q20": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, bid_dateTime TIMESTAMP(3), "
    f"bid_extra STRING, {_AUCTION.format(auction='auction_')}",
    "q23": "bidder BIGINT, price BIGINT, channel STRING, url STRING, bid_extra STRING, person_id BIGINT, name STRING, "
    "emailAddress STRING, creditCard STRING, city STRING, state STRING, person_extra STRING, "
    f"{_AUCTION.format(auction='auction_')}",
}
"""Columns of the table into which each query writes."""
QUERIES = {
    "q3": """SELECT P.name, P.city, P.state, A.id
FROM auction AS A INNER JOIN person AS P ON A.seller = P.id
WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA')""",
    "q4": """SELECT Q.category, AVG(Q.final)
FROM (
  SELECT MAX(B.price) AS final, A.category
  FROM auction A, bid B
  WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires
  GROUP BY A.id, A.category
) Q
GROUP BY Q.category""",
    "q6": """SELECT seller, AVG(price) AS avg_price
FROM (
  SELECT seller, price, ROW_NUMBER() OVER (PARTITION BY seller ORDER BY expires DESC, id DESC) AS number_of_seller
  FROM (
    SELECT A.id, A.seller, A.expires, B.price,
      ROW_NUMBER() OVER (PARTITION BY A.id, A.seller ORDER BY B.price DESC, B.`dateTime` ASC) AS rownum
    FROM auction AS A, bid AS B
    WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires
  )
  WHERE rownum <= 1
)
WHERE number_of_seller <= 10
GROUP BY seller""",
    "q9": """SELECT id, itemName, description, initialBid, reserve, `dateTime`, expires, seller, category, extra,
  auction, bidder, price, bid_dateTime, bid_extra
FROM (
  SELECT A.*, B.auction, B.bidder, B.price, B.`dateTime` AS bid_dateTime, B.extra AS bid_extra,
    ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.`dateTime` ASC) AS rownum
  FROM auction A, bid B
  WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires
)
WHERE rownum <= 1""",
    "q15": f"SELECT {_DAY} AS `day`, {_STATISTICS} FROM bid GROUP BY {_DAY}",
    "q16": f"""SELECT channel, {_DAY} AS `day`, MAX(DATE_FORMAT(`dateTime`, 'HH:mm')) AS `minute`, {_STATISTICS}
FROM bid GROUP BY channel, {_DAY}""",
    "q17": f"""SELECT auction, {_DAY} AS `day`, {", ".join(_BIDS)}, MIN(price) AS min_price, MAX(price) AS max_price,
  AVG(price) AS avg_price, SUM(price) AS sum_price
FROM bid GROUP BY auction, {_DAY}""",
    "q18": """SELECT auction, bidder, price, channel, url, `dateTime`, extra
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY `dateTime` DESC) AS rank_number FROM bid)
WHERE rank_number <= 1""",
    "q19": """SELECT * FROM
(SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number FROM bid)
WHERE rank_number <= 10""",
    "q20": """SELECT auction, bidder, price, channel, url, B.`dateTime`, B.extra, itemName, description, initialBid,
  reserve, A.`dateTime`, expires, seller, category, A.extra
FROM bid AS B INNER JOIN auction AS A ON B.auction = A.id
WHERE A.category = 10""",
    "q23": """SELECT bidder, price, channel, url, B.extra, P.id, name, emailAddress, creditCard, city, state, P.extra,
  itemName, description, initialBid, reserve, A.`dateTime`, expires, seller, category, A.extra
FROM bid B JOIN person P ON P.id = B.bidder JOIN auction A ON A.seller = B.bidder""",
}


def columns_of(query: str) -> list[str]:
    """Return the names of the columns of a query's result."""
    return [column.split(" ")[0] for column in SINKS[query].split(", ")]


def folded(query: str) -> str:
    """Return the query with all columns as strings, so that engines print the same."""
    names = columns_of(query)
    strings = ", ".join(f"CAST({name} AS STRING) AS {name}" for name in names)
    return f"SELECT {strings} FROM ({QUERIES[query]}) AS results ({', '.join(names)})"


__all__ = ["QUERIES", "SINKS", "columns_of", "folded"]
