SELECT a.id, b.id AS other FROM orders a LEFT JOIN orders b
ON a.product = b.product AND a.ts <= b.ts AND b.ts < a.ts + INTERVAL '10' SECOND AND a.id <> b.id AND b.amount > 1 AND a.price > 2
