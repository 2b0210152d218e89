SELECT product, window_time, SUM(amount) AS total
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY product, window_start, window_end, window_time
ORDER BY window_time, product
