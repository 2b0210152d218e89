-- table.local-time-zone: Europe/Berlin
SELECT who, window_start, window_end, COUNT(*) AS n FROM TABLE(SESSION(TABLE clicks PARTITION BY who, DESCRIPTOR(`at`), INTERVAL '1' HOUR)) GROUP BY who, window_start, window_end
