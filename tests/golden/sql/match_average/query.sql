SELECT * FROM ticker
MATCH_RECOGNIZE (
  PARTITION BY symbol
  ORDER BY ts
  MEASURES
    FIRST(A.ts) AS start_ts,
    LAST(A.ts) AS end_ts,
    AVG(A.price) AS average,
    SUM(A.price * A.tax) AS taxes,
    COUNT(*) AS n,
    MIN(A.price) AS least,
    MAX(price) AS greatest
  ONE ROW PER MATCH
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN (A+ B)
  DEFINE A AS AVG(A.price) < 15
)
