SELECT customer, window_start, window_end, n
FROM (
  SELECT customer, window_start, window_end, COUNT(*) AS n,
         ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY COUNT(*) DESC) AS rn
  FROM TABLE(SESSION(TABLE orders PARTITION BY customer, DESCRIPTOR(ts), INTERVAL '5' SECOND))
  GROUP BY customer, window_start, window_end
)
WHERE rn <= 1
