SELECT customer, first_price, second_price, seconds, match_time FROM orders
MATCH_RECOGNIZE (
  PARTITION BY customer
  ORDER BY ts, id
  MEASURES
    LAST(LITTLE.price) AS first_price,
    MUCH.price AS second_price,
    TIMESTAMPDIFF(SECOND, LITTLE.ts, MUCH.ts) AS seconds,
    MATCH_ROWTIME() AS match_time
  AFTER MATCH SKIP TO NEXT ROW
  PATTERN (LITTLE ANY_ROW{0,3}? MUCH) WITHIN INTERVAL '1' MINUTE
  DEFINE
    LITTLE AS LITTLE.price < 3,
    MUCH AS MUCH.price > LITTLE.price * 1.2
)
