SELECT customer, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY customer, window_start, window_end HAVING COUNT(*) > 1
