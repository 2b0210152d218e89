SELECT customer, window_start, COUNT(DISTINCT product) AS products, COUNT(DISTINCT product) FILTER (WHERE price < 4) AS cheap,
  SUM(DISTINCT amount) FILTER (WHERE product <> 'tea') AS amounts
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND)) GROUP BY customer, window_start, window_end HAVING COUNT(DISTINCT id) > 1
