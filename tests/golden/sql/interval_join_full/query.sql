SELECT a.id, b.id AS other FROM orders a FULL JOIN orders b
ON a.customer = b.customer AND b.ts > a.ts - INTERVAL '10' SECOND AND b.ts < a.ts AND a.price < b.price
