WITH followed AS (SELECT a.product, b.id, b.ts FROM orders AS a JOIN orders AS b ON a.product = b.product AND b.ts > a.ts AND b.ts <= a.ts + INTERVAL '9' SECOND)
SELECT product, window_start, COUNT(*) AS n, MAX(id) AS latest FROM TABLE(HOP(TABLE followed, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)) GROUP BY product, window_start, window_end
