WITH pairs AS (SELECT a.id, b.id AS other, a.ts FROM orders a JOIN orders b ON a.customer = b.customer
  AND b.ts BETWEEN a.ts - INTERVAL '20' SECOND AND a.ts + INTERVAL '5' SECOND)
SELECT window_start, COUNT(*) AS n, COUNT(DISTINCT other) AS others FROM TABLE(TUMBLE(TABLE pairs, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end
