SELECT symbol, ts, role, running_sum, whole_sum, highest, before, price FROM ticker
MATCH_RECOGNIZE (
  PARTITION BY symbol
  ORDER BY ts
  MEASURES
    CLASSIFIER() AS role,
    SUM(price) AS running_sum,
    FINAL SUM(price) AS whole_sum,
    FINAL MAX(UP.price) AS highest,
    LAST(UP.price, 1) AS before
  ALL ROWS PER MATCH
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN (LOW UP{2,} DOWN)
  DEFINE
    UP AS UP.price > PREV(UP.price),
    DOWN AS DOWN.price < PREV(DOWN.price)
)
