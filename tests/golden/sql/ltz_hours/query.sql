-- table.local-time-zone: Europe/Berlin
-- the hour that is not there, and the one that is there twice
SELECT who, window_start, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(`at`), INTERVAL '1' HOUR)) WHERE id > 4 GROUP BY who, window_start, window_end
