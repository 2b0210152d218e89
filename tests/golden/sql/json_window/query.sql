SELECT window_start, COUNT(*) AS n, SUM(price) AS total FROM TABLE(TUMBLE(TABLE sales, DESCRIPTOR(`at`), INTERVAL '10' SECOND)) GROUP BY window_start, window_end
