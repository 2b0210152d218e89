SELECT customer, small, large, wait, at FROM orders
MATCH_RECOGNIZE (
  PARTITION BY customer
  ORDER BY ts, id
  MEASURES
    LAST(SMALL.price) AS small,
    LARGE.price AS large,
    TIMESTAMPDIFF(SECOND, SMALL.ts, LARGE.ts) AS wait,
    MATCH_ROWTIME() AS at
  AFTER MATCH SKIP TO NEXT ROW
  PATTERN (SMALL OTHER{0,3}? LARGE) WITHIN INTERVAL '1' MINUTE
  DEFINE
    SMALL AS SMALL.price < 3,
    LARGE AS LARGE.price > SMALL.price * 1.2
)
