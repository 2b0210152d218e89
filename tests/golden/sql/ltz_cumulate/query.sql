-- table.local-time-zone: America/New_York
SELECT window_start, window_end, COUNT(DISTINCT who) AS people FROM TABLE(CUMULATE(TABLE clicks, DESCRIPTOR(`at`), INTERVAL '8' HOUR, INTERVAL '1' DAY)) WHERE id BETWEEN 5 AND 10 GROUP BY window_start, window_end
