SELECT window_start, window_end, COUNT(*) AS n, SUM(amount) AS amounts, MAX(price) AS dearest FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end
