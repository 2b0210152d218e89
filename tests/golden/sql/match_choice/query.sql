SELECT * FROM ticker
MATCH_RECOGNIZE (
  PARTITION BY symbol
  ORDER BY ts
  MEASURES FIRST(MOVE.price) AS first_price, LAST(MOVE.price) AS last_price, COUNT(DOWN.price) AS downs, COUNT(*) AS n
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN (START_ROW (UP UP | DOWN DOWN)+? TURN)
  SUBSET MOVE = (UP, DOWN)
  DEFINE
    UP AS UP.price > PREV(UP.price),
    DOWN AS DOWN.price < PREV(DOWN.price),
    TURN AS TURN.price <> LAST(MOVE.price)
)
