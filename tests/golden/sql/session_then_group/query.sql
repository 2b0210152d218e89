-- fold: true
SELECT n, COUNT(*) AS sessions FROM (
  SELECT customer, COUNT(*) AS n FROM TABLE(SESSION(TABLE orders PARTITION BY customer, DESCRIPTOR(ts), INTERVAL '5' SECOND))
  GROUP BY customer, window_start, window_end) GROUP BY n
