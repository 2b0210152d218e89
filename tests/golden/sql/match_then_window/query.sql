WITH pairs AS (
  SELECT * FROM orders MATCH_RECOGNIZE (
    PARTITION BY product
    ORDER BY ts
    MEASURES MATCH_ROWTIME() AS at, COUNT(*) AS n
    PATTERN (A B+? C)
    DEFINE C AS C.amount >= FIRST(A.amount)
  )
)
SELECT window_start, COUNT(*) AS matches, SUM(n) AS n
FROM TABLE(TUMBLE(TABLE pairs, DESCRIPTOR(at), INTERVAL '10' SECOND))
GROUP BY window_start, window_end
