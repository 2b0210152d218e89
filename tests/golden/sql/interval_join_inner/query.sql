SELECT a.id, b.id AS other, a.ts FROM orders a JOIN orders b
ON a.customer = b.customer AND b.ts BETWEEN a.ts - INTERVAL '10' SECOND AND a.ts + INTERVAL '1' SECOND AND a.id <> b.id
