-- fold: true
SELECT product, COUNT(*) AS windows, MAX(n) AS most FROM (
  SELECT window_end, product, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))
  GROUP BY window_start, window_end, product) GROUP BY product
