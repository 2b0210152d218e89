SELECT a.id, b.id AS other FROM orders AS a JOIN orders AS b ON a.id = b.amount AND b.ts BETWEEN a.ts + INTERVAL '1' HOUR AND a.ts + INTERVAL '2' HOUR
