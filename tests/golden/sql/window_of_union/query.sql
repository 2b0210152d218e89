WITH parts AS (SELECT id, ts FROM orders WHERE amount > 2 UNION ALL SELECT id + 100, ts FROM orders WHERE product = 'tea')
SELECT window_start, COUNT(*) AS n, COUNT(DISTINCT id) AS ids, MAX(id) AS most FROM TABLE(TUMBLE(TABLE parts, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end
