-- table.optimizer.distinct-agg.split.enabled: true
SELECT customer, window_start, COUNT(DISTINCT product) AS products, COUNT(DISTINCT product) FILTER (WHERE amount > 1) AS several,
  COUNT(*) AS orders, MAX(price) AS most
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND)) GROUP BY customer, window_start, window_end
