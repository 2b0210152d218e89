SELECT amount > 2 AS many, CASE WHEN product = 'tea' THEN 'hot' ELSE 'other' END AS kind, window_end, COUNT(*) AS n
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY amount > 2, CASE WHEN product = 'tea' THEN 'hot' ELSE 'other' END, window_start, window_end HAVING MIN(id) > 1
