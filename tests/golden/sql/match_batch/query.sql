-- mode: batch
SELECT * FROM ticker
MATCH_RECOGNIZE (
  PARTITION BY symbol
  ORDER BY price DESC, ts
  MEASURES HIGH.price AS high, COUNT(SAME.price) AS equal, LOW.ts AS ts
  PATTERN (HIGH SAME* LOW)
  DEFINE
    SAME AS SAME.price = LAST(HIGH.price),
    LOW AS LOW.price < HIGH.price - 1
)
ORDER BY symbol, ts
