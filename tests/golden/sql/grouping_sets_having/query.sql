SELECT window_start, product, customer, COUNT(DISTINCT id) AS n, SUM(price) FILTER (WHERE amount > 1) AS prices
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY window_start, window_end, GROUPING SETS ((product, customer), (product), ()) HAVING GROUPING(product) = 1 OR COUNT(*) > 1
