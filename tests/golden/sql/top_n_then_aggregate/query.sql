SELECT window_start, window_end, SUM(amount) AS amount, MIN(price) AS least
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, customer ORDER BY price DESC, id) AS rn
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
)
WHERE rn <= 2
GROUP BY window_start, window_end
