SELECT customer, window_start, window_end, COUNT(*) AS n FROM TABLE(SESSION(TABLE orders PARTITION BY customer, DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY customer, window_start, window_end
