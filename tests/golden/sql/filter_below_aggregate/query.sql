SELECT product, n, window_start FROM (
  SELECT product, COUNT(*) AS n, window_start FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY product, window_start, window_end
) WHERE product <> 'cake' AND n > 1
