-- table.local-time-zone: Asia/Kolkata
SELECT window_start, window_end, MAX(id) AS latest, COUNT(who) AS n FROM TABLE(HOP(TABLE clicks, DESCRIPTOR(`at`), INTERVAL '1' HOUR, INTERVAL '2' HOUR)) WHERE id > 10 GROUP BY window_start, window_end
