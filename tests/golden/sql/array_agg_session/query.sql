SELECT customer, ARRAY_AGG(product) AS p, ARRAY_AGG(DISTINCT product) AS d
FROM TABLE(SESSION(TABLE orders PARTITION BY customer, DESCRIPTOR(ts), INTERVAL '5' SECOND))
GROUP BY customer, window_start, window_end
