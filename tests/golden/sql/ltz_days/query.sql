-- table.local-time-zone: Europe/Berlin
-- days of 23 and of 25 hours
SELECT window_start, window_end, COUNT(*) AS n, MIN(id) AS least, MAX(id) AS most FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(`at`), INTERVAL '1' DAY)) GROUP BY window_start, window_end
