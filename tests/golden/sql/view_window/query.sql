SELECT window_start, COUNT(*) AS n, SUM(worth) AS worth FROM TABLE(TUMBLE(TABLE worths, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end
