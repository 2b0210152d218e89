WITH two_and_more AS (
  SELECT * FROM orders MATCH_RECOGNIZE (
    PARTITION BY product
    ORDER BY ts
    MEASURES MATCH_ROWTIME() AS match_time, COUNT(*) AS n
    PATTERN (A B+? C)
    DEFINE C AS C.amount >= FIRST(A.amount)
  )
)
SELECT window_start, COUNT(*) AS pairs, SUM(n) AS n
FROM TABLE(TUMBLE(TABLE two_and_more, DESCRIPTOR(match_time), INTERVAL '10' SECOND))
GROUP BY window_start, window_end
