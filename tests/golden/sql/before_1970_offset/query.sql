SELECT window_start, window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(`at`), INTERVAL '7' SECOND, INTERVAL '2' SECOND)) WHERE id < 5 GROUP BY window_start, window_end
