WITH letters AS (
  SELECT letter, amount, ts FROM orders CROSS JOIN UNNEST(SPLIT(product, 'a')) AS l(letter)
)
SELECT window_start, letter, COUNT(*) AS n, SUM(amount) AS total
FROM TABLE(TUMBLE(TABLE letters, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY window_start, window_end, letter
