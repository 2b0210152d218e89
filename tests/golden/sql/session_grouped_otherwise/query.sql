-- sessions of each customer, grouped without the customer
SELECT window_end, COUNT(*) AS n
FROM TABLE(SESSION(TABLE orders PARTITION BY customer, DESCRIPTOR(ts), INTERVAL '5' SECOND))
GROUP BY window_start, window_end
