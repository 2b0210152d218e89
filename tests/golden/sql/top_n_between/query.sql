SELECT id, price, window_start, window_end, rn
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_end, window_start ORDER BY price, id) AS rn
  FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '20' SECOND))
)
WHERE rn BETWEEN 2 AND 3
