SELECT product, window_start, PERCENTILE(price, 0.5) AS median, PERCENTILE(price, ARRAY[0.1, 0.9], amount) AS weighted,
  PERCENTILE(DISTINCT amount, 0.25) FILTER (WHERE price > 1) AS amounts
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND))
GROUP BY product, window_start, window_end
