-- fold: true
SELECT a.window_end, a.product, a.n, b.people FROM (
  SELECT window_start, window_end, product, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))
  GROUP BY window_start, window_end, product) AS a
JOIN (
  SELECT window_start, window_end, COUNT(DISTINCT customer) AS people
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end) AS b
ON a.window_start = b.window_start AND a.window_end = b.window_end
