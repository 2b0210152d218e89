SELECT product, window_start, COUNT(*) AS n, AVG(price) AS mean FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY product, window_start, window_end
