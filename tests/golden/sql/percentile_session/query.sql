SELECT product, window_start, COUNT(*) AS n, PERCENTILE(amount, 0.9) AS amounts
FROM TABLE(SESSION(TABLE orders PARTITION BY product, DESCRIPTOR(ts), INTERVAL '4' SECOND))
GROUP BY product, window_start, window_end
