SELECT window_start, window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '-3' SECOND)) GROUP BY window_start, window_end
